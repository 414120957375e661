import type { Compute, ComputeSettings, Desired, FieldGroup, Size } from '../../compute/compute.ts';
import type { ConnectionProfile } from '../../connections/connection-profile.ts';
import type { ConnectionHistory } from '../../connections/connections.ts';
import type { Hold } from '../../overrides/holds.ts';
import type { Bounds, Directives, DirectiveType, FreezeWindow, RestartWindow } from '../../policy/directive.ts';
import type { ReadyWaves } from '../../policy/waves.ts';
import type { Restore, SetBy, TrialRecords } from '../../records/compute-record.ts';
import type { StepSpan } from '../../spend/terms.ts';
import type { TraceStep } from '../trace.ts';

/** Input of a stage: only the directives that it handles. */
export interface StageInput<S extends DirectiveType = never> {
  compute: Compute;
  baseline: ComputeSettings | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** Directives of the policies that select the compute. */
  effective: Pick<Directives, S>;
  /** When which steps of budgets limit any compute. */
  budgetSteps: readonly StepSpan[];
  /** In which waves computes become ready, of any account. */
  readyWaves: readonly ReadyWaves[];
  /** Active for the compute, newest first. */
  holds: readonly Hold[];
  restore?: Restore | undefined;
  trials?: TrialRecords | undefined;
  /** Absent where headroom is not evaluated: in looks at other instants than now. */
  connections?: ConnectionHistory | undefined;
  profile: ConnectionProfile;
}

/** A decision on its way through the stages. Each stage changes it in place; it is not visible to others before the last. */
export interface Draft extends Desired {
  /** The step that last shaped each group. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  trace: TraceStep[];
  /** True where connections are so scarce that a raise may not wait. */
  urgent: boolean;
  /** The hard ones of all bounds. */
  hardLimits: readonly Bounds[];
  /** A restart may be made now: of several windows the one of the highest priority. */
  restart?: RestartWindow | undefined;
  freezes: readonly FreezeWindow[];
  /** By group of fields, the policy that sets it, before people have their say. */
  setBy: SetBy;
}

/** One stage: it records its changes in the trace. */
export interface Stage<S extends DirectiveType = DirectiveType> {
  handles: readonly S[];
  run(draft: Draft, input: StageInput<S>): void;
}

/** A stage that handles these directives, and sees no others. */
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

/** Notes a step; one that gives the group a value becomes its decider. */
export function note(draft: Draft, step: TraceStep): void {
  draft.trace.push(step);
  if (step.after === undefined) return;
  draft.deciders[step.group] = step;
  if (step.group === 'size') draft.size = step.after as Size | null;
  else draft.suspendTimeoutSeconds = step.after as number | null;
}
