import { expect, it } from 'vitest';
import { EIGHT, startShop } from './shop-at-eight.ts';

const SECOND_MS = 1_000;

it('a change that is refused because of an operation is tried every 5 s, however many triggers there were', async () => {
  const daemon = await startShop();
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 10 * SECOND_MS);
  await platform.control('faults', { kind: 'status', status: 423, method: 'PATCH' });
  for (let seconds = 1; seconds <= 4; seconds += 1) {
    await clock.runTo(EIGHT + seconds * SECOND_MS);
    await daemon.reconcile('shop');
  }
  await clock.runTo(EIGHT + 5 * SECOND_MS);
  const before = (await platform.writes()).length;
  await clock.runTo(EIGHT + 65 * SECOND_MS);
  expect((await platform.writes()).length - before).toBe(12);
  await platform.clearFaults();
  await clock.runTo(EIGHT + 71 * SECOND_MS);
  expect((await platform.writes()).at(-1)?.status).toBe(200);
});
