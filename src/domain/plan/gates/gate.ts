import type { AccountFacts } from '../../compute/account-facts.ts';
import type { Compute, ComputeSettings, Desired, FieldGroup } from '../../compute/compute.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { Decision } from '../../decide/decide.ts';
import type { DatedVerdict } from '../../guards/state.ts';
import type { Freeze } from '../../overrides/freezes.ts';
import type { AtMost, ManualChanges, PartialDisruption } from '../../policy/disruption.ts';
import type { ComputeRecord, GuardRemedy } from '../../records/compute-record.ts';
import type { Change } from '../change.ts';

export interface GateInput {
  change: Change;
  decision: Decision;
  compute: Compute;
  /** The facts that were measured in the compute's account. */
  verified?: AccountFacts | undefined;
  record: ComputeRecord | undefined;
  mode: 'enforce' | 'observe';
  /** True if an operation of another compute in the project is running: the control API then refuses changes. */
  projectBusy: boolean;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The next later instant at which a desired field changes (of one group, if given). */
  nextBoundaryAfter(afterMs: number, group?: FieldGroup): number | undefined;
  /** The same without holds: what a person sets or releases ends no wait for a boundary. */
  policyBoundaryAfter(afterMs: number, group?: FieldGroup): number | undefined;
  /** The enforced values at a later instant, if nothing but the time changes. */
  enforcedAt(instantMs: number): Desired;
  /** The instant since which the group's value is wanted; −Infinity if that is longer ago than any deadline. */
  wantedSince(group: FieldGroup): number;
  /** People's freezes that are active for the compute. */
  freezes?: readonly Freeze[] | undefined;
  /** The number of client connections now; absent if unknown. */
  connections?: number | undefined;
  /** Defaults from the settings, for the fields of `disruption` that a policy leaves out. */
  disruption?: PartialDisruption | undefined;
  manualChanges?: ManualChanges | undefined;
  /** Absent if the compute is in no trial. */
  trial?: TrialGateInput | undefined;
  /** The end of a budget step, if the wanted value last changed then, milliseconds since the epoch. */
  stepEndedAtMs(group: FieldGroup): number | undefined;
  /** The verdicts of the enforcing guards that select the compute. */
  guards: readonly GuardVerdict[];
  /** True if the policy may not disturb another compute at once. Absent: not limited. */
  isAtOnceReached?(change: Change, share: number): boolean;
  /** True if the policy may not disturb another compute within the limit's window. Absent: not limited. */
  isAtMostReached?(change: Change, limit: AtMost): boolean;
}

/** The trial of a compute, for gates. Instants are milliseconds since the epoch. */
export interface TrialGateInput {
  policy: string;
  /** When the compute enters or leaves the control group, ascending. */
  flips: readonly number[];
  /** The end of the period at an instant; undefined outside of the trial. */
  periodEndMs(instantMs: number): number | undefined;
  /** The values that would be wanted now if the compute had not changed its arm; undefined if none would. */
  wantedInOtherArm(group: FieldGroup): Partial<ComputeSettings> | undefined;
  /** When the wanted value would last have changed without the trial; undefined if that is too long ago. */
  lastBoundaryWithoutTrial(group: FieldGroup): number | undefined;
  /** When the wanted value would next change without the trial. */
  nextBoundaryWithoutTrial(group: FieldGroup): number | undefined;
}

export interface GuardVerdict {
  policy: string;
  remedy: GuardRemedy;
  verdict: DatedVerdict;
}

/** The reason why a change may not be made now, and until when if that is known. */
export interface Objection {
  code: ReasonCode;
  message: string;
  untilMs?: number;
}

/** Checks one reason to hold a change back; undefined lets it pass. */
export type Gate = (input: GateInput) => Objection | undefined;
