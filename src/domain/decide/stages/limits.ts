import {
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  type Size,
  sameSize,
  settingOf,
  timeoutLength,
  timeoutOfLength,
  valueOfGroup,
} from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Range } from '../../estimate.ts';
import type { Bounds } from '../../policy/directive.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, type StageInput, stage } from './draft.ts';

/** Clamps the value that a schedule sets, or the baseline where no schedule sets one, to the limits. */
export const clampToLimits = stage(['bounds'], (draft, input) => {
  for (const group of FIELD_GROUPS) clampGroup(draft, input, group, input.effective.bounds, 'limited');
});

/** Runs after headroom and holds. Clamps to hard limits, which take precedence over all other policies. */
export const clampToHardLimits = stage(['bounds'], (draft, input) => {
  draft.hardLimits = input.effective.bounds.filter(({ hard }) => hard);
  for (const group of FIELD_GROUPS) {
    if (valueOfGroup(group, draft) !== null) clampGroup(draft, input, group, draft.hardLimits, 'hard_limit');
  }
});

/** The common part of two ranges; undefined if there is none. */
function intersect(a: Range, b: Range): Range | undefined {
  const common = { low: Math.max(a.low, b.low), high: Math.min(a.high, b.high) };
  return common.low <= common.high ? common : undefined;
}

/** Clamps one group to the bounds of policies or budget steps. */
export function clampGroup(
  draft: Draft,
  input: StageInput,
  group: FieldGroup,
  bounds: readonly StepBounds[],
  code: Extract<ReasonCode, 'limited' | 'hard_limit' | 'budget_step'>,
): void {
  const range = intersectAll(draft, group, bounds);
  if (!range) return;
  const wanted = valueOfGroup(group, draft);
  const before = wanted ?? (input.baseline && settingOf(group, input.baseline));
  if (before === undefined) {
    note(draft, { group, code: 'baseline_unknown', ...boundsSource(range.highOf) });
    return;
  }
  const after = clamp(before, range);
  const source = boundsSource(upperEnd(before) > range.high ? range.highOf : range.lowOf);
  if (!sameValue(after, before)) note(draft, { group, code, ...source, before, after });
  else if (wanted === null) note(draft, { group, code: 'within_limits', ...source, after });
  else if (code !== 'hard_limit') note(draft, { group, code: 'within_limits', ...source });
}

/** The bounds of a policy, or of one step of its budget. */
export type StepBounds = Bounds & Pick<TraceStep, 'budgetStep'>;

/** The intersection of several bounds, with the source of each end. */
interface SharedRange extends Range {
  lowOf: StepBounds;
  highOf: StepBounds;
}

function boundsSource({ policy, budgetStep }: StepBounds): Pick<TraceStep, 'policy' | 'budgetStep'> {
  return { policy, ...(budgetStep && { budgetStep }) };
}

/** Intersects all bounds; of two that exclude each other, the later wins. */
function intersectAll(draft: Draft, group: FieldGroup, bounds: readonly StepBounds[]): SharedRange | undefined {
  let shared: SharedRange | undefined;
  for (const added of bounds.toReversed()) {
    const range = added.ranges[group];
    if (!range) continue;
    const common = shared ? intersect(shared, range) : range;
    if (!common) note(draft, { group, code: 'limits_conflict', ...boundsSource(added) });
    else {
      const lowOf = shared?.low === common.low ? shared.lowOf : added;
      shared = { ...common, lowOf, highOf: shared?.high === common.high ? shared.highOf : added };
    }
  }
  return shared;
}

/** True if bounds exclude these settings of a compute. */
export function isBeyond({ ranges }: Bounds, group: FieldGroup, settings: ComputeSettings): boolean {
  const range = ranges[group];
  const ends = group === 'size' ? [settings.minCu, settings.maxCu] : [timeoutLength(settings.suspendTimeoutSeconds)];
  return range !== undefined && ends.some((end) => end < range.low || end > range.high);
}

function clamp(value: Size | number, range: Range): Size | number {
  if (typeof value !== 'number')
    return { minCu: clampNumber(value.minCu, range), maxCu: clampNumber(value.maxCu, range) };
  return timeoutOfLength(clampNumber(timeoutLength(value), range));
}

function upperEnd(value: Size | number): number {
  return typeof value === 'number' ? timeoutLength(value) : value.maxCu;
}

function clampNumber(value: number, { low, high }: Range): number {
  return Math.min(Math.max(value, low), high);
}

function sameValue(a: Size | number, b: Size | number): boolean {
  return typeof a === 'number' || typeof b === 'number' ? a === b : sameSize(a, b);
}
