import { expect, it } from 'vitest';
import { announcementOf, digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

it('a change was announced once a digest has named its compute, for a slot since its last change that has begun', async () => {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  const digest = { computeIds: ['ep-1', 'ep-3'], restartIds: ['ep-1'], toMs: 104, untilMs: 999 };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 100), digest);
  const announced = (computeId: string, sinceMs: number, nowMs: number) =>
    announcementOf({ documents: store.documents }, { computeId, sinceMs, nowMs });
  const of = (...restartIds: string[]) => ({ owner: 'team-a', ownIds: ['ep-1'], slotMs: 100, restartIds });
  expect(await announced('ep-1', 50, 120)).toEqual({ ...of('ep-1'), atMs: 104, countedFor: ['ops'] });
  expect(await announced('ep-2', 50, 120)).toBeUndefined();
  // It was to be changed in its sleep.
  expect(await announced('ep-3', 50, 120)).toEqual({ ...of('ep-1'), atMs: 104, countedFor: [] });
  // It has been changed since: whatever changes it now is something else.
  expect(await announced('ep-1', 110, 120)).toBeUndefined();
  expect(await announced('ep-1', 50, 99)).toBeUndefined();
  // Nobody expects it any more, whether or not the digest was deleted.
  expect(await announced('ep-1', 50, 1_000)).toBeUndefined();
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-b', 100), { ...digest, restartIds: ['ep-4'] });
  expect((await announced('ep-1', 50, 120))?.restartIds).toEqual(['ep-1', 'ep-4']);
  const ofAll = { ...digest, computeIds: ['ep-1', 'ep-5'], restartIds: ['ep-1', 'ep-5'] };
  for (const [receiver, told] of [
    ['chat', ofAll],
    ['of-a-policy', digest],
  ] as const)
    await SENT_DIGESTS.put(store, digestKey(receiver, 'team-a', 100), told);
  expect(await announced('ep-1', 50, 120)).toMatchObject({
    ownIds: ['ep-1', 'ep-5'],
    countedFor: ['ops', 'chat', 'of-a-policy'],
  });
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 110), { ...digest, toMs: 110 });
  expect(await announced('ep-1', 50, 120)).toMatchObject({ atMs: 110 });
});

it('for the restarts of a boundary the digests are read once in five seconds, and again for a compute that is not among them', async () => {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  let reads = 0;
  const documents: typeof store.documents = (collection) => {
    reads += 1;
    return store.documents(collection);
  };
  const counted = { documents };
  const announced = (computeId: string, nowMs: number) => announcementOf(counted, { computeId, sinceMs: 0, nowMs });
  const digest = { computeIds: ['ep-1', 'ep-2'], restartIds: ['ep-1', 'ep-2'], toMs: 100, untilMs: 99_999 };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 100), digest);
  const both = await Promise.all([announced('ep-1', 200), announced('ep-2', 200)]);
  expect([...both, await announced('ep-2', 4_000), reads]).toMatchObject([{}, {}, {}, 1]);
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-b', 200), { ...digest, computeIds: ['ep-3'] });
  expect([await announced('ep-3', 4_500), reads]).toMatchObject([{ owner: 'team-b' }, 2]);
  expect([await announced('ep-1', 9_500), reads]).toMatchObject([{}, 3]);
});

it('an announced wait is still announced if the compute was changed after its quarter of an hour began, up to its end', async () => {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  const digest = { computeIds: ['ep-1', 'ep-2'], restartIds: ['ep-1', 'ep-2'], toMs: 190, untilMs: 999 };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-a', 100), { ...digest, instants: { 'ep-1': 150 } });
  const announced = (computeId: string, sinceMs: number) =>
    announcementOf({ documents: store.documents }, { computeId, sinceMs, nowMs: 195 });
  expect(await announced('ep-1', 120)).toMatchObject({ slotMs: 100, atMs: 190 });
  expect(await announced('ep-1', 151)).toBeUndefined();
  expect(await announced('ep-2', 120)).toBeUndefined();
});
