import { describe, expect, it } from 'vitest';
import { forgetOvercome, settleIntent, withFailure } from '../../src/domain/records.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const intent = { fields: { minCu: 1, maxCu: 4 }, atMs: 1000 };

describe('settleIntent', () => {
  it('takes a change that is there for applied', () => {
    const settled = settleIntent(aRecord({ intent }), aCompute({ minCu: 1, maxCu: 4 }), 1001);
    expect(settled.intent).toBeUndefined();
    expect(settled.lastApplied).toMatchObject({ minCu: 1, maxCu: 4 });
  });

  it('keeps a change that may still arrive, and forgets one that no longer can', () => {
    expect(settleIntent(aRecord({ intent }), aCompute(), 30_999).intent).toEqual(intent);
    const lost = settleIntent(aRecord({ intent }), aCompute(), 31_000);
    expect(lost.intent).toBeUndefined();
    expect(lost.failures).toMatchObject({ count: 1, desired: intent.fields });
  });
});

describe('forgetOvercome', () => {
  const failures = { count: 3, lastAtMs: 0, desired: { minCu: 1, maxCu: 4 }, message: 'no' };

  it('forgets failures once the compute has what was wanted, however it got there', () => {
    expect(forgetOvercome(aRecord({ failures }), aCompute({ minCu: 1, maxCu: 4 })).failures).toBeUndefined();
    expect(forgetOvercome(aRecord({ failures }), aCompute()).failures).toEqual(failures);
  });
});

describe('withFailure', () => {
  const failure = { desired: { minCu: 1, maxCu: 4 }, message: 'no', atMs: 5, permanent: false };

  it('counts failures of the same wish, and starts anew with another', () => {
    const twice = withFailure(withFailure(aRecord(), failure), failure);
    expect(twice.failures?.count).toBe(2);
    expect(withFailure(twice, { ...failure, desired: { minCu: 2, maxCu: 2 } }).failures?.count).toBe(1);
  });

  it('counts a refusal as the last attempt', () => {
    expect(withFailure(aRecord(), { ...failure, permanent: true }).failures?.count).toBe(3);
  });
});
