import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/domain/decide/decide.ts';
import { emptyDraft, note } from '../../../src/domain/decide/stages/draft.ts';
import { obeyPlatform } from '../../../src/domain/decide/stages/platform.ts';
import type { ScheduleValues } from '../../../src/domain/policy/schedule-window.ts';
import { aCompute, aHold, aSchedule, at, compiled } from '../../support/builders.ts';
import { traceOf } from './trace-text.ts';

const NOON = at('2026-03-02T12:00:00Z');
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });

describe('holds', () => {
  const policies = compiled(aSchedule({ windows: [], otherwise: { size: size(1), suspendTimeoutSeconds: 300 } }));
  const wish = (holds: ReturnType<typeof aHold>[], instantMs = NOON) =>
    decide({ policies, compute: aCompute(), baseline: undefined, holds, instantMs });

  it('replace the fields that they name, whatever policies want', () => {
    const decision = wish([aHold({ size: size(8) })]);
    expect(decision.desired).toEqual({ size: size(8), suspendTimeoutSeconds: 300 });
    expect(traceOf(decision, 'size')).toEqual(['otherwise office-hours → 1 CU', 'hold h1 → 8 CU']);
    expect(wish([aHold({ suspendTimeoutSeconds: -1 })]).desired).toEqual({ size: size(1), suspendTimeoutSeconds: -1 });
  });

  it('count field by field, the newest first', () => {
    const older = aHold({ id: 'old', createdAtMs: 1, size: size(2), suspendTimeoutSeconds: 60 });
    const newer = aHold({ id: 'new', createdAtMs: 2, size: size(4) });
    for (const holds of [
      [older, newer],
      [newer, older],
    ]) {
      expect(wish(holds).desired).toEqual({ size: size(4), suspendTimeoutSeconds: 60 });
      expect(wish(holds).holds.map(({ id }) => id)).toEqual(['new', 'old']);
    }
  });

  it('leave to older ones the field that they do not name', () => {
    const timing = aHold({ id: 'new', createdAtMs: 2, suspendTimeoutSeconds: -1 });
    const sizing = aHold({ id: 'old', createdAtMs: 1, size: size(8) });
    expect(wish([timing, sizing]).desired).toEqual({ size: size(8), suspendTimeoutSeconds: -1 });
  });

  it('count from when they are set until they expire, for their compute alone', () => {
    const hold = aHold({ size: size(8), createdAtMs: NOON, expiresAtMs: NOON + 1000 });
    const held = [-1, 0, 999, 1000].map((offset) => wish([hold], NOON + offset).desired.size?.maxCu);
    expect(held).toEqual([1, 8, 8, 1]);
    expect(wish([{ ...hold, computeId: 'ep-two' }]).holds).toEqual([]);
  });

  it('speak for a compute that no policy selects', () => {
    const decision = decide({
      policies: compiled(),
      compute: aCompute(),
      baseline: undefined,
      holds: [aHold({ size: size(2) })],
      instantMs: NOON,
    });
    expect(decision).toMatchObject({ isMatched: true, desired: { size: size(2), suspendTimeoutSeconds: null } });
  });
});

describe('a restore', () => {
  const restore = { owner: 'ann', askedAtMs: NOON, expiresAtMs: NOON + 1 };
  const baseline = { ...size(2, 4), suspendTimeoutSeconds: 600 };
  const wish = (otherwise: ScheduleValues | 'leave', known: typeof baseline | undefined = baseline) =>
    decide({
      policies: compiled(aSchedule({ windows: [], otherwise })),
      compute: aCompute(),
      baseline: known,
      restore,
      instantMs: NOON,
    });

  it('gives back the baseline of fields that no policy sets', () => {
    expect(wish('leave').desired).toEqual({ size: size(2, 4), suspendTimeoutSeconds: 600 });
    expect(traceOf(wish('leave'), 'size')).toEqual(['no_value', 'restore → 2-4 CU']);
    expect(traceOf(wish('leave'), 'suspend_timeout')).toEqual(['no_value', 'restore → 10m']);
    expect(wish({ size: size(1) }).desired).toEqual({ size: size(1), suspendTimeoutSeconds: 600 });
    expect(wish({ suspendTimeoutSeconds: 60 }).desired).toEqual({ size: size(2, 4), suspendTimeoutSeconds: 60 });
  });
});

