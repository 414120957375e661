import type { Compute, ComputeSettings } from '../compute.ts';
import type { ComputeRecord } from '../compute-record.ts';
import type { FieldGroup } from '../decide.ts';
import type { ReasonCode } from '../reasons.ts';

/** A difference between what a compute has and what it should have, in one group of fields. */
export interface Change {
  group: FieldGroup;
  fields: Partial<ComputeSettings>;
  /** True if making it now would restart the compute and drop its connections. */
  disconnects: boolean;
  /** True for a raise; false for a lowering and for a timeout. */
  raises: boolean;
  /** The policy that wants it, and where it stands among the others. */
  policy: string;
  priority: number;
  /** True if the policy that wants it only observes. */
  observed: boolean;
  /** Why it is wanted. */
  code: ReasonCode;
  message: string;
}

export interface GateInput {
  change: Change;
  compute: Compute;
  record: ComputeRecord | undefined;
  mode: 'enforce' | 'observe';
  /** True if another compute of the project has an operation under way: the control API then refuses changes. */
  projectBusy: boolean;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The next instant strictly after, at which a desired field of this compute changes. */
  nextBoundaryAfter(afterMs: number): number | undefined;
}

/** Why a change may not be made now and, where it is known, until when. */
export interface Held {
  code: ReasonCode;
  message: string;
  untilMs?: number;
}

/** One reason to hold a change back; undefined lets it pass. */
export type Gate = (input: GateInput) => Held | undefined;
