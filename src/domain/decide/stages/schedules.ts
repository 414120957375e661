import {
  type ComputeSettings,
  type FieldGroup,
  largerSize,
  longerTimeout,
  type Size,
  settingOf,
  sizeOf,
  valueOfGroup,
} from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Directives, ProposedValue, ProposedValues } from '../../policy/directive.ts';
import { waveOf } from '../../policy/waves.ts';
import { anyOpenAt } from '../../time/windows.ts';
import { limitingSteps } from './budget.ts';
import { type Draft, emptyDraft, note, type StageInput, stage } from './draft.ts';
import { connectionViews } from './headroom.ts';

/** How one group of fields is decided by proposed values. */
interface GroupRules<T> {
  group: FieldGroup;
  proposedBy(proposal: ProposedValues): ProposedValue<T> | undefined;
  baseline: T | undefined;
  /** The value with which a window that opens soon is compared if no proposal sets one. */
  fallback(): T;
  /** The larger of two values; `a` itself if `b` is not larger in any part. */
  larger(a: T, b: T): T;
}

/** Cached drafts for effective policies whose proposals do not depend on the compute. */
const sharedDrafts = new WeakMap<Pick<Directives, 'values'>, Draft>();

/** Decides each group of fields by the first proposal for it, in order of precedence. */
export const decideSchedules = stage(['values', 'bounds', 'trial', 'budget', 'need'], (draft, input) => {
  const { effective } = input;
  if (effective.values.some(dependsOnCompute)) {
    decideGroups(draft, input);
    return;
  }
  const shared = sharedDrafts.get(effective) ?? emptyDraft();
  if (!sharedDrafts.has(effective)) decideGroups(shared, input);
  sharedDrafts.set(effective, shared);
  const { trace, deciders, size, suspendTimeoutSeconds } = shared;
  Object.assign(draft, { trace: trace.slice(), deciders: { ...deciders }, size, suspendTimeoutSeconds });
});

function dependsOnCompute({ startsEarly, size, suspendTimeoutSeconds }: ProposedValues): boolean {
  return startsEarly !== undefined || size === 'baseline' || suspendTimeoutSeconds === 'baseline';
}

type ScheduleInput = StageInput<'values' | 'bounds' | 'trial' | 'budget' | 'need'>;

function decideGroups(draft: Draft, input: ScheduleInput): void {
  const { effective, baseline } = input;
  const values = effective.values.flatMap((proposal) => withWave(proposal, input));
  decideGroup<Size>(draft, values, {
    group: 'size',
    proposedBy: ({ size }) => size,
    baseline: baseline && sizeOf(baseline),
    fallback: () => sizeOf(fallbackSettings(input, 'size')),
    larger: largerSize,
  });
  decideGroup<number>(draft, values, {
    group: 'suspend_timeout',
    proposedBy: ({ suspendTimeoutSeconds }) => suspendTimeoutSeconds,
    baseline: baseline?.suspendTimeoutSeconds,
    fallback: () => fallbackSettings(input, 'suspend_timeout').suspendTimeoutSeconds,
    larger: longerTimeout,
  });
}

/** Adds the compute's wave to a proposal; drops a proposal whose wave has not begun yet. */
function withWave(proposal: ProposedValues, { readyWaves, compute, instantMs }: ScheduleInput): ProposedValues[] {
  const { policy, leadWithoutWavesMs, openSinceMs = 0 } = proposal;
  if (leadWithoutWavesMs === undefined) return [proposal];
  const wave = waveOf(readyWaves, { compute, priority: policy.priority, opensAtMs: openSinceMs });
  if (openSinceMs - instantMs > (wave?.leadMs ?? leadWithoutWavesMs)) return [];
  return [wave ? { ...proposal, wave } : proposal];
}

/**
 * A compute's settings where no proposal sets a value: the ones that later stages will set, or else the present ones. The present ones alone
 * would not do. Once a window that opens soon has raised the compute, the raised size is the present one, and later stages would undo it.
 */
function fallbackSettings(input: ScheduleInput, group: FieldGroup): ComputeSettings {
  const { effective, baseline, compute } = input;
  if (effective.trial[0]?.groups.includes(group)) return beforeTrial(input, effective.trial[0].policy.name) ?? compute;
  return (isGivenBaseline(input, group) ? baseline : undefined) ?? compute;
}

