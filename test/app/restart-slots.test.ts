import { expect, it } from 'vitest';
import { createSlots, SLOT_RETRY_MS } from '../../src/app/operations/restart-slots.ts';
import {
  aCompute,
  aHeadroom,
  aRecord,
  aSchedule,
  at,
  compiled,
  countsUntil,
  currentRules,
  planFor,
} from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
/** However few computes a policy selects, it may disturb so many at once. */
const ALLOWED = 5;

it('a raise that connections at critical ask for takes a slot where there is none left, and what is not urgent waits', async () => {
  const policies = [aSchedule(), aHeadroom({ criticalShare: 0.9, targetShare: 0.9 })];
  const actionAt = (connections: number) => {
    const about = { policies: compiled(...policies), compute: aCompute({ minCu: 0.25, maxCu: 1 }), nowMs: EIGHT };
    const counted = countsUntil(EIGHT, connections);
    const [action] = planFor({ ...about, record: aRecord(), connections: counted }).actions;
    if (!action) throw new Error('nothing to do');
    return action;
  };
  const clock = createSteppedClock(EIGHT, () => false);
  const store = createMemoryStore(clock);
  const slots = createSlots({ store, clock, fleet: { evaluatedComputes: () => [] } });
  const rules = currentRules(...policies).current;
  const take = async (computeId: string, connections: number) =>
    (await slots.take(rules, computeId, actionAt(connections))) !== undefined;
  const { policy } = actionAt(0);
  for (let index = 0; index < ALLOWED; index += 1) expect(await take(`ep-${index}`, 0)).toBe(true);
  expect([await take('ep-waits', 0), slots.isAtOnceReached(policy)]).toEqual([false, true]);
  expect(await take('ep-urgent', 405)).toBe(true);
  expect(await store.slotsInUse(policy, EIGHT)).toHaveLength(ALLOWED + 1);
  expect([await take('ep-waits', 0), slots.isAtOnceReached(policy)]).toEqual([false, true]);
  expect(slots.limitBetween(policy, EIGHT - 1, EIGHT)).toBe('reached');
  expect([slots.refusedLately(policy), slots.refusedLately('another')]).toEqual(['raise', undefined]);
  expect(slots.limitBetween(policy, EIGHT + 1, EIGHT + SLOT_RETRY_MS)).toBe('unseen');
  await clock.runTo(EIGHT + SLOT_RETRY_MS);
  expect(await take('ep-urgent', 405)).toBe(true);
  expect(slots.limitBetween(policy, EIGHT + 1, EIGHT + SLOT_RETRY_MS)).toBe('free');
  await slots.release('ep-urgent', policy);
  expect(await take('ep-waits', 0)).toBe(false);
  await slots.release('ep-0', policy);
  expect(await take('ep-waits', 0)).toBe(true);
});

it('no more restarts are admitted than there are free slots, until they have one or have not come', async () => {
  const rules = currentRules(aSchedule()).current;
  const action = planFor({
    ...{
      policies: compiled(aSchedule()),
      compute: aCompute({ minCu: 0.25, maxCu: 1 }),
      nowMs: EIGHT,
      record: aRecord(),
    },
  }).actions[0];
  if (!action) throw new Error('nothing to do');
  const clock = createSteppedClock(EIGHT, () => false);
  const store = createMemoryStore(clock);
  const slots = createSlots({ store, clock, fleet: { evaluatedComputes: () => [] } });
  const admits = (computeId: string) => slots.admits(rules, computeId, action);
  for (let index = 0; index < ALLOWED; index += 1) expect(await admits(`ep-${index}`)).toBe(true);
  expect([await admits('ep-0'), await admits('ep-waits')]).toEqual([true, false]);
  // One takes its slot, and gives it back after its operations.
  expect(await slots.take(rules, 'ep-0', action)).toBeDefined();
  expect([await admits('ep-0'), await admits('ep-waits')]).toEqual([true, false]);
  await slots.release('ep-0', action.policy);
  expect([await admits('ep-waits'), await admits('ep-more')]).toEqual([true, false]);
  // The others have not come for theirs.
  await clock.runTo(EIGHT + SLOT_RETRY_MS);
  expect(await admits('ep-more')).toBe(true);
  expect(await slots.admits(rules, 'ep-urgent', { ...action, urgent: true })).toBe(true);
});
