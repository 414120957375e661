import { describe, expect, it } from 'vitest';
import { complianceOf, withCompliance } from '../../../src/domain/evaluate/trials.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aTrial, at, compiled } from '../../support/builders.ts';

const DAY = 86_400_000;
const FROM = at('2026-03-02T00:00:00Z');
const TRIAL = aTrial();
const policies = compiled(TRIAL);
const BASELINE = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 };
const stored = { slot: 0, flipDelayMs: 0, baseline: BASELINE, terms: TRIAL.digest, sinceMs: FROM };
const compute = aCompute(BASELINE);

/** Looked at on a day of the trial, with the size that is to be, or another. */
const seen = (record: ComputeRecord, day: number, isKept = true) =>
  withCompliance(policies, compute, record, {
    instantMs: FROM + day * DAY,
    enforced: { size: { minCu: 2, maxCu: isKept ? 2 : 4 }, suspendTimeoutSeconds: null },
  });
const sharesOf = (record: ComputeRecord, day: number) =>
  complianceOf(TRIAL.design, [record.trials?.proof?.kept ?? []].flat(), FROM + day * DAY);

describe('compliance with a trial', () => {
  it('is the share of the time in each arm with what the arm is to have', () => {
    // Control in the first week and from the fifth week on for another; two days of the first are not kept, and one of the second.
    let record = seen(aRecord({ trials: { proof: stored } }), 0, false);
    record = seen(record, 2);
    record = seen(record, 7);
    record = seen(record, 13, false);
    record = seen(record, 14);
    expect(sharesOf(record, 21)).toEqual({ control: 5 / 7, treated: 13 / 14 });
  });

  it('is written only when it changes', () => {
    const begun = seen(aRecord({ trials: { proof: stored } }), 0);
    expect(seen(begun, 3)).toBe(begun);
    expect(sharesOf(begun, 3)).toEqual({ control: 1, treated: null });
    expect(seen(begun, 7)).not.toBe(begun);
  });

  it('ends with the trial', () => {
    const begun = seen(aRecord({ trials: { proof: stored } }), 50);
    const over = seen(begun, 56);
    expect(seen(over, 400, false)).toBe(over);
    expect(sharesOf(over, 400)).toEqual({ control: null, treated: 1 });
    expect(sharesOf(seen(aRecord({ trials: { proof: stored } }), 50, false), 400)).toEqual({
      control: null,
      treated: 0,
    });
  });

  it('is not known of a compute that is in no arm', () => {
    const apart = aRecord({ trials: { proof: { ...stored, baseline: null } } });
    expect(seen(apart, 3)).toBe(apart);
    expect(seen(aRecord(), 3)).toEqual(aRecord());
    expect(complianceOf(TRIAL.design, [], FROM)).toEqual({ control: null, treated: null });
  });
});