/** True if limits, budget steps or headroom will apply the baseline where no proposal sets a value. */
function isGivenBaseline(input: ScheduleInput, group: FieldGroup): boolean {
  return (
    input.effective.bounds.some(({ ranges }) => ranges[group]) ||
    limitingSteps(input).some(({ step }) => step.limits?.[group]) ||
    (group === 'size' && connectionViews(input).some(({ directive, view }) => view && directive.need.act === 'apply'))
  );
}

function decideGroup<T extends Size | number>(
  draft: Draft,
  proposals: readonly ProposedValues[],
  rules: GroupRules<T>,
): void {
  let winner: GroupProposal<T> | undefined;
  const opening: GroupProposal<T>[] = [];
  let firstOpeningMs = Number.POSITIVE_INFINITY;
  for (const candidate of proposalsOn(proposals, rules)) {
    const { proposal, value } = candidate;
    const { openSinceMs = 0 } = proposal;
    const isOutranked = proposal.startsEarly
      ? firstOpeningMs <= openSinceMs || isCovered(proposal, winner?.proposal)
      : winner !== undefined;
    const code = codeOf(candidate, isOutranked);
    const step = { group: rules.group, code, proposal, policy: proposal.policy };
    if (code === 'ready') {
      opening.push(candidate);
      firstOpeningMs = Math.min(firstOpeningMs, openSinceMs);
    } else if (value === undefined || code === 'outranked') note(draft, step);
    else {
      winner = candidate;
      note(draft, { ...step, after: value });
    }
  }
  if (opening.length > 0) applyEarlyRaises(draft, rules, opening, winner?.value ?? rules.fallback());
  if (winner === undefined && opening.length === 0) note(draft, { group: rules.group, code: 'no_value' });
}

/**
 * True if a window that opens soon needs no early raise: the deciding window has a higher priority, or is still open by then. The deciding
 * proposal is never an `otherwise`, since all windows come before any `otherwise`.
 */
function isCovered({ policy, openSinceMs = 0 }: ProposedValues, winner: ProposedValues | undefined): boolean {
  return winner !== undefined && (winner.policy.priority > policy.priority || anyOpenAt(winner.at ?? [], openSinceMs));
}

/** A proposal for one group. `value` is undefined if it is the baseline and the baseline is unknown. */
interface GroupProposal<T> {
  proposal: ProposedValues;
  proposed: ProposedValue<T>;
  value: T | undefined;
}

function* proposalsOn<T>(
  proposals: readonly ProposedValues[],
  { proposedBy, baseline }: GroupRules<T>,
): Generator<GroupProposal<T>> {
  for (const proposal of proposals) {
    const proposed = proposedBy(proposal);
    if (proposed !== undefined)
      yield { proposal, proposed, value: proposed === 'baseline' ? baseline : (proposed as T) };
  }
}

/** Applies the early raises of windows that open soon: until then, the larger of the present value and theirs counts. */
function applyEarlyRaises<T extends Size | number>(
  draft: Draft,
  { group, larger }: GroupRules<T>,
  opening: readonly GroupProposal<T>[],
  initial: T,
): void {
  let before = initial;
  for (const { proposal, value } of opening.toReversed()) {
    const after = value === undefined ? before : larger(before, value);
    const step = { group, proposal, policy: proposal.policy };
    if (after === before) note(draft, { ...step, code: 'not_yet' });
    else note(draft, { ...step, code: 'ready', before, after });
    before = after;
  }
}

function codeOf({ proposal, proposed, value }: GroupProposal<unknown>, isOutranked: boolean): ReasonCode {
  if (isOutranked) return 'outranked';
  if (value === undefined) return 'baseline_unknown';
  if (proposal.startsEarly) return 'ready';
  if (proposed === 'baseline') return 'baseline';
  return proposal.source === 'otherwise' ? 'otherwise' : 'window_open';
}

/**
 * Runs after schedules and before limits. In the control group, sets the fields that withdrawn policies may change to their values before the
 * trial, unless another policy sets them.
 */
export const giveTrialBaseline = stage(['trial'], (draft, input) => {
  const [trial] = input.effective.trial;
  if (!trial) return;
  const { policy } = trial;
  const before = beforeTrial(input, policy.name);
  for (const group of trial.groups) {
    if (valueOfGroup(group, draft) !== null) note(draft, { group, code: 'control_group', policy });
    else if (!before) note(draft, { group, code: 'baseline_unknown', policy });
    else note(draft, { group, code: 'control_group', policy, after: settingOf(group, before) });
  }
});

function beforeTrial({ trials, baseline }: StageInput, name: string): ComputeSettings | undefined {
  return trials?.[name]?.baseline ?? baseline;
}
