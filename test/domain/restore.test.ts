import { describe, expect, it } from 'vitest';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import { withoutDecided, withoutRestoredFields, withRestore } from '../../src/domain/overrides/restore.ts';
import { releaseRecord, stoppedGroups } from '../../src/domain/records/fights.ts';
import { aCompute, aHold, aRecord, aSchedule, at, compiled, planFor } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOW = at('2026-03-02T20:00:00Z');
const HOUR_MS = 3_600_000;
const changed = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: 600 };
const compute = aCompute({ ...changed, state: 'idle' });
const record = aRecord({ lastApplied: changed });
const wanted = withRestore(record, { owner: 'ann', nowMs: NOW, now: false });
const about = { compute, nowMs: NOW, mode: 'enforce' as const, projectBusy: false };
const elsewhere = compiled(aSchedule({ select: aSelector({ projects: ['other'] }) }));

describe('a restore', () => {
  it('brings a compute that no policy selects back to its baseline, once', () => {
    const plan = planFor({ policies: elsewhere, compute, record: wanted, nowMs: NOW });
    expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: record.baseline, policy: 'restore' }] });
    expect(plan.reasons[0]?.message).toContain('as ann asked');
    const back = aCompute({ ...record.baseline });
    expect(withoutRestoredFields(wanted, back)).toEqual(record);
    expect(withoutRestoredFields(wanted, compute)).toBe(wanted);
  });

  it('leaves to policies the fields that they set', () => {
    const policies = compiled(aSchedule({ otherwise: { size: { minCu: 1, maxCu: 1 } } }));
    const { decision } = evaluate({
      policies,
      compute,
      record: wanted,
      nowMs: NOW,
      mode: 'enforce',
      projectBusy: false,
    });
    expect(decision.desired).toEqual({ size: { minCu: 1, maxCu: 1 }, suspendTimeoutSeconds: 300 });
  });

  it('is dropped as far as policies decide, and does not come back when they no longer do', () => {
    const policies = compiled(aSchedule({ otherwise: { size: { minCu: 1, maxCu: 1 } } }));
    const left = withoutDecided(wanted, compute, evaluate({ ...about, policies, record: wanted }).decision);
    expect(left.restore).toEqual({ ...wanted.restore, fields: ['suspend_timeout'] });
    const later = evaluate({ ...about, policies: elsewhere, record: left });
    expect(later.decision.desired).toEqual({ size: null, suspendTimeoutSeconds: 300 });
    expect(withoutDecided(left, compute, later.decision)).toBe(left);
    expect(withoutRestoredFields(left, aCompute({ ...changed, suspendTimeoutSeconds: 300 }))).toEqual(record);
    const both = compiled(aSchedule({ otherwise: { size: { minCu: 1, maxCu: 1 }, suspendTimeoutSeconds: 600 } }));
    expect(withoutDecided(wanted, compute, evaluate({ ...about, policies: both, record: wanted }).decision)).toEqual(
      record,
    );
  });

  it('ends field by field: what is back and is changed by a person then is not taken back again', () => {
    const partly = withoutRestoredFields(wanted, aCompute({ ...changed, suspendTimeoutSeconds: 300 }));
    expect(partly.restore).toEqual({ ...wanted.restore, fields: ['size'] });
    const byHand = aCompute({ ...changed, suspendTimeoutSeconds: 900, state: 'idle' });
    const { decision } = evaluate({ ...about, compute: byHand, policies: elsewhere, record: partly });
    expect(decision.desired.suspendTimeoutSeconds).toBe(null);
    expect(
      withoutRestoredFields({ ...wanted, lagging: { suspend_timeout: true } }, aCompute(record.baseline)).restore,
    ).toEqual({
      ...wanted.restore,
      fields: ['suspend_timeout'],
    });
  });

  it('to the values of a file keeps them as the baseline, also where ebb has changed nothing that it knows of', () => {
    const baseline = { minCu: 8, maxCu: 8, suspendTimeoutSeconds: -1 };
    const asked = withRestore(aRecord({ baseline, lastApplied: {} }), { owner: 'ann', nowMs: NOW, now: false });
    const seen = updatedRecord(asked, compute, { policies: elsewhere, nowMs: NOW + HOUR_MS });
    expect(seen.baseline).toEqual(baseline);
    const plan = planFor({ policies: elsewhere, compute, record: seen, nowMs: NOW + HOUR_MS });
    expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: baseline }] });
  });

  it('of a timeout ends where a compute above 16 CU can have none', () => {
    const large = aCompute({ minCu: 20, maxCu: 20, suspendTimeoutSeconds: -1 });
    const asked = withRestore(record, { owner: 'ann', nowMs: NOW, now: false, fields: ['suspend_timeout'] });
    const { decision } = evaluate({ ...about, compute: large, policies: elsewhere, record: asked });
    expect(withoutDecided(asked, large, decision)).toEqual(record);
    const both = evaluate({ ...about, compute: large, policies: elsewhere, record: wanted });
    expect(withoutDecided(wanted, large, both.decision)).toBe(wanted);
  });

  it('of a held compute waits for the end of the hold, since no policy decides', () => {
    const hold = aHold({ size: { minCu: 1, maxCu: 1 } });
    const { decision } = evaluate({ ...about, policies: elsewhere, record: wanted, holds: [hold] });
    expect(decision.enforced.size).toEqual({ minCu: 1, maxCu: 1 });
    expect(decision.setBy).toEqual({});
    expect(withoutDecided(wanted, compute, decision)).toBe(wanted);
  });

  it('waits for sleep, two hours from the asking, unless it is to be now', () => {
    const active = aCompute({ ...changed, state: 'active' });
    const planAt = (nowMs: number, one = wanted) =>
      planFor({ policies: elsewhere, compute: active, record: one, nowMs });
    expect(planAt(NOW + HOUR_MS)).toMatchObject({ heldBy: ['waiting_for_idle'], untilMs: NOW + 2 * HOUR_MS });
    expect(planAt(NOW + 2 * HOUR_MS).heldBy).toEqual([]);
    const now = withRestore(record, { owner: 'ann', nowMs: NOW, now: true });
    expect(planAt(NOW, now).heldBy).toEqual([]);
  });

  it('is no longer wanted after a day', () => {
    const nowMs = NOW + 24 * HOUR_MS;
    expect(planFor({ policies: elsewhere, compute, record: wanted, nowMs }).verdict).toBe('none');
    const { decision } = evaluate({ ...about, policies: elsewhere, record: wanted, nowMs });
    expect(withoutDecided(wanted, compute, decision)).toEqual(record);
  });
});

