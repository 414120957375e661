import type { AccountFacts } from '../../compute/account-facts.ts';
import type { Compute, ComputeSettings, FieldGroup } from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Decision } from '../../decide/decide.ts';
import type { Verdict } from '../../guards/verdict.ts';
import type { Freeze } from '../../overrides/freezes.ts';
import type { AtMost, ManualChanges, PartialDisruption } from '../../policy/disruption.ts';
import type { ComputeRecord } from '../../records/compute-record.ts';
import type { Change } from '../change.ts';

export interface GateInput {
  change: Change;
  decision: Decision;
  compute: Compute;
  /** What was measured in its account; absent: nothing. */
  verified?: AccountFacts | undefined;
  record: ComputeRecord | undefined;
  mode: 'enforce' | 'observe';
  /** True if an operation of another compute in the project is running: the control API then refuses changes. */
  projectBusy: boolean;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The next later instant at which a desired field of the compute changes, or only those of one group. */
  nextBoundaryAfter(afterMs: number, group?: FieldGroup): number | undefined;
  /** Since when the group's value has been wanted; −Infinity if for longer than any deadline. */
  wantedSince(group: FieldGroup): number;
  /** People's freezes that are active for the compute. */
  freezes?: readonly Freeze[] | undefined;
  /** The number of client connections now; absent if unknown. */
  connections?: number | undefined;
  /** Defaults from the settings, for policies without a `disruption` of their own. */
  disruption?: PartialDisruption | undefined;
  manualChanges?: ManualChanges | undefined;
  /** Absent where the compute is in no trial. */
  trial?: TrialGateInput | undefined;
  /** The end of a budget step, if the wanted value last changed then. Milliseconds since the epoch. */
  stepEndedAtMs(group: FieldGroup): number | undefined;
  /** The enforcing guards that select the compute, with what each says now. */
  guards: readonly GuardVerdict[];
  /** True if the policy may not disturb another compute at once. Absent: not limited. */
  isAtOnceFull?(change: Change, share: number): boolean;
  /** True if the policy may not disturb another compute within the limit's window. Absent: not limited. */
  isAtMostFull?(change: Change, limit: AtMost): boolean;
}

/** The trial of a compute, for gates. Instants are milliseconds since the epoch. */
export interface TrialGateInput {
  policy: string;
  /** When the compute enters or leaves the control group, ascending. */
  flips: readonly number[];
  /** The end of the period at an instant; undefined outside of the trial. */
  periodEndMs(instantMs: number): number | undefined;
  /** The values that would be wanted now if the compute had not changed its arm; undefined: none. */
  wantedInOtherArm(group: FieldGroup): Partial<ComputeSettings> | undefined;
  /** When the wanted value would last have changed without the trial; undefined if that is too long ago. */
  lastBoundaryWithoutTrial(group: FieldGroup): number | undefined;
  /** When the wanted value would next change without the trial. */
  nextBoundaryWithoutTrial(group: FieldGroup): number | undefined;
}

/** What a guard says of a compute. */
export interface GuardVerdict {
  policy: string;
  verdict: Verdict;
}

/** Why a change may not be made now and, if known, until when. */
export interface Objection {
  code: ReasonCode;
  message: string;
  untilMs?: number;
}

/** Checks one reason to hold a change back; undefined lets it pass. */
export type Gate = (input: GateInput) => Objection | undefined;
