import { expect, it } from 'vitest';
import { EIGHT, startShop } from './shop-at-eight.ts';

const SECOND_MS = 1_000;

it('a reading that still shows the old values after a change is nobody else, and nothing is sent again', async () => {
  const daemon = await startShop();
  const { clock, platform, events } = daemon;
  await platform.control('faults', { kind: 'stale_reads', ms: 5 * SECOND_MS });
  await clock.runTo(EIGHT + SECOND_MS);
  expect(await platform.writes()).toHaveLength(1);
  for (let seconds = 2; seconds <= 120; seconds += 2) {
    await daemon.reconcile('shop');
    await clock.runTo(EIGHT + seconds * SECOND_MS);
  }
  expect(await platform.writes()).toHaveLength(1);
  expect(events.filter(({ event }) => event.kind === 'manual_change')).toEqual([]);
  const record = await daemon.record('shop', 'ep-shop');
  expect(record?.baseline).toMatchObject({ minCu: 0.25, maxCu: 1 });
  expect(record).not.toHaveProperty('lagging');
});
