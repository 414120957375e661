import { describe, expect, it } from 'vitest';
import {
  degradedFailures,
  isDegraded,
  newlyDegraded,
  sameFields,
  withFailure,
  withoutFailures,
  withoutResolvedFailures,
} from '../../src/domain/records/failures.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const size = { minCu: 1, maxCu: 4 };
const failure = { desired: size, message: 'no', atMs: 5, isPermanent: false };

describe('withoutResolvedFailures', () => {
  const failures = { size: { count: 3, lastAtMs: 0, desired: size, message: 'no' } };

  it('forgets failures once the compute has what was wanted, however it got there', () => {
    expect(withoutResolvedFailures(aRecord({ failures }), aCompute(size)).failures).toBeUndefined();
    expect(withoutResolvedFailures(aRecord({ failures }), aCompute()).failures).toEqual(failures);
  });

  it('takes a value that ebb had asked for in vain for its own, when it is there after all', () => {
    const late = withoutResolvedFailures(aRecord({ failures, lastApplied: { minCu: 2, maxCu: 2 } }), aCompute(size));
    expect(late.lastApplied).toEqual(size);
  });

  it('forgets a failed restart once the compute has been started since', () => {
    const restart = aRecord({ failures: { restart: { count: 1, lastAtMs: 100, desired: {}, message: 'no' } } });
    expect(withoutResolvedFailures(restart, aCompute({ startedAtMs: 100 }))).toBe(restart);
    expect(withoutResolvedFailures(restart, aCompute({ startedAtMs: 101 })).failures).toBeUndefined();
  });

  it('evaluates no failure while a change or an operation is under way', () => {
    const open = { operationId: 'op', action: 'apply_config', startedAtMs: 0 };
    const intent = { fields: size, atMs: 0 };
    for (const busy of [aRecord({ failures, openOperations: [open] }), aRecord({ failures, intent })]) {
      expect(withoutResolvedFailures(busy, aCompute(size))).toBe(busy);
    }
  });
});

describe('withFailure', () => {
  it('counts failures of the same desired value, and starts again with another', () => {
    const twice = withFailure(withFailure(aRecord(), failure), failure);
    expect(twice.failures?.size?.count).toBe(2);
    expect(withFailure(twice, { ...failure, desired: { minCu: 2, maxCu: 2 } }).failures?.size?.count).toBe(1);
  });

  it('counts a permanent refusal as the last attempt once it is repeated', () => {
    const refused = withFailure(aRecord(), { ...failure, isPermanent: true });
    expect(refused.failures).toStrictEqual({
      size: { count: 1, lastAtMs: 5, desired: size, message: 'no', refused: true },
    });
    const again = withFailure(refused, { ...failure, isPermanent: true });
    expect([refused, again].map(({ failures }) => isDegraded(failures?.size))).toEqual([false, true]);
    expect(withFailure(again, { ...failure, isPermanent: true }).failures?.size?.count).toBe(4);
    const failedBetween = withFailure(withFailure(refused, failure), { ...failure, isPermanent: true });
    expect(failedBetween.failures?.size?.count).toBe(3);
    expect([undefined, { ...failure, count: 2, lastAtMs: 5 }].map(isDegraded)).toEqual([false, false]);
  });

  it('counts restarts, which want no fields', () => {
    const restart = { ...failure, desired: {} };
    const twice = withFailure(withFailure(aRecord(), restart), restart);
    expect(twice.failures).toStrictEqual({ restart: { count: 2, lastAtMs: 5, desired: {}, message: 'no' } });
    expect(withoutFailures(withFailure(twice, failure), {}).failures).toEqual({
      size: { count: 1, lastAtMs: 5, desired: size, message: 'no' },
    });
    expect(withoutFailures(twice, size)).toBe(twice);
  });

  it('distinguishes desired values by any of their fields', () => {
    const wish = { ...size, suspendTimeoutSeconds: 60 };
    const others = [{ ...wish, minCu: 2 }, { ...wish, maxCu: 8 }, { ...wish, suspendTimeoutSeconds: 300 }, size];
    expect(others.map((other) => sameFields(wish, other))).toEqual([false, false, false, false]);
    expect(sameFields(wish, { ...wish })).toBe(true);
  });

  it('keeps size, timeout and restart apart, so that one that is refused does not free another', () => {
    const once = withFailure(aRecord(), { ...failure, isPermanent: true });
    const refused = withFailure(once, { ...failure, isPermanent: true });
    const both = withFailure(refused, { ...failure, desired: { suspendTimeoutSeconds: -1 } });
    expect(both.failures).toMatchObject({ size: { count: 3 }, suspend_timeout: { count: 1 } });
    expect(withoutFailures(both, { suspendTimeoutSeconds: -1 }).failures).toEqual(refused.failures);
  });
});

it('degraded are the groups that failed three times, and newly so those that had not before', () => {
  const of = (count: number, desired = {}) => ({ count, lastAtMs: 0, desired, message: `${count}` });
  const failures = { size: of(4, size), suspend_timeout: of(3, { suspendTimeoutSeconds: 60 }), restart: of(2) };
  expect(degradedFailures({ failures }).map(({ count }) => count)).toEqual([4, 3]);
  expect(degradedFailures({})).toEqual([]);
  const [before, after] = [aRecord({ failures: { size: of(3, size) } }), aRecord({ failures })];
  expect(newlyDegraded(before, after)).toMatchObject({ count: 3, desired: { suspendTimeoutSeconds: 60 } });
  expect(newlyDegraded(aRecord(), after)?.desired).toEqual({ ...size, suspendTimeoutSeconds: 60 });
  expect(newlyDegraded(after, after)).toBeUndefined();
});
