import type { Compute, ComputeSettings, Desired, FieldGroup, Size } from '../../compute/compute.ts';
import type { ConnectionProfile } from '../../connections/connection-profile.ts';
import type { ConnectionHistory } from '../../connections/connections.ts';
import type { Hold } from '../../overrides/holds.ts';
import type { Bounds, Directives, DirectiveType, FreezeWindow, RestartWindow } from '../../policy/directive.ts';
import type { ReadyWaves } from '../../policy/waves.ts';
import type { Floors, Restore, SetBy, TrialRecords } from '../../records/compute-record.ts';
import type { StepSpan } from '../../spend/terms.ts';
import type { TraceStep } from '../trace.ts';

/** The input of a stage, with only the directives that it handles. */
export interface StageInput<S extends DirectiveType = never> {
  compute: Compute;
  baseline: ComputeSettings | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** Directives of the policies that select the compute. */
  effective: Pick<Directives, S>;
  /** The spans in which budget steps limit computes. */
  budgetSteps: readonly StepSpan[];
  /** The waves of all accounts. */
  readyWaves: readonly ReadyWaves[];
  /** The compute's active holds, newest first. */
  holds: readonly Hold[];
  restore?: Restore | undefined;
  trials?: TrialRecords | undefined;
  /** Only those whose lowering policy is unchanged. */
  floors?: Floors | undefined;
  /** Absent where headroom is not evaluated, as in searches for boundaries. */
  connections?: ConnectionHistory | undefined;
  profile: ConnectionProfile;
}

/** A decision in progress. Each stage changes it in place. */
export interface Draft extends Desired {
  /** The step that last set each group. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  trace: TraceStep[];
  /** True if connections are so scarce that a raise does not wait. */
  urgent: boolean;
  /** The bounds of hard limits. */
  hardLimits: readonly Bounds[];
  /** The open restart window of highest priority; undefined if none is open. */
  restart?: RestartWindow | undefined;
  freezes: readonly FreezeWindow[];
  /** The policy that sets each group of fields, before holds and restores. */
  setBy: SetBy;
}

/** One stage of a decision; it records its changes in the trace. */
export interface Stage<S extends DirectiveType = DirectiveType> {
  handles: readonly S[];
  run(draft: Draft, input: StageInput<S>): void;
}

/** Defines a stage that receives only these types of directives. */
export function stage<const S extends DirectiveType>(handles: readonly S[], run: Stage<S>['run']): Stage<S> {
  return { handles, run };
}

export function emptyDraft(): Draft {
  return {
    size: null,
    suspendTimeoutSeconds: null,
    deciders: {},
    trace: [],
    urgent: false,
    hardLimits: [],
    freezes: [],
    setBy: {},
  };
}

/** Adds a step to the trace. If it sets a value, it becomes the decider of its group. */
export function note(draft: Draft, step: TraceStep): void {
  draft.trace.push(step);
  if (step.after === undefined) return;
  draft.deciders[step.group] = step;
  if (step.group === 'size') draft.size = step.after as Size | null;
  else draft.suspendTimeoutSeconds = step.after as number | null;
}
