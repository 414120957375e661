import { describe, expect, it } from 'vitest';
import { createSlots } from '../../src/app/operations/restart-slots.ts';
import { withBudgetSteps } from '../../src/domain/policy/compiled-policies.ts';
import {
  aBudget,
  aCompute,
  aRecord,
  aSchedule,
  aStepSpan,
  at,
  compiled,
  currentRules,
  planFor,
} from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const MINUTE_MS = 60_000;
const START = Date.parse('2026-03-02T08:00:00Z');

/** Ten computes of one policy, and daemons that share a store. */
function group(disruption: object) {
  const clock = createSteppedClock(START, () => false);
  const store = createMemoryStore(clock);
  const rules = currentRules(aSchedule({ disruption })).current;
  const computes = Array.from({ length: 10 }, (_, at) => aCompute({ computeId: `ep-${at}` }));
  const evaluatedComputes = () => computes.map((compute) => ({ compute, record: aRecord() })) as never;
  const daemon = () => createSlots({ store, clock, fleet: { evaluatedComputes } });
  const taken = (slots: ReturnType<typeof daemon>, at: number, isUrgent = false) =>
    slots.take(rules, `ep-${at}`, { policy: 'office-hours', disruption, ...(isUrgent && { urgent: true }) } as never);
  return {
    ...{ clock, store, daemon },
    take: async (slots: ReturnType<typeof daemon>, at: number, isUrgent = false) =>
      (await taken(slots, at, isUrgent)) !== undefined,
    taken,
  };
}

describe('the restarts of a policy within a time', () => {
  const limit = { atOnce: 1, atMost: { share: 0.3, windowMs: 10 * MINUTE_MS } };

  it('are counted over all daemons, also those that have ended', async () => {
    const { daemon, take } = group(limit);
    const [one, other] = [daemon(), daemon()];
    expect([await take(one, 0), await take(other, 1), await take(one, 2)]).toEqual([true, true, true]);
    for (const id of ['ep-0', 'ep-1', 'ep-2']) await one.release(id, 'office-hours');
    expect(await take(other, 3)).toBe(false);
    expect([other.isAtMostReached('office-hours'), other.isAtOnceReached('office-hours')]).toEqual([true, false]);
    expect(await take(one, 2)).toBe(true);
  });

  it('are not counted where nothing was sent after all, unless an earlier one is', async () => {
    const { daemon, take, taken } = group(limit);
    const slots = daemon();
    for (const at of [0, 1]) expect(await take(slots, at)).toBe(true);
    await slots.release('ep-0', 'office-hours');
    // Of the first, an earlier restart counts; of the third, none does.
    for (const at of [0, 2]) await (await taken(slots, at))?.giveBack();
    expect([await take(slots, 3), await take(slots, 4)]).toEqual([true, false]);
  });

  it('make room when their time has passed, one by one', async () => {
    const { clock, daemon, take } = group(limit);
    const slots = daemon();
    for (const at of [0, 1, 2]) {
      await clock.runTo(START + at * MINUTE_MS);
      expect(await take(slots, at)).toBe(true);
    }
    await clock.runTo(START + 10 * MINUTE_MS - 1);
    expect(await take(slots, 3)).toBe(false);
    await clock.runTo(START + 10 * MINUTE_MS);
    expect([await take(slots, 3), await take(slots, 4)]).toEqual([true, false]);
  });

  it('never hold what is urgent, and count it', async () => {
    const { daemon, take } = group(limit);
    const slots = daemon();
    for (const at of [0, 1, 2, 3]) expect(await take(slots, at, true)).toBe(true);
    expect(await take(slots, 4)).toBe(false);
  });

  it('take no place at once where they are too many', async () => {
    const { daemon, take } = group({ atOnce: 0.4, atMost: { share: 0.1, windowMs: MINUTE_MS } });
    const slots = daemon();
    expect(await take(slots, 0)).toBe(true);
    for (const at of [1, 2, 3, 4, 5, 6]) expect(await take(slots, at)).toBe(false);
    expect(slots.isAtOnceReached('office-hours')).toBe(false);
  });

  it('keep the place at once of an earlier restart, where they are too many', async () => {
    const { clock, store, daemon, take } = group({ atOnce: 1, atMost: { share: 0.1, windowMs: MINUTE_MS } });
    const slots = daemon();
    expect(await take(slots, 0)).toBe(true);
    await clock.runTo(START + MINUTE_MS);
    expect([await take(slots, 1), await take(slots, 0)]).toEqual([true, false]);
    expect(await store.slotsInUse('office-hours', clock.now())).toEqual(['ep-0', 'ep-1']);
  });

  it('are not limited by default', async () => {
    const { daemon, take } = group({ atOnce: 1 });
    const slots = daemon();
    for (let at = 0; at < 10; at += 1) expect(await take(slots, at)).toBe(true);
  });

  it('are those that the step of a budget says, where it decides', async () => {
    const step = { at: 1, of: 'spent', notify: [], limits: { size: { low: 0, high: 1 } } } as const;
    const lower = { when: 'any', atDeadline: 'apply' } as const;
    const budget = aBudget({ steps: [{ ...step, disruption: { lower, ...limit } }] });
    const clock = createSteppedClock(at('2026-03-25T12:00:00Z'), () => false);
    const policies = withBudgetSteps(compiled(budget), [aStepSpan()]);
    const rules = { ...currentRules(budget).current, policies };
    const computes = Array.from({ length: 10 }, (_, id) => aCompute({ computeId: `ep-${id}`, minCu: 1, maxCu: 2 }));
    const evaluatedComputes = () => computes.map((compute) => ({ compute, record: aRecord() })) as never;
    const slots = createSlots({ store: createMemoryStore(clock), clock, fleet: { evaluatedComputes } });
    const record = aRecord({ lastApplied: { maxCu: 2 } });
    const taken: boolean[] = [];
    for (const compute of computes) {
      const { actions } = planFor({ policies, compute, record, nowMs: clock.now() });
      for (const action of actions) taken.push((await slots.take(rules, compute.computeId, action)) !== undefined);
    }
    expect(taken).toEqual([true, true, true, ...Array.from({ length: 7 }, () => false)]);
  });
});
