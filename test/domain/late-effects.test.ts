/** A change without an answer counts as lost, another one is made, and then the first takes effect. */
import { describe, expect, it } from 'vitest';
import { recordAfter } from '../../src/app/apply/record-update.ts';
import { type Compute, settingsOf } from '../../src/domain/compute/compute.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { confirmWrite, LATE_EFFECT_MS } from '../../src/domain/records/failures.ts';
import { aCompute, aRecord, aSchedule, at, compiled, planFor } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const SECOND = 1_000;
const size = (cu: number) => ({ minCu: cu, maxCu: cu });
const sized = (cu: number, updatedAtMs?: number) =>
  aCompute({ ...size(cu), state: 'idle', ...(updatedAtMs !== undefined && { updatedAtMs }) });
const wanting = (cu: number) => compiled(aSchedule({ windows: [], otherwise: { size: size(cu) } }));

/** What becomes of a record by a reading at the instant, where 4 CU are wanted. */
const seeing = (record: ComputeRecord, compute: Compute, readAtMs: number, wanted = wanting(4)) =>
  updatedRecord(record, compute, { policies: wanted, nowMs: readAtMs, readAtMs, holds: [] });

/** 2 CU were sent at noon without an answer, in place of 1, and count as lost. */
function lost(record: ComputeRecord = aRecord({ baseline: settingsOf(sized(1)), lastApplied: size(1) })) {
  const intent = { fields: size(2), before: settingsOf(sized(1)), atMs: NOON };
  return seeing(confirmWrite({ ...record, intent }, sized(1), NOON + 20 * SECOND), sized(1), NOON + 20 * SECOND);
}

/** The record after 4 CU were sent and answered. */
function answered(record: ComputeRecord, answeredAtMs: number, updatedAtMs = answeredAtMs): ComputeRecord {
  const action: Action = {
    ...{ kind: 'update', fields: size(4), disconnects: false, raises: true, policy: 'office', priority: 0 },
  };
  const intended = { ...record, intent: { fields: size(4), before: settingsOf(sized(1)), atMs: answeredAtMs } };
  const value = { settings: settingsOf(sized(4)), state: 'idle' as const, updatedAtMs, operations: [] };
  return recordAfter(intended, action, { ok: true, value }, answeredAtMs);
}

describe('a change that takes effect late, after another one was answered', () => {
  const other = answered(lost(), NOON + 25 * SECOND);
  const late = sized(2, NOON + 30 * SECOND);

  it('is no change by a person and no baseline, and is changed again with its reason', () => {
    const seen = seeing(other, late, NOON + 31 * SECOND);
    const later = seeing(seen, late, NOON + 90 * SECOND);
    for (const record of [seen, later]) {
      expect(record).not.toHaveProperty('manual');
      expect(record.baseline).toEqual(settingsOf(sized(1)));
    }
    const plan = planFor({ policies: wanting(4), compute: late, record: later, nowMs: NOON + 90 * SECOND });
    expect(plan.actions).toMatchObject([{ fields: size(4) }]);
    expect(plan.reasons.map(({ code }) => code)).toEqual(['otherwise', 'late_effect']);
    expect(plan.reasons[1]?.message).toBe('2 CU took effect late, by a change that had got no clear answer');
  });

  it('is none either where nothing is wanted any more, or before ebb has applied anything', () => {
    const seen = seeing(other, late, NOON + 31 * SECOND, compiled());
    const after = seeing(seen, late, NOON + LATE_EFFECT_MS + 90 * SECOND, compiled());
    expect(after).not.toHaveProperty('manual');
    expect(after.baseline).toEqual(settingsOf(sized(1)));
    const never = lost(aRecord({ baseline: settingsOf(sized(1)), lastApplied: {} }));
    const refused = { ...never, failures: { size: { count: 1, lastAtMs: NOON, desired: size(8), message: 'no' } } };
    expect(seeing(refused, late, NOON + 31 * SECOND).baseline).toEqual(settingsOf(sized(1)));
  });

  it('is known by its date to a daemon that was away, and not where it has a later one', () => {
    const back = NOON + 3 * LATE_EFFECT_MS;
    expect(seeing(other, late, back)).not.toHaveProperty('manual');
    expect(seeing(other, sized(2, back - SECOND), back).manual?.size?.fields).toEqual(size(2));
    // A date that changes do not move says nothing.
    const undated = answered(lost(), NOON + 25 * SECOND, NOON - 600 * SECOND);
    expect(seeing(undated, sized(2, NOON - 600 * SECOND), back).manual?.size?.fields).toEqual(size(2));
  });

  it('is one time only: after that a person sets the same value', () => {
    const corrected = answered(seeing(other, late, NOON + 31 * SECOND), NOON + 35 * SECOND);
    const again = seeing(corrected, sized(2, NOON + 60 * SECOND), NOON + 61 * SECOND);
    expect(again.manual?.size?.fields).toEqual(size(2));
  });

  it('leaves any other value to people, and after its time this one too', () => {
    expect(seeing(other, sized(8, NOON + 30 * SECOND), NOON + 31 * SECOND).manual?.size?.fields).toEqual(size(8));
    const tooLate = NOON + LATE_EFFECT_MS;
    expect(seeing(other, sized(2), tooLate - 1)).not.toHaveProperty('manual');
    const after = seeing(other, sized(2), tooLate);
    expect(after.manual?.size?.fields).toEqual(size(2));
    expect(after).not.toHaveProperty('lostWrites');
  });

  it('makes earlier readings old: one with the values before it is no change by a person', () => {
    const seen = seeing(other, late, NOON + 31 * SECOND);
    const older = seeing(seen, sized(4, NOON + 25 * SECOND), NOON + 40 * SECOND);
    expect(older.lagging?.size).toBe(true);
    expect(older).not.toHaveProperty('manual');
  });

  it('waits until nothing is under way, and for a reading that is not old', () => {
    expect(seeing(other, { ...late, pendingState: 'active' }, NOON + 31 * SECOND)).toEqual(other);
    const before = seeing(other, sized(2, NOON + 24 * SECOND), NOON + 31 * SECOND);
    expect(before.lastApplied).toEqual(size(4));
  });
});

it('of many changes without an answer the last ten are remembered', () => {
  let record = aRecord({ lastApplied: size(1) });
  for (let cu = 2; cu < 14; cu += 1) {
    record = confirmWrite({ ...record, intent: { fields: size(cu), atMs: NOON } }, sized(1), NOON + 20 * SECOND);
  }
  expect(record.lostWrites?.size?.map(({ fields }) => fields.maxCu)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
});
