import { describe, expect, it } from 'vitest';
import type { ComputeSettings } from '../../../src/domain/compute/compute.ts';
import { decide } from '../../../src/domain/decide/decide.ts';
import { isBeyond } from '../../../src/domain/decide/stages/limits.ts';
import type { LimitsPolicy } from '../../../src/domain/policy/kinds/limits.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { ScheduleValues } from '../../../src/domain/policy/schedule-window.ts';
import { aCompute, aHold, aLimits, aSchedule, at, compiled } from '../../support/builders.ts';
import { traceOf } from './trace-text.ts';

const BASELINE: ComputeSettings = { minCu: 1, maxCu: 8, suspendTimeoutSeconds: -1 };
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });

const wanting = (otherwise: ScheduleValues): Policy => aSchedule({ name: 'schedule', windows: [], otherwise });

function decideWith(policies: Policy[], { baseline = BASELINE as ComputeSettings | null, holds = [aHold()] } = {}) {
  return decide({
    policies: compiled(...policies),
    compute: aCompute(),
    baseline: baseline ?? undefined,
    holds,
    instantMs: at('2026-03-02T12:00:00Z'),
  });
}

describe('limits', () => {
  it.each<[string, ScheduleValues['size'], Partial<LimitsPolicy>, string[]]>([
    ['leave what is within them', size(1, 4), {}, ['otherwise schedule → 1-4 CU', 'within_limits limits']],
    ['lower a maximum', size(1, 8), {}, ['otherwise schedule → 1-8 CU', 'limited limits → 1-4 CU']],
    ['lower both ends', size(6, 8), {}, ['otherwise schedule → 6-8 CU', 'limited limits → 4 CU']],
    [
      'raise a minimum',
      size(0.25, 2),
      { size: { minCu: 1 } },
      ['otherwise schedule → 0.25-2 CU', 'limited limits → 1-2 CU'],
    ],
    ['raise both ends', size(1, 2), { size: { minCu: 20 } }, ['otherwise schedule → 1-2 CU', 'limited limits → 20 CU']],
    ['take the baseline where nothing has an opinion', undefined, {}, ['no_value', 'limited limits → 1-4 CU']],
    [
      'give back the baseline within them',
      undefined,
      { size: { maxCu: 8 } },
      ['no_value', 'within_limits limits → 1-8 CU'],
    ],
  ])('%s', (_what, wanted, bounds, expected) => {
    const policies = [...(wanted ? [wanting({ size: wanted })] : []), aLimits(bounds)];
    expect(traceOf(decideWith(policies), 'size')).toEqual(expected);
  });

  it.each<[string, number, NonNullable<LimitsPolicy['suspendTimeout']>, number]>([
    ['shorten', 600, { maxSeconds: 300 }, 300],
    ['shorten "never"', -1, { maxSeconds: 300 }, 300],
    ['lengthen', 60, { minSeconds: 300 }, 300],
    ['lengthen to "never"', 60, { minSeconds: -1 }, -1],
    ['leave, without an end', -1, { minSeconds: 300 }, -1],
    ['leave, with "never" as the end', -1, { maxSeconds: -1 }, -1],
  ])('%s timeouts', (_what, suspendTimeoutSeconds, suspendTimeout, expected) => {
    const { size: _none, ...limits } = aLimits({ suspendTimeout });
    const decision = decideWith([wanting({ suspendTimeoutSeconds }), limits]);
    expect(decision.desired.suspendTimeoutSeconds).toBe(expected);
    expect(traceOf(decision, 'size')).toEqual(['no_value']);
  });

  it('of timeouts are told like those of sizes, and named for the end that they set', () => {
    const bounds = (name: string, suspendTimeout: LimitsPolicy['suspendTimeout']) => {
      const { size: _none, ...limits } = aLimits({ name });
      return { ...limits, ...(suspendTimeout && { suspendTimeout }) };
    };
    const both = [bounds('floor', { minSeconds: 120 }), bounds('ceiling', { maxSeconds: 600 })];
    const told = (...policies: Policy[]) => traceOf(decideWith([...policies, ...both]), 'suspend_timeout').slice(1);
    expect(told(wanting({ suspendTimeoutSeconds: 900 }))).toEqual(['limited ceiling → 10m']);
    expect(told(wanting({ suspendTimeoutSeconds: 60 }))).toEqual(['limited floor → 2m']);
    expect(told(wanting({ suspendTimeoutSeconds: 300 }))).toEqual([expect.stringMatching(/^within_limits \w+$/)]);
    expect(told()).toEqual(['limited ceiling → 10m']);
  });

  it('say so while the baseline is not known', () => {
    expect(traceOf(decideWith([aLimits()], { baseline: null }), 'size')).toEqual([
      'no_value',
      'baseline_unknown limits',
    ]);
  });

  it('hold together, each named for the end that it sets', () => {
    const ceiling = aLimits({ name: 'ceiling', size: { maxCu: 4 } });
    const floor = aLimits({ name: 'floor', size: { minCu: 2, maxCu: 6 } });
    for (const both of [
      [ceiling, floor],
      [floor, ceiling],
    ]) {
      expect(traceOf(decideWith([wanting({ size: size(1, 8) }), ...both]), 'size').at(-1)).toBe(
        'limited ceiling → 2-4 CU',
      );
      expect(traceOf(decideWith([wanting({ size: size(1) }), ...both]), 'size').at(-1)).toBe('limited floor → 2 CU');
      expect(traceOf(decideWith([wanting({ size: size(1, 4) }), ...both]), 'size').at(-1)).toBe(
        'limited floor → 2-4 CU',
      );
    }
  });

  it('that exclude each other: the later wins, and it is said', () => {
    const small = aLimits({ name: 'small', size: { maxCu: 1 } });
    const large = aLimits({ name: 'large', size: { minCu: 2 } });
    const touching = aLimits({ name: 'touching', size: { minCu: 1 } });
    const sizes = (...limits: Policy[]) =>
      traceOf(decideWith([wanting({ size: size(1, 2) }), ...limits]), 'size').slice(1);
    expect(sizes(small, large)).toEqual(['limits_conflict small', 'limited large → 2 CU']);
    expect(sizes(large, small)).toEqual(['limits_conflict large', 'limited small → 1 CU']);
    expect(sizes(small, touching)).toEqual(['limited small → 1 CU']);
  });
});

