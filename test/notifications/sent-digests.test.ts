import { expect, it } from 'vitest';
import { digestKey, SENT_DIGESTS, wasAnnounced } from '../../src/app/notifications/sent-digests.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

it('a change was announced once a digest has named its compute, for a slot since its last change that has begun', async () => {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 100), { computeIds: ['ep-1'], untilMs: 999 });
  const isTold = (computeId: string, sinceMs: number, nowMs: number) =>
    wasAnnounced(store, { computeId, sinceMs, nowMs });
  expect(await isTold('ep-1', 50, 120)).toBe(true);
  expect(await isTold('ep-2', 50, 120)).toBe(false);
  // It has been changed since: whatever changes it now is something else.
  expect(await isTold('ep-1', 110, 120)).toBe(false);
  expect(await isTold('ep-1', 50, 99)).toBe(false);
});
