import {
  type Compute,
  type ComputeSettings,
  type FieldGroup,
  longerTimeout,
  type Size,
} from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Directives, ProposedValue, ProposedValues } from '../../policy/directive.ts';
import { waveOf } from '../../policy/waves.ts';
import { anyOpenAt } from '../../time/windows.ts';
import { limitingSteps } from './budget.ts';
import { type Draft, emptyDraft, note, type StageInput, stage } from './draft.ts';
import { viewsOf } from './headroom.ts';

/** The functions that decide one group of fields by proposed values. */
interface Group<T> {
  group: FieldGroup;
  proposedBy(proposal: ProposedValues): ProposedValue<T> | undefined;
  baseline: T | undefined;
  /** The value that an opening window is compared with where no proposal sets one. */
  unproposed(): T;
  /** The larger of two values; `a` itself where `b` is not larger in any part. */
  larger(a: T, b: T): T;
}

/** The part that depends only on the effective policies is decided once for all computes that share them. */
const decided = new WeakMap<Pick<Directives, 'values'>, Draft>();

/** First stage: of the proposed values, in their order, the first on a group decides it. */
export const decideSchedules = stage(['values', 'bounds', 'trial', 'budget', 'need'], (draft, input) => {
  const { effective } = input;
  if (effective.values.some(dependsOnCompute)) {
    decideBoth(draft, input);
    return;
  }
  const shared = decided.get(effective) ?? emptyDraft();
  if (!decided.has(effective)) decideBoth(shared, input);
  decided.set(effective, shared);
  const { trace, deciders, size, suspendTimeoutSeconds } = shared;
  Object.assign(draft, { trace: trace.slice(), deciders: { ...deciders }, size, suspendTimeoutSeconds });
});

function dependsOnCompute({ startsEarly, size, suspendTimeoutSeconds }: ProposedValues): boolean {
  return startsEarly !== undefined || size === 'baseline' || suspendTimeoutSeconds === 'baseline';
}

type ScheduleInput = StageInput<'values' | 'bounds' | 'trial' | 'budget' | 'need'>;

function decideBoth(draft: Draft, input: ScheduleInput): void {
  const { effective, baseline } = input;
  const values = effective.values.flatMap((proposal) => begun(proposal, input));
  decideGroup<Size>(draft, values, {
    group: 'size',
    proposedBy: ({ size }) => size,
    baseline: baseline && sizeOf(baseline),
    unproposed: () => sizeOf(unproposed(input, 'size')),
    larger: largerSize,
  });
  decideGroup<number>(draft, values, {
    group: 'suspend_timeout',
    proposedBy: ({ suspendTimeoutSeconds }) => suspendTimeoutSeconds,
    baseline: baseline?.suspendTimeoutSeconds,
    unproposed: () => unproposed(input, 'suspend_timeout').suspendTimeoutSeconds,
    larger: longerTimeout,
  });
}

/** Of a herd that becomes ready in waves, a window is about to open only for those whose wave has begun. */
function begun(proposal: ProposedValues, { readyWaves, compute, instantMs }: ScheduleInput): ProposedValues[] {
  const { policy, leadWithoutWavesMs, openSinceMs = 0 } = proposal;
  if (leadWithoutWavesMs === undefined) return [proposal];
  const wave = waveOf(readyWaves, { compute, priority: policy.priority, opensAtMs: openSinceMs });
  if (openSinceMs - instantMs > (wave?.leadMs ?? leadWithoutWavesMs)) return [];
  return [wave ? { ...proposal, wave } : proposal];
}

/**
 * A compute's settings where no proposal sets a value: those that later stages give it, and else its present ones. Were it always the
 * present ones, a window that is about to open would raise a compute, find the raise made, and leave it to later stages to take that back.
 */
function unproposed(input: ScheduleInput, group: FieldGroup): ComputeSettings {
  const { effective, baseline, compute } = input;
  if (effective.trial[0]?.groups.includes(group)) return beforeTrial(input, effective.trial[0].policy.name) ?? compute;
  return (isGivenBaseline(input, group) ? baseline : undefined) ?? compute;
}

/** Do limits, steps of budgets or headroom give a compute its baseline where no proposal sets a value? */
function isGivenBaseline(input: ScheduleInput, group: FieldGroup): boolean {
  return (
    input.effective.bounds.some(({ ranges }) => ranges[group]) ||
    limitingSteps(input).some(({ step }) => step.limits?.[group]) ||
    (group === 'size' && viewsOf(input).some(({ directive, view }) => view && directive.need.act === 'apply'))
  );
}

