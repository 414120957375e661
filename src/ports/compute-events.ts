import type { Compute, ComputeSettings, FieldGroup } from '../domain/compute/compute.ts';
import type { Reason } from '../domain/compute/reasons.ts';
import type { Action, Plan } from '../domain/plan/plan.ts';
import type { RestartCause } from '../domain/records/compute-record.ts';
import type { ControlApiError, Operation } from './control-api.ts';

/** The result of a write. `unknown`: no answer came, so it may have taken effect. `refused`: the same request would fail again. */
export type WriteOutcome = 'applied' | 'locked' | 'throttled' | 'refused' | 'failed' | 'unknown';

/** The rules that led to a write. */
export interface WriteOrigin {
  /** Identifies the policy set. */
  set: string;
  /** The source of the policies, such as a commit. */
  revision?: string;
}

/** Events of computes as data, for the log, the metrics and the demo. */
export type ComputeEvent =
  | { kind: 'write_started'; compute: Compute; action: Action; reasons: readonly Reason[]; origin?: WriteOrigin }
  | {
      kind: 'write_ended';
      compute: Compute;
      action: Action;
      reasons: readonly Reason[];
      outcome: WriteOutcome;
      operations: readonly Operation[];
      origin?: WriteOrigin;
      error?: ControlApiError;
      /** The time from the boundary that caused the change to the answer, in simulated milliseconds. */
      latenessMs?: number;
      /** Only of a change that restarts the compute. */
      restartCause?: RestartCause;
    }
  | { kind: 'held_back'; compute: Compute; plan: Plan }
  | {
      kind: 'operation_ended';
      compute: { projectId: string; computeId: string };
      operation: Operation;
      policy?: string;
    }
  | {
      /** Somebody else has overwritten ebb's values. */
      kind: 'manual_change';
      compute: Compute;
      group: FieldGroup;
      applied: Partial<ComputeSettings>;
      /** Names the change, and the time until which it is respected. */
      message: string;
    }
  | {
      kind: 'degraded';
      compute: { projectId: string; computeId: string };
      desired: Partial<ComputeSettings>;
      failures: number;
      message: string;
    };

/** Gets every event, in order, once. Must not throw. */
export type ReportEvent = (event: ComputeEvent) => void;

/**
 * The status of a compute. `orphaned`: ebb has changed it, and no policy selects it any more. `not_loaded`: the policies of its team are not
 * in effect, because they can't be read, or because they are staged since a first start.
 */
export const COMPUTE_STATUSES = [
  'enforced',
  'observed',
  'unmatched',
  'held',
  'frozen',
  'orphaned',
  'degraded',
  'not_loaded',
] as const;
export type ComputeStatus = (typeof COMPUTE_STATUSES)[number];
