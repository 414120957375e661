import { describe, expect, it } from 'vitest';
import {
  causingSet,
  changeDueSince,
  evaluateNow,
  restartCause,
  type Situation,
} from '../../src/domain/evaluate/evaluate.ts';
import { withWanted } from '../../src/domain/evaluate/wanted-since.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { RestartCause } from '../../src/domain/records/compute-record.ts';
import { aCompute, aHold, aRecord, aSchedule, at, aWindow, compiled } from '../support/builders.ts';

const AT_ONCE = { raise: { when: 'any', atDeadline: 'apply' }, lower: { when: 'any', atDeadline: 'apply' } } as const;
const MORNING = at('2026-03-02T08:00:00Z');
const HOUR_MS = 3_600_000;

/** The cause of the restart at an instant, by a daemon that last decided by the policies `before`, at `beforeMs`. */
function causeAt(
  nowMs: number,
  {
    before = aSchedule({ disruption: AT_ONCE }),
    after = before,
    beforeMs = nowMs - 1,
    ...also
  }: {
    before?: ReturnType<typeof aSchedule>;
    after?: ReturnType<typeof aSchedule>;
    beforeMs?: number;
  } & Partial<Situation> = {},
): RestartCause {
  const compute = aCompute({ minCu: 2, maxCu: 2 });
  const situationBefore: Situation = {
    ...{
      policies: compiled(before),
      compute,
      record: aRecord({ lastApplied: { minCu: 2, maxCu: 2 } }),
      nowMs: beforeMs,
    },
    ...{ mode: 'enforce', projectBusy: false },
  };
  const { decision } = evaluateNow(situationBefore);
  const record = withWanted({
    ...situationBefore,
    baseline: undefined,
    record: aRecord({ lastApplied: { minCu: 2, maxCu: 2 } }),
    decision,
  });
  const situation = { ...situationBefore, policies: compiled(after), record, nowMs, ...also };
  const evaluated = evaluateNow(situation);
  expect(evaluated.plan.actions[0]?.disconnects).toBe(true);
  return restartCause(situation, evaluated);
}

describe('the cause of a restart', () => {
  it('is a boundary at its instant, and for as long as the value of that boundary is wanted', () => {
    expect(causeAt(MORNING)).toBe('boundary');
    expect(causeAt(MORNING + HOUR_MS, { beforeMs: MORNING + 1 })).toBe('boundary');
  });

  it('is no person where a hold only sets the timeout that is sent beside the size', () => {
    const hold = aHold({ suspendTimeoutSeconds: 600, createdAtMs: MORNING - 60_000 });
    expect(causeAt(MORNING, { holds: [hold] })).toBe('boundary');
    const sized = { ...hold, size: { minCu: 4, maxCu: 4 } };
    expect(causeAt(MORNING, { holds: [sized] })).toBe('person');
  });

  it('is not a boundary where the policy was edited since', () => {
    const [before, after] = [
      aSchedule({ disruption: AT_ONCE }),
      aSchedule({ disruption: AT_ONCE, otherwise: { size: { minCu: 0.25, maxCu: 0.25 } } }),
    ];
    const noon = MORNING + 12 * HOUR_MS;
    expect(causeAt(noon, { before, after })).toBe('other');
    // Where the policy was the same at the boundary, that is the cause.
    expect(causeAt(noon, { before: after, beforeMs: noon - HOUR_MS })).toBe('boundary');
  });

  it('is the person who holds it at another size', () => {
    const hold = aHold({ size: { minCu: 4, maxCu: 4 }, createdAtMs: MORNING - 1, expiresAtMs: MORNING + HOUR_MS });
    expect(causeAt(MORNING, { holds: [hold] })).toBe('person');
  });
});