describe("the platform's rules", () => {
  const obeyed = (wanted: ScheduleValues, actual = size(1)) => {
    const draft = emptyDraft();
    const compute = aCompute(actual);
    if (wanted.size) note(draft, { group: 'size', code: 'hold', hold: aHold(), after: wanted.size });
    if (wanted.suspendTimeoutSeconds !== undefined) {
      note(draft, { group: 'suspend_timeout', code: 'hold', after: wanted.suspendTimeoutSeconds });
    }
    obeyPlatform.run(draft, { compute } as Parameters<typeof obeyPlatform.run>[1]);
    return draft;
  };

  it.each([
    ['a minimum above the maximum is lowered to it', size(4, 2), size(2), ['min_above_max h1 → 2 CU']],
    ['a range that spans 8 CU stays', size(1, 9), size(1, 9), []],
    ['a range that spans more loses its upper end', size(1, 10), size(1, 9), ['span_too_wide h1 → 1-9 CU']],
    ['the upper end is an allowed size', size(0.25, 10), size(0.25, 8), ['span_too_wide h1 → 0.25-8 CU']],
    ['a range ends at 16 CU', size(12, 18), size(12, 16), ['span_too_wide h1 → 12-16 CU']],
    ['a range that begins above 16 CU is a fixed size', size(18, 20), size(18), ['span_too_wide h1 → 18 CU']],
    ['a fixed size may be any', size(56), size(56), []],
  ])('%s', (_what, wanted, expected, steps) => {
    const draft = obeyed({ size: wanted });
    expect(draft.size).toEqual(expected);
    expect(traceOf(draft, 'size').slice(1)).toEqual(steps);
    expect(draft.deciders.size?.hold?.id).toBe('h1');
  });

  it('a size above 16 CU never suspends, whether it is wanted or already there', () => {
    const timeout = (wanted: ScheduleValues, actual?: ReturnType<typeof size>) =>
      obeyed(wanted, actual).suspendTimeoutSeconds;
    expect(timeout({ size: size(18), suspendTimeoutSeconds: 300 })).toBe(-1);
    expect(timeout({ suspendTimeoutSeconds: 300 }, size(18))).toBe(-1);
    expect(timeout({ size: size(16), suspendTimeoutSeconds: 300 }, size(18))).toBe(300);
    expect(timeout({ size: size(18) })).toBeNull();
    const never = obeyed({ size: size(18), suspendTimeoutSeconds: -1 });
    expect(traceOf(never, 'suspend_timeout')).toEqual(['hold → never']);
  });

  it('are shown as a correction of what the policy asked for', () => {
    const large = { ...size(18), suspendTimeoutSeconds: 300 };
    const schedule = aSchedule({ windows: [], otherwise: { size: size(18), suspendTimeoutSeconds: 300 } });
    const restore = { owner: 'ann', askedAtMs: NOON, expiresAtMs: NOON + 1 };
    const input = { compute: aCompute(), instantMs: NOON, baseline: large };
    const corrected = { group: 'suspend_timeout', code: 'never_suspends', before: 300, after: -1 };
    const wanted = decide({ ...input, policies: compiled(schedule) });
    const { policy, proposal } = wanted.trace.find(({ code }) => code === 'otherwise') ?? {};
    expect(wanted.trace.at(-1)).toStrictEqual({ ...corrected, policy, proposal });
    const back = decide({ ...input, policies: compiled(), restore });
    expect(back.trace.at(-1)).toStrictEqual({ ...corrected, restore });
  });
});
