import { describe, expect, it } from 'vitest';
import {
  canonicalSuspendTimeout,
  fieldsOf,
  longerTimeout,
  sameSize,
  settingsOf,
} from '../../src/domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../src/domain/compute/compute-units.ts';
import { describeStep, describeValue, stepJson } from '../../src/domain/decide/trace.ts';
import type { ProposedValues } from '../../src/domain/policy/directive.ts';
import { aCompute, aHeadroom, aHold, aSchedule, at } from '../support/builders.ts';

const policy = aSchedule({ priority: 3 });
const proposal = (fields: Partial<ProposedValues>): ProposedValues => ({
  ...{ type: 'values', policy, policyIndex: 0, source: 'recurring', windowIndex: 1 },
  openSinceMs: at('2026-03-02T08:00:00Z'),
  ...fields,
});

describe('a step of a trace in words', () => {
  it.each<[string, Partial<ProposedValues>]>([
    ['window 2 of office-hours, priority 3, open since 2026-03-02T08:00:00Z', {}],
    ['interval 2 of office-hours, priority 3, open since 2026-03-02T08:00:00Z', { source: 'absolute' }],
    ['window 2 of office-hours, priority 3, opens at 2026-03-02T08:00:00Z', { startsEarly: true }],
    ['window 2 of office-hours, priority 3, open since ever', { openSinceMs: Number.NEGATIVE_INFINITY }],
    ['otherwise of office-hours, priority 3', { source: 'otherwise', windowIndex: -1 }],
  ])('%s', (text, fields) => {
    expect(describeStep({ group: 'size', code: 'window_open', proposal: proposal(fields) })).toBe(text);
  });

  it('names the policy, the hold, the person, or says what the code means', () => {
    const step = { group: 'size', code: 'hold' } as const;
    expect(describeStep({ ...step, policy: aHeadroom() })).toBe('headroom headroom');
    expect(describeStep({ ...step, hold: aHold() })).toBe('hold of ann until 2100-01-01T00:00:00Z: load test');
    const restore = { owner: 'bob', askedAtMs: 0, expiresAtMs: 1 };
    expect(describeStep({ ...step, restore })).toBe('back to the baseline, as bob asked');
    expect(describeStep({ ...step, code: 'no_value' })).toBe('no policy that selects the compute sets the field now');
  });

  it('shows what it changed, and the connections that it is about', () => {
    const size = { minCu: 1, maxCu: 2 };
    const step = { group: 'size', code: 'headroom', policy: aHeadroom(), before: size } as const;
    const after = { minCu: 1, maxCu: 4 };
    const connections = { peak: 7, need: 10, usable: 12 };
    expect(describeStep({ ...step, after })).toBe('headroom headroom (1-2 CU → 1-4 CU)');
    expect(describeStep({ ...step, connections })).toBe('headroom headroom (peak 7 connections, 10 needed, 12 usable)');
    expect(describeStep({ ...step, after, connections })).toBe(
      'headroom headroom (1-2 CU → 1-4 CU; peak 7 connections, 10 needed, 12 usable)',
    );
    expect(describeStep({ ...step, before: null, after })).toBe('headroom headroom');
    expect(describeStep({ ...step, after: null })).toBe('headroom headroom');
  });

  it('has the same for other programs', () => {
    const policy = aHeadroom({ mode: 'observe' });
    const size = { minCu: 1, maxCu: 2 };
    const connections = { peak: 7, need: 10, usable: 12 };
    const json = { min_cu: 1, max_cu: 2 };
    expect(stepJson({ group: 'size', code: 'headroom', policy, before: null, after: size, connections })).toStrictEqual(
      {
        ...{ group: 'size', code: 'headroom', policy: 'headroom', mode: 'observe', before: null, after: json },
        ...{ connections, message: 'headroom headroom (peak 7 connections, 10 needed, 12 usable)' },
      },
    );
    expect(stepJson({ group: 'suspend_timeout', code: 'hold', hold: aHold(), before: 300, after: -1 })).toStrictEqual({
      ...{ group: 'suspend_timeout', code: 'hold', hold: 'h1', before: 300, after: -1 },
      message: 'hold of ann until 2100-01-01T00:00:00Z: load test (5m → never)',
    });
    expect(stepJson({ group: 'size', code: 'otherwise', proposal: proposal({ source: 'otherwise' }) })).toStrictEqual({
      ...{ group: 'size', code: 'otherwise', policy: 'office-hours', mode: 'enforce' },
      message: 'otherwise of office-hours, priority 3',
    });
  });

  it('writes values as policies do', () => {
    expect(describeValue({ minCu: 0.25, maxCu: 0.25 })).toBe('0.25 CU');
    expect(describeValue(300)).toBe('5m');
    expect(formatSize({ minCu: 1, maxCu: 4 })).toBe('1-4');
    expect([-1, 60, 90, 3600, 5400, 86_400, 604_800].map(formatSuspendTimeout)).toEqual([
      'never',
      '1m',
      '90s',
      '1h',
      '90m',
      '1d',
      '7d',
    ]);
  });
});

describe('settings of a compute', () => {
  it('have one form for the default timeout, and "never" longer than any other', () => {
    expect([0, 300, -1].map(canonicalSuspendTimeout)).toEqual([300, 300, -1]);
    expect([longerTimeout(60, 300), longerTimeout(300, 60), longerTimeout(-1, 604_800)]).toEqual([300, 300, -1]);
  });

  it('of a group are known only all together', () => {
    const all = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 60 };
    expect(fieldsOf('size', all)).toStrictEqual({ minCu: 1, maxCu: 2 });
    expect(fieldsOf('suspend_timeout', all)).toStrictEqual({ suspendTimeoutSeconds: 60 });
    for (const part of [{ minCu: 1 }, { maxCu: 2 }]) expect(fieldsOf('size', part)).toBeUndefined();
    expect(fieldsOf('suspend_timeout', { minCu: 1, maxCu: 2 })).toBeUndefined();
  });

  it('are three values, and two unknown sizes are the same', () => {
    expect(settingsOf(aCompute())).toEqual({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 });
    expect([sameSize(null, undefined), sameSize(null, { minCu: 1, maxCu: 1 })]).toEqual([true, false]);
    expect(sameSize({ minCu: 1, maxCu: 2 }, { minCu: 1, maxCu: 3 })).toBe(false);
  });
});
