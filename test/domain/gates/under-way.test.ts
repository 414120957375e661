import { describe, expect, it } from 'vitest';
import type { Failures } from '../../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aSchedule, at, compiled, planFor } from '../../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const wanted = { minCu: 1, maxCu: 4 };
const policies = compiled(aSchedule({ windows: [], otherwise: { size: wanted, suspendTimeoutSeconds: 60 } }));
const open = { operationId: 'op', action: 'apply_config', startedAtMs: NOON };

type Options = Partial<Parameters<typeof planFor>[0]>;
const planWith = (options: Options) =>
  planFor({ policies, compute: aCompute({ suspendTimeoutSeconds: 60 }), record: aRecord(), nowMs: NOON, ...options });
const whyHeld = (options: Options) => planWith(options).reasons.at(-1)?.message;

describe('what is under way', () => {
  it.each<[string, Options, string, string]>([
    [
      'a change without an answer',
      { record: aRecord({ intent: { fields: wanted, atMs: NOON } }) },
      'answer_unknown',
      'a change was sent and got no clear answer; it may still take effect',
    ],
    [
      'an operation of the compute',
      { record: aRecord({ openOperations: [open] }) },
      'operation_running',
      'an operation of this compute is under way',
    ],
    [
      'an operation of its project',
      { projectBusy: true },
      'operation_running',
      'an operation of this project is under way',
    ],
  ])('%s holds everything back, and is told', (_what, options, code, message) => {
    const both = { ...options, compute: aCompute() };
    expect(planWith(both)).toMatchObject({ verdict: 'wait', heldBy: [code, code] });
    expect(whyHeld(options)).toBe(message);
  });
});

describe('a change that failed before', () => {
  const failed = (fields: Partial<Failures> = {}) =>
    aRecord({ failures: { size: { count: 1, lastAtMs: NOON, desired: wanted, message: 'no room', ...fields } } });

  it('is tried again after 20 s, to the millisecond', () => {
    const options = { record: failed(), nowMs: NOON + 19_999 };
    expect(planWith(options)).toMatchObject({ heldBy: ['retry_later'], untilMs: NOON + 20_000 });
    expect(whyHeld(options)).toBe('failed 1×, last: no room');
    expect(planWith({ record: failed(), nowMs: NOON + 20_000 }).verdict).toBe('act');
  });

  it('is tried again after 60 s where it was refused', () => {
    const record = failed({ refused: true });
    expect(planWith({ record, nowMs: NOON + 59_999 })).toMatchObject({
      heldBy: ['retry_later'],
      untilMs: NOON + 60_000,
    });
    expect(planWith({ record, nowMs: NOON + 60_000 }).verdict).toBe('act');
  });

  it('is degraded at the third failure', () => {
    expect(planWith({ record: failed({ count: 2 }) }).heldBy).toEqual(['retry_later']);
    expect(planWith({ record: failed({ count: 3 }) }).heldBy).toEqual(['degraded']);
  });

  it('does not block another desired value, nor the other field', () => {
    expect(planWith({ record: failed({ desired: { minCu: 1, maxCu: 8 } }) }).verdict).toBe('act');
    expect(planWith({ record: failed(), compute: aCompute() })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: { suspendTimeoutSeconds: 60 } }],
      heldBy: ['retry_later'],
    });
  });
});
