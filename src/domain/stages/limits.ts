import { type ComputeSettings, NEVER_SUSPENDS, type Size, sameSize, timeoutLength } from '../compute.ts';
import type { FieldGroup } from '../desired.ts';
import type { LimitsPolicy } from '../policy.ts';
import type { ReasonCode } from '../reasons.ts';
import type { Bounds } from '../statement.ts';
import { type Draft, note, type Stage, type StageInput } from './draft.ts';

/** Two bounds of one group as plain numbers: CU, or seconds with "never" as infinity. */
export interface Range {
  low: number;
  high: number;
}

/** Second stage: limits clamp what schedules want or, where none has an opinion, the baseline. */
export const clampToLimits: Stage = (draft, input) => {
  for (const group of ['size', 'suspend_timeout'] as const) {
    clampGroup(draft, input, group, input.heard.bounds, 'limited');
  }
};

/** Again after headroom and holds: hard limits have the last word of all policies. */
export const clampToHardLimits: Stage = (draft, input) => {
  const hard = input.heard.bounds.filter(({ policy }) => policy.hard);
  if (draft.size !== null) clampGroup(draft, input, 'size', hard, 'hard_limit');
  if (draft.suspendTimeoutSeconds !== null) clampGroup(draft, input, 'suspend_timeout', hard, 'hard_limit');
};

/** The bounds that a policy sets to a group; undefined if it sets none. */
export function rangeOf(group: FieldGroup, { size, suspendTimeout }: LimitsPolicy): Range | undefined {
  if (group === 'size') return size && { low: size.minCu ?? 0, high: size.maxCu ?? Number.POSITIVE_INFINITY };
  if (suspendTimeout === undefined) return undefined;
  const { minSeconds = 0, maxSeconds } = suspendTimeout;
  const high = maxSeconds === undefined ? Number.POSITIVE_INFINITY : timeoutLength(maxSeconds);
  return { low: timeoutLength(minSeconds), high };
}

/** Where both hold; undefined if nothing satisfies both. */
export function intersect(a: Range, b: Range): Range | undefined {
  const both = { low: Math.max(a.low, b.low), high: Math.min(a.high, b.high) };
  return both.low <= both.high ? both : undefined;
}

function clampGroup(
  draft: Draft,
  input: StageInput,
  group: FieldGroup,
  bounds: readonly Bounds[],
  code: Extract<ReasonCode, 'limited' | 'hard_limit'>,
): void {
  const range = intersectAll(draft, group, bounds);
  if (!range) return;
  const wanted = group === 'size' ? draft.size : draft.suspendTimeoutSeconds;
  const before = wanted ?? baselineOf(group, input);
  if (before === undefined) {
    note(draft, { group, code: 'baseline_unknown', policy: range.highOf });
    return;
  }
  const after = clamp(before, range);
  const policy = highestOf(before) > range.high ? range.highOf : range.lowOf;
  if (!sameValue(after, before)) note(draft, { group, code, policy, before, after });
  else if (wanted === null) note(draft, { group, code: 'within_limits', policy, after });
  else if (code === 'limited') note(draft, { group, code: 'within_limits', policy });
}

/** Bounds of several policies together, and of which policy each is. */
interface SharedRange extends Range {
  lowOf: LimitsPolicy;
  highOf: LimitsPolicy;
}

/** All bounds together; of those that exclude each other the later wins. */
function intersectAll(draft: Draft, group: FieldGroup, bounds: readonly Bounds[]): SharedRange | undefined {
  let all: SharedRange | undefined;
  for (const { policy } of bounds.toReversed()) {
    const range = rangeOf(group, policy);
    if (!range) continue;
    const both = all ? intersect(all, range) : range;
    if (!both) note(draft, { group, code: 'limits_conflict', policy });
    else {
      const lowOf = all?.low === both.low ? all.lowOf : policy;
      all = { ...both, lowOf, highOf: all?.high === both.high ? all.highOf : policy };
    }
  }
  return all;
}

/** True if a policy's bounds exclude what a compute has. */
export function isBeyond(policy: LimitsPolicy, group: FieldGroup, settings: ComputeSettings): boolean {
  const range = rangeOf(group, policy);
  const ends = group === 'size' ? [settings.minCu, settings.maxCu] : [timeoutLength(settings.suspendTimeoutSeconds)];
  return range !== undefined && ends.some((end) => end < range.low || end > range.high);
}

function baselineOf(group: FieldGroup, { baseline }: StageInput): Size | number | undefined {
  if (!baseline) return undefined;
  return group === 'size' ? { minCu: baseline.minCu, maxCu: baseline.maxCu } : baseline.suspendTimeoutSeconds;
}

function clamp(value: Size | number, range: Range): Size | number {
  if (typeof value !== 'number') return { minCu: within(value.minCu, range), maxCu: within(value.maxCu, range) };
  const length = within(timeoutLength(value), range);
  return Number.isFinite(length) ? length : NEVER_SUSPENDS;
}

function highestOf(value: Size | number): number {
  return typeof value === 'number' ? timeoutLength(value) : value.maxCu;
}

function within(value: number, { low, high }: Range): number {
  return Math.min(Math.max(value, low), high);
}

function sameValue(a: Size | number, b: Size | number): boolean {
  return typeof a === 'number' || typeof b === 'number' ? a === b : sameSize(a, b);
}
