import { describe, expect, it } from 'vitest';
import { forgetOvercome, withFailure, withoutFailures } from '../../src/domain/failures.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const size = { minCu: 1, maxCu: 4 };
const failure = { desired: size, message: 'no', atMs: 5, permanent: false };

describe('forgetOvercome', () => {
  const failures = { size: { count: 3, lastAtMs: 0, desired: size, message: 'no' } };

  it('forgets failures once the compute has what was wanted, however it got there', () => {
    expect(forgetOvercome(aRecord({ failures }), aCompute(size)).failures).toBeUndefined();
    expect(forgetOvercome(aRecord({ failures }), aCompute()).failures).toEqual(failures);
  });

  it('forgets a failed restart once the compute has been started since', () => {
    const restart = aRecord({ failures: { restart: { count: 1, lastAtMs: 100, desired: {}, message: 'no' } } });
    expect(forgetOvercome(restart, aCompute({ startedAtMs: 100 }))).toBe(restart);
    expect(forgetOvercome(restart, aCompute({ startedAtMs: 101 })).failures).toBeUndefined();
  });
});

describe('withFailure', () => {
  it('counts failures of the same wish, and starts anew with another', () => {
    const twice = withFailure(withFailure(aRecord(), failure), failure);
    expect(twice.failures?.size?.count).toBe(2);
    expect(withFailure(twice, { ...failure, desired: { minCu: 2, maxCu: 2 } }).failures?.size?.count).toBe(1);
  });

  it('counts a permanent refusal as the last attempt', () => {
    expect(withFailure(aRecord(), { ...failure, permanent: true }).failures?.size?.count).toBe(3);
  });

  it('keeps size, timeout and restart apart, so that one that is refused does not free another', () => {
    const refused = withFailure(aRecord(), { ...failure, permanent: true });
    const both = withFailure(refused, { ...failure, desired: { suspendTimeoutSeconds: -1 } });
    expect(both.failures).toMatchObject({ size: { count: 3 }, suspend_timeout: { count: 1 } });
    expect(withoutFailures(both, { suspendTimeoutSeconds: -1 }).failures).toEqual(refused.failures);
  });
});
