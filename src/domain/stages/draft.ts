import type { Compute, ComputeSettings, Size } from '../compute.ts';
import type { ConnectionProfile } from '../connection-profile.ts';
import type { ConnectionHistory } from '../connections.ts';
import type { Desired, FieldGroup } from '../desired.ts';
import type { Hold } from '../holds.ts';
import type { Restore } from '../restore.ts';
import type { Statements } from '../statement.ts';
import type { TraceStep } from '../trace.ts';

/** What every stage of a decision may look at. */
export interface StageInput {
  compute: Compute;
  baseline: ComputeSettings | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** What the policies that select the compute say. */
  heard: Statements;
  /** In force for the compute, newest first. */
  holds: readonly Hold[];
  restore?: Restore | undefined;
  /** Absent where headroom is not judged: in looks at other instants than now. */
  connections?: ConnectionHistory | undefined;
  profile: ConnectionProfile;
}

/** A decision while it goes from stage to stage. Each stage changes it in place; nobody else sees it before the last. */
export interface Draft extends Desired {
  /** The step that last shaped each group. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  trace: TraceStep[];
  /** True where connections are so scarce that a raise may not wait. */
  urgent: boolean;
}

/** One stage: what it changes, it says in the trace. */
export type Stage = (draft: Draft, input: StageInput) => void;

export function emptyDraft(): Draft {
  return { size: null, suspendTimeoutSeconds: null, deciders: {}, trace: [], urgent: false };
}

/** Notes a step; one that gives the group a value becomes its decider. */
export function note(draft: Draft, step: TraceStep): void {
  draft.trace.push(step);
  if (step.after === undefined) return;
  draft.deciders[step.group] = step;
  if (step.group === 'size') draft.size = step.after as Size | null;
  else draft.suspendTimeoutSeconds = step.after as number | null;
}
