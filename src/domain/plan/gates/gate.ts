import type { Compute, FieldGroup, Size } from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Decision } from '../../decide/decide.ts';
import type { Freeze } from '../../overrides/freezes.ts';
import type { AtMost, ManualChanges, PartialDisruption } from '../../policy/disruption.ts';
import type { ComputeRecord } from '../../records/compute-record.ts';
import type { Change } from '../change.ts';

export interface GateInput {
  change: Change;
  decision: Decision;
  compute: Compute;
  record: ComputeRecord | undefined;
  mode: 'enforce' | 'observe';
  /** True if another compute of the project has an operation under way: the control API then refuses changes. */
  projectBusy: boolean;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The next instant strictly after, at which a desired field of this compute changes, or one of a group. */
  nextBoundaryAfter(afterMs: number, group?: FieldGroup): number | undefined;
  /** Since when a group's wish has been wanted; −Infinity if for longer than any deadline. */
  wantedSince(group: FieldGroup): number;
  /** Freezes that people have set, and that are active for this compute. */
  freezes?: readonly Freeze[] | undefined;
  /** Client connections now; absent if they are not known. */
  connections?: number | undefined;
  /** The settings' defaults for policies that say nothing. */
  disruption?: PartialDisruption | undefined;
  manualChanges?: ManualChanges | undefined;
  /** Absent where the compute is in no trial. */
  trial?: TrialGateInput | undefined;
  /** The end of a budget step, if the wanted size is unchanged since. Milliseconds since the epoch. */
  stepEndedAtMs?: number | undefined;
  /** True if no more computes of the policy may be disturbed at once. Absent: not limited. */
  isAtOnceFull?(change: Change, share: number): boolean;
  /** True if no more may be disturbed within the time of the limit. Absent: not limited. */
  isAtMostFull?(change: Change, limit: AtMost): boolean;
}

/** The trial of a compute, as gates see it. Instants are milliseconds since the epoch. */
export interface TrialGateInput {
  policy: string;
  /** When the compute enters or leaves the control group, ascending. */
  flips: readonly number[];
  /** The end of the period in which an instant is; undefined outside of the trial. */
  periodEndMs(instantMs: number): number | undefined;
  /** The size that would be wanted now, had the compute not changed its arm; null: none. */
  wantsInOtherArm(): Size | null;
  /** When the wanted size last changed without the trial; undefined if that is too long ago. */
  lastBoundaryWithout(): number | undefined;
  /** When it will change next. */
  nextBoundaryWithout(): number | undefined;
}

/** Why a change may not be made now and, where it is known, until when. */
export interface Held {
  code: ReasonCode;
  message: string;
  untilMs?: number;
}

/** One reason to hold a change back; undefined lets it pass. */
export type Gate = (input: GateInput) => Held | undefined;