function decideGroup<T extends Size | number>(draft: Draft, proposals: readonly ProposedValues[], of: Group<T>): void {
  let won: Spoken<T> | undefined;
  const leading: Spoken<T>[] = [];
  let firstLeadMs = Number.POSITIVE_INFINITY;
  for (const spoken of spokenOn(proposals, of)) {
    const { proposal, value } = spoken;
    const { openSinceMs = 0 } = proposal;
    const isBeaten = proposal.startsEarly
      ? firstLeadMs <= openSinceMs || isCovered(proposal, won?.proposal)
      : won !== undefined;
    const code = codeOf(spoken, isBeaten);
    const step = { group: of.group, code, proposal, policy: proposal.policy };
    if (code === 'ready') {
      leading.push(spoken);
      firstLeadMs = Math.min(firstLeadMs, openSinceMs);
    } else if (value === undefined || code === 'outranked') note(draft, step);
    else {
      won = spoken;
      note(draft, { ...step, after: value });
    }
  }
  if (leading.length > 0) leadUp(draft, of, leading, won?.value ?? of.unproposed());
  if (won === undefined && leading.length === 0) note(draft, { group: of.group, code: 'no_value' });
}

/**
 * Is an opening window covered? It has nothing to prepare if the window before it in the order, which decides now, has a higher priority,
 * or is still open when it starts; or if another window starts no later. An `otherwise` never comes before a window.
 */
function isCovered({ policy, openSinceMs = 0 }: ProposedValues, won: ProposedValues | undefined): boolean {
  return won !== undefined && (won.policy.priority > policy.priority || anyOpenAt(won.at ?? [], openSinceMs));
}

/** A proposed value of one group; without a value where it is the baseline, and that is not known. */
interface Spoken<T> {
  proposal: ProposedValues;
  proposed: ProposedValue<T>;
  value: T | undefined;
}

function* spokenOn<T>(proposals: readonly ProposedValues[], { proposedBy, baseline }: Group<T>): Generator<Spoken<T>> {
  for (const proposal of proposals) {
    const proposed = proposedBy(proposal);
    if (proposed !== undefined)
      yield { proposal, proposed, value: proposed === 'baseline' ? baseline : (proposed as T) };
  }
}

/** Before windows that are to take effect by their start open, the larger of the old value and of theirs holds. */
function leadUp<T extends Size | number>(
  draft: Draft,
  { group, larger }: Group<T>,
  leading: readonly Spoken<T>[],
  old: T,
): void {
  let before = old;
  for (const { proposal, value } of leading.toReversed()) {
    const after = value === undefined ? before : larger(before, value);
    const step = { group, proposal, policy: proposal.policy };
    if (after === before) note(draft, { ...step, code: 'not_yet' });
    else note(draft, { ...step, code: 'ready', before, after });
    before = after;
  }
}

function codeOf({ proposal, proposed, value }: Spoken<unknown>, decided: boolean): ReasonCode {
  if (decided) return 'outranked';
  if (value === undefined) return 'baseline_unknown';
  if (proposal.startsEarly) return 'ready';
  if (proposed === 'baseline') return 'baseline';
  return proposal.source === 'otherwise' ? 'otherwise' : 'window_open';
}

function sizeOf({ minCu, maxCu }: Size | Compute): Size {
  return { minCu, maxCu };
}

function largerSize(a: Size, b: Size): Size {
  if (b.minCu <= a.minCu && b.maxCu <= a.maxCu) return a;
  return { minCu: Math.max(a.minCu, b.minCu), maxCu: Math.max(a.maxCu, b.maxCu) };
}

/**
 * After schedules, before limits: in the control group of a trial a field that a withdrawn policy may change, and that no other decides,
 * is as it was before the trial.
 */
export const giveTrialBaseline = stage(['trial'], (draft, input) => {
  const [trial] = input.effective.trial;
  if (!trial) return;
  const { policy } = trial;
  const before = beforeTrial(input, policy.name);
  for (const group of trial.groups) {
    const decided = (group === 'size' ? draft.size : draft.suspendTimeoutSeconds) !== null;
    if (decided) note(draft, { group, code: 'control_group', policy });
    else if (!before) note(draft, { group, code: 'baseline_unknown', policy });
    else note(draft, { group, code: 'control_group', policy, after: settingOf(group, before) });
  }
});

function beforeTrial({ trials, baseline }: StageInput, name: string): ComputeSettings | undefined {
  return trials?.[name]?.baseline ?? baseline;
}

function settingOf(group: 'size' | 'suspend_timeout', { minCu, maxCu, suspendTimeoutSeconds }: ComputeSettings) {
  return group === 'size' ? { minCu, maxCu } : suspendTimeoutSeconds;
}
