import {
  type ComputeSettings,
  type FieldGroup,
  NEVER_SUSPENDS,
  type Size,
  sameSize,
  timeoutLength,
} from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Bounds, Range } from '../../policy/directive.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, type StageInput, stage } from './draft.ts';

/** Second stage: limits clamp the wishes of schedules or, where none sets a value, the baseline. */
export const clampToLimits = stage(['bounds'], (draft, input) => {
  for (const group of ['size', 'suspend_timeout'] as const) {
    clampGroup(draft, input, group, input.effective.bounds, 'limited');
  }
});

/** Again after headroom and holds: hard limits have the last word of all policies. */
export const clampToHardLimits = stage(['bounds'], (draft, input) => {
  draft.hardLimits = input.effective.bounds.filter(({ hard }) => hard);
  if (draft.size !== null) clampGroup(draft, input, 'size', draft.hardLimits, 'hard_limit');
  if (draft.suspendTimeoutSeconds !== null) clampGroup(draft, input, 'suspend_timeout', draft.hardLimits, 'hard_limit');
});

/** The range where both hold; undefined if nothing satisfies both. */
export function intersect(a: Range, b: Range): Range | undefined {
  const both = { low: Math.max(a.low, b.low), high: Math.min(a.high, b.high) };
  return both.low <= both.high ? both : undefined;
}

/** Clamps one group to bounds, which may be of several policies, or of steps of budgets. */
export function clampGroup(
  draft: Draft,
  input: StageInput,
  group: FieldGroup,
  bounds: readonly StepBounds[],
  code: Extract<ReasonCode, 'limited' | 'hard_limit' | 'budget_step'>,
): void {
  const range = intersectAll(draft, group, bounds);
  if (!range) return;
  const wanted = group === 'size' ? draft.size : draft.suspendTimeoutSeconds;
  const before = wanted ?? baselineOf(group, input);
  if (before === undefined) {
    note(draft, { group, code: 'baseline_unknown', ...speakerOf(range.highOf) });
    return;
  }
  const after = clamp(before, range);
  const speaker = speakerOf(highestOf(before) > range.high ? range.highOf : range.lowOf);
  if (!sameValue(after, before)) note(draft, { group, code, ...speaker, before, after });
  else if (wanted === null) note(draft, { group, code: 'within_limits', ...speaker, after });
  else if (code !== 'hard_limit') note(draft, { group, code: 'within_limits', ...speaker });
}

/** Bounds of a policy, or of a step of its budget. */
export type StepBounds = Bounds & Pick<TraceStep, 'budgetStep'>;

/** Bounds of several policies together, and whose each is. */
interface SharedRange extends Range {
  lowOf: StepBounds;
  highOf: StepBounds;
}

function speakerOf({ policy, budgetStep }: StepBounds): Pick<TraceStep, 'policy' | 'budgetStep'> {
  return { policy, ...(budgetStep && { budgetStep }) };
}

/** All bounds together; where two exclude each other the later wins. */
function intersectAll(draft: Draft, group: FieldGroup, bounds: readonly StepBounds[]): SharedRange | undefined {
  let all: SharedRange | undefined;
  for (const one of bounds.toReversed()) {
    const range = one.ranges[group];
    if (!range) continue;
    const both = all ? intersect(all, range) : range;
    if (!both) note(draft, { group, code: 'limits_conflict', ...speakerOf(one) });
    else {
      const lowOf = all?.low === both.low ? all.lowOf : one;
      all = { ...both, lowOf, highOf: all?.high === both.high ? all.highOf : one };
    }
  }
  return all;
}

/** True if bounds exclude the present value of a compute. */
export function isBeyond({ ranges }: Bounds, group: FieldGroup, settings: ComputeSettings): boolean {
  const range = ranges[group];
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
