import { describe, expect, it } from 'vitest';
import { createSlots } from '../../src/app/operations/restart-slots.ts';
import { aCompute, aRecord, aSchedule, currentRules } from '../support/builders.ts';
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
  return {
    clock,
    daemon,
    take: (slots: ReturnType<typeof daemon>, at: number, isUrgent = false) =>
      slots.take(rules, `ep-${at}`, { policy: 'office-hours', ...(isUrgent && { urgent: true }) } as never),
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
    expect([other.isAtMostFull('office-hours'), other.isFull('office-hours')]).toEqual([true, false]);
    expect(await take(one, 2)).toBe(true);
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
    expect(slots.isFull('office-hours')).toBe(false);
  });

  it('are not limited by default', async () => {
    const { daemon, take } = group({ atOnce: 1 });
    const slots = daemon();
    for (let at = 0; at < 10; at += 1) expect(await take(slots, at)).toBe(true);
  });
});