describe('a restart is due by a policy set that became current', () => {
  const NOON = MORNING + 4 * HOUR_MS;
  const isDue = (currentSinceMs: number, also: Partial<Situation> = {}, approvedAtMs?: number) => {
    const compute = aCompute({ minCu: 2, maxCu: 2 });
    const policies = compiled(aSchedule({ disruption: AT_ONCE }));
    const basis = { policies, compute, record: aRecord(), nowMs: NOON, mode: 'enforce', projectBusy: false } as const;
    const situation: Situation = { ...basis, ...also };
    const approver = approvedAtMs === undefined ? {} : { atMs: [approvedAtMs] };
    return causingSet(situation, evaluateNow(situation), [{ currentSinceMs, approver }]) !== undefined;
  };

  it('within the hour where it is not known since when it is wanted, if no boundary and no change of the value came after it', () => {
    expect(isDue(NOON - 10 * 60_000)).toBe(true);
    expect(isDue(NOON - HOUR_MS - 1)).toBe(false);
    const nearBoundary = { nowMs: MORNING + 60_000 };
    expect(isDue(MORNING - 60_000, nearBoundary)).toBe(false);
    expect(isDue(MORNING + 30_000, nearBoundary)).toBe(true);
    const mark = { fields: { minCu: 2, maxCu: 2 }, seenAtMs: NOON - 5 * 60_000, raises: false };
    expect(isDue(NOON - 10 * 60_000, { record: aRecord({ manual: { size: mark } }) })).toBe(false);
  });

  it('as long as its value is wanted since then, and no longer', () => {
    const wantedSince = (sinceMs: number) => {
      const wanted = { size: { fields: { minCu: 1, maxCu: 4 }, sinceMs } };
      return { record: aRecord({ wanted }), nowMs: NOON + 5 * HOUR_MS };
    };
    expect(isDue(NOON, wantedSince(NOON + 1_000))).toBe(true);
    // Another daemon of the group had taken the set before.
    expect(isDue(NOON, wantedSince(NOON - 60_000))).toBe(true);
    expect(isDue(NOON, wantedSince(NOON - 2 * HOUR_MS))).toBe(false);
    expect(isDue(NOON, wantedSince(NOON + 2 * HOUR_MS))).toBe(false);
    expect(isDue(NOON, { ...wantedSince(NOON + 1_000), nowMs: MORNING + 10 * HOUR_MS })).toBe(false);
  });

  it('the one nearest to when its value was first wanted', () => {
    const policies = compiled(aSchedule({ disruption: AT_ONCE }));
    const wanted = { size: { fields: { minCu: 1, maxCu: 4 }, sinceMs: NOON + 1_000 } };
    const compute = aCompute({ minCu: 2, maxCu: 2 });
    const basis = { policies, compute, record: aRecord({ wanted }), nowMs: NOON + 2 * HOUR_MS } as const;
    const situation: Situation = { ...basis, mode: 'enforce', projectBusy: false };
    const sets = [NOON + 30 * 60_000, NOON, NOON - 30 * 60_000].map((currentSinceMs) => ({ currentSinceMs }));
    expect(causingSet(situation, evaluateNow(situation), sets)).toBe(sets[1]);
  });

  it('but not where the earlier set had wanted the value since the boundary, though the change was refused until then', () => {
    const noted = (notedAtMs: number) => ({
      ...{ record: aRecord({ wanted: { size: { fields: { minCu: 1, maxCu: 4 }, sinceMs: MORNING, notedAtMs } } }) },
      nowMs: MORNING + 3 * 60_000,
    });
    expect(isDue(MORNING + 60_000, noted(MORNING + 1_000))).toBe(false);
    // The new set has opened a window in the past; another daemon of the group may have taken it before.
    expect(isDue(MORNING + 60_000, noted(MORNING + 61_000))).toBe(true);
    expect(isDue(MORNING + 60_000, noted(MORNING + 50_000))).toBe(true);
    // Nobody takes a set before its approval.
    expect(isDue(MORNING + 20_000, noted(MORNING + 1_000), MORNING + 12_000)).toBe(false);
    expect(isDue(MORNING + 20_000, noted(MORNING + 15_000), MORNING + 12_000)).toBe(true);
    const atOnce = { record: aRecord({ wanted: { size: { fields: { minCu: 1, maxCu: 4 }, sinceMs: MORNING } } }) };
    expect(isDue(MORNING + 60_000, { ...atOnce, nowMs: MORNING + 3 * 60_000 })).toBe(false);
  });

  it('but not what a person holds', () => {
    const hold = aHold({ size: { minCu: 4, maxCu: 4 }, createdAtMs: NOON - HOUR_MS, expiresAtMs: NOON + HOUR_MS });
    expect(isDue(NOON - 10 * 60_000, { holds: [hold] })).toBe(false);
  });
});

describe('since when a change is due', () => {
  const hours = (from: number, until: number, maxCu: number) => ({
    at: [aWindow({ startMinute: 60 * from, endMinute: 60 * until })],
    size: { minCu: 1, maxCu },
  });
  const dueSince = (raises: boolean, maxCu: number, ...others: Policy[]) => {
    const policy = aSchedule({
      windows: [hours(8, 10, 8), hours(10, 12, 4)],
      otherwise: { size: { minCu: 1, maxCu: 1 } },
    });
    const compute = aCompute({ minCu: 1, maxCu });
    const situation = {
      policies: compiled(policy, ...others),
      compute,
      record: aRecord(),
      nowMs: MORNING + 3 * HOUR_MS,
    };
    return changeDueSince({ ...situation, mode: 'enforce', projectBusy: false }, { group: 'size', raises });
  };

  it('is the boundary that made it due, though another moved the size since', () => {
    expect(dueSince(true, 2)).toBe(MORNING);
  });

  it('does not depend on policies that only observe', () => {
    const otherwise = { size: { minCu: 1, maxCu: 8 } };
    const observing = aSchedule({ name: 'observing', mode: 'observe', priority: 900, windows: [], otherwise });
    expect(dueSince(true, 2, observing)).toBe(MORNING);
  });

  it('is the last boundary if nothing was due in this direction before', () => {
    expect(dueSince(false, 8)).toBe(MORNING + 2 * HOUR_MS);
    expect(dueSince(false, 16)).toBeLessThan(MORNING);
  });
});
