import { expect, it } from 'vitest';
import { announcementOf, digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

it('a change was announced once a digest has named its compute, for a slot since its last change that has begun', async () => {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  const digest = { computeIds: ['ep-1', 'ep-3'], restartIds: ['ep-1'], toMs: 104, untilMs: 999 };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 100), digest);
  const announced = (computeId: string, sinceMs: number, nowMs: number) =>
    announcementOf(store, { computeId, sinceMs, nowMs });
  expect(await announced('ep-1', 50, 120)).toEqual({ owner: 'team-a', restarts: 1, atMs: 104 });
  expect(await announced('ep-2', 50, 120)).toBeUndefined();
  // It was to be changed in its sleep: a restart is not late.
  expect(await announced('ep-3', 50, 120)).toEqual({ owner: 'team-a', restarts: 1 });
  // It has been changed since: whatever changes it now is something else.
  expect(await announced('ep-1', 110, 120)).toBeUndefined();
  expect(await announced('ep-1', 50, 99)).toBeUndefined();
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 110), { ...digest, toMs: 110 });
  expect(await announced('ep-1', 50, 120)).toMatchObject({ atMs: 110 });
});