describe('a release', () => {
  it('ends a stopped fight and the respect for a manual change, without detecting it again', () => {
    const stopped = aRecord({
      reversals: { size: [NOW - 3, NOW - 2, NOW - 1] },
      manual: { size: { fields: { minCu: 2, maxCu: 4 }, seenAtMs: NOW - 1, raises: true } },
    });
    const policies = compiled(aSchedule());
    const held = (one: typeof stopped) => planFor({ policies, compute, record: one, nowMs: NOW }).heldBy;
    expect(held(stopped)).toContain('manual_change');
    expect(held(releaseRecord(stopped))).toEqual([]);
    expect(releaseRecord(releaseRecord(stopped))).toEqual(releaseRecord(stopped));
  });

  it('is of fights and of changes by hand, where there are any', () => {
    const fields = { minCu: 2, maxCu: 4 };
    const [old, recent] = [0, NOW].map((seenAtMs) => ({ fields, seenAtMs, raises: true }));
    const reversals = { size: [NOW - 3, NOW - 2, NOW - 1] };
    const few = { size: [NOW] };
    const manual = { ...(old && { size: old }), ...(recent && { suspend_timeout: recent }) };
    expect(releaseRecord(aRecord({ reversals }))).toStrictEqual(aRecord());
    expect(releaseRecord(aRecord({ reversals: few, manual }))).toStrictEqual(
      aRecord({ reversals: few, manual: { ...manual, ...(old && { suspend_timeout: old }) } }),
    );
    expect(stoppedGroups(aRecord({ reversals: { suspend_timeout: reversals.size, size: few.size } }))).toEqual([
      'suspend_timeout',
    ]);
  });

  it('leaves a record alone in which nothing is stopped', () => {
    const released = aRecord({ manual: { size: { fields: changed, seenAtMs: 0, raises: true } } });
    expect([releaseRecord(record), releaseRecord(released)]).toEqual([record, released]);
    expect(releaseRecord(released)).toBe(released);
    expect(releaseRecord(record)).toBe(record);
  });
});