describe('hard limits', () => {
  const hold = aHold({ size: size(8), suspendTimeoutSeconds: -1 });
  const timeout = { maxSeconds: 600 };

  it('clamp what a hold sets; others do not', () => {
    const soft = decideWith([aLimits({ suspendTimeout: timeout })], { holds: [hold] });
    expect(soft.desired).toEqual({ size: size(8), suspendTimeoutSeconds: -1 });
    const hard = decideWith([aLimits({ hard: true, suspendTimeout: timeout })], { holds: [hold] });
    expect(traceOf(hard, 'size').slice(-2)).toEqual(['hold h1 → 8 CU', 'hard_limit limits → 4 CU']);
    expect(traceOf(hard, 'suspend_timeout').slice(-2)).toEqual(['hold h1 → never', 'hard_limit limits → 10m']);
  });

  it('say nothing where nothing is decided, nor where all is within them', () => {
    const nothing = decideWith([aLimits({ hard: true })], { baseline: null });
    expect(traceOf(nothing, 'size')).toEqual(['no_value', 'baseline_unknown limits']);
    const timed = decideWith([aLimits({ hard: true, suspendTimeout: timeout })], { baseline: null });
    expect(traceOf(timed, 'suspend_timeout')).toEqual(['no_value', 'baseline_unknown limits']);
    expect(traceOf(decideWith([aLimits({ hard: true }), wanting({ size: size(1) })]), 'size')).toEqual([
      'otherwise schedule → 1 CU',
      'within_limits limits',
    ]);
  });

  it('are known to those who ask whether a value may stay', () => {
    const limits = aLimits({ hard: true, size: { minCu: 1, maxCu: 4 }, suspendTimeout: timeout });
    const { hardLimits } = decideWith([limits, aLimits()]);
    const beyond = (fields: Partial<ComputeSettings>, group: 'size' | 'suspend_timeout') =>
      hardLimits.some((hard) => isBeyond(hard, group, { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 600, ...fields }));
    expect(beyond({}, 'size')).toBe(false);
    expect(beyond({ maxCu: 5 }, 'size')).toBe(true);
    expect(beyond({ minCu: 0.5 }, 'size')).toBe(true);
    expect(beyond({}, 'suspend_timeout')).toBe(false);
    expect(beyond({ suspendTimeoutSeconds: -1 }, 'suspend_timeout')).toBe(true);
    expect(hardLimits.map(({ policy }) => policy)).toEqual([limits]);
    const [sized] = decideWith([aLimits({ hard: true })]).hardLimits;
    expect(sized && isBeyond(sized, 'suspend_timeout', BASELINE)).toBe(false);
  });
});
