import { expect, it } from 'vitest';
import { EIGHT, startShop } from './shop-at-eight.ts';

const MINUTE_MS = 60_000;

it('a compute that is listed twice is not written to, before it is listed once again', async () => {
  const daemon = await startShop();
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 5 * MINUTE_MS);
  await platform.control('faults', { kind: 'duplicates', route: 'GET /projects/{project_id}/endpoints' });
  for (let minutes = -4; minutes <= 10; minutes += 1) {
    await daemon.reconcile('shop');
    await clock.runTo(EIGHT + minutes * MINUTE_MS);
  }
  expect(await platform.writes()).toEqual([]);
  await platform.clearFaults();
  await daemon.reconcile('shop');
  await clock.runTo(EIGHT + 12 * MINUTE_MS);
  expect(await platform.writes()).toHaveLength(1);
});
