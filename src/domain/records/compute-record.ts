import { type Compute, type ComputeSettings, type FieldGroup, settingsOf } from '../compute/compute.ts';
import type { Arm, Draw } from '../trial/assignment.ts';

/**
 * A person wants a compute back as it was before ebb. It concerns the fields on which no policy sets a value; where policies
 * speak they would change it again, which takes a hold. Instants are milliseconds since the epoch.
 */
export interface Restore {
  /** Who asked. */
  owner: string;
  askedAtMs: number;
  /** What could not be done before this is not wanted any more. */
  expiresAtMs: number;
  /** Without waiting for sleep. */
  now?: true;
  /** What is wanted back; both groups of fields if absent. */
  fields?: readonly FieldGroup[];
}

/** By group of fields, the name of the policy that sets it. */
export type SetBy = Partial<Record<FieldGroup, string>>;

/** A change that was asked for and whose answer is not yet known. Written before the call, removed after it. */
export interface Intent {
  /** The fields of a PATCH; absent for a restart. */
  fields?: Partial<ComputeSettings>;
  restart?: true;
  /** What the compute had before, of the fields that a PATCH changes. */
  before?: Partial<ComputeSettings>;
  atMs: number;
  policy?: string;
  /** That of the request. */
  requestId?: string;
  /** How many clients it was known to disconnect; absent if none, or if that is not known. */
  dropped?: number;
  /** It raised the size at once, because few connections were left. */
  urgent?: true;
}

/** An operation that ebb started and follows. */
export interface OpenOperation {
  operationId: string;
  action: string;
  /** The same for all operations that one change started. */
  startedAtMs: number;
  /** The policy whose change started it. */
  policy?: string;
  /** The fields of the PATCH that started it; absent for a restart. */
  fields?: Partial<ComputeSettings>;
  /** Another operation of the same change has failed, and that failure is counted. */
  failureCounted?: true;
}

/** Changes that failed for the same desired settings, in a row. */
export interface Failures {
  count: number;
  lastAtMs: number;
  /** What was wanted when they failed; another desired value starts again. */
  desired: Partial<ComputeSettings>;
  /** What the control API said last. */
  message: string;
  /** The last one was refused as what the account may not do. */
  refused?: true;
}

/** What a change changes. */
export type ChangeGroup = FieldGroup | 'restart';

export interface Wanted {
  fields: Partial<ComputeSettings>;
  sinceMs: number;
}

/** What a person, or another program, has set instead of what ebb had applied. */
export interface ManualMark {
  /** Both ends of the size, or the timeout. */
  fields: Partial<ComputeSettings>;
  seenAtMs: number;
  /** True if it raised the size. */
  raises: boolean;
  /** When the compute was changed so, as the control API says. */
  updatedAtMs?: number;
}

/** ebb's last change of a group of fields: until it is shown everywhere, a reading may lag behind it. */
export interface LastChange {
  /** What the compute had before. */
  before: Partial<ComputeSettings>;
  answeredAtMs: number;
  /** What the answer said of the last change of the compute, by the clock of the control API. */
  updatedAtMs?: number;
}

/** A value that people have set, which becomes the baseline if a later reading shows it too. */
export interface BaselineCandidate {
  fields: Partial<ComputeSettings>;
  /** When the first reading that showed it began. */
  readAtMs: number;
}

/** How a trial has assigned a compute, and what it had before. */
export interface TrialRecord extends Draw {
  /** What the control group gets; null: it can't be trusted, so the compute is in no arm. */
  baseline: ComputeSettings | null;
  /** Digest of the terms under which it was assigned. */
  terms: string;
  sinceMs: number;
  /** How long the compute had what its arm is to have; absent before it was first looked at in an arm. */
  kept?: Compliance;
}

/** What was so since `sinceMs`, and the sums of what was before, by arm: milliseconds with what the arm is to have, and in all. */
export interface Compliance {
  arm: Arm | null;
  isKept: boolean;
  sinceMs: number;
  control: readonly [keptMs: number, allMs: number];
  treated: readonly [keptMs: number, allMs: number];
}

/** By name of the trial. */
export type TrialRecords = Readonly<Record<string, TrialRecord>>;

/** What ebb remembers of a compute. Instants are milliseconds since the epoch. */
export interface ComputeRecord {
  /** What the compute had when ebb first saw it. */
  baseline: ComputeSettings;
  firstSeenAtMs: number;
  /** When a daemon that may write first looked at it; absent while it was only observed. */
  enforcedSinceMs?: number;
  /** What ebb last applied, field by field. */
  lastApplied: Partial<ComputeSettings>;
  /** No decision is made for an instant before this one. */
  lastDecidedAtMs: number;
  /** When a change was last sent: what was read before says nothing about the compute any more. */
  lastSentAtMs?: number;
  /** Since when it has not been listed; absent while it is. */
  absentSinceMs?: number;
  intent?: Intent;
  openOperations: OpenOperation[];
  failures?: Partial<Record<ChangeGroup, Failures>>;
  /** What the policies that may write last wanted, and since when; empty fields: no value. */
  wanted?: Partial<Record<FieldGroup, Wanted>>;
  /** Changes by hand that are still there. */
  manual?: Partial<Record<FieldGroup, ManualMark>>;
  /** ebb's last change of each group of fields. */
  lastChanges?: Partial<Record<FieldGroup, LastChange>>;
  /** Fields that the last reading showed as they were before what is known already. */
  lagging?: Partial<Record<FieldGroup, true>>;
  baselineCandidates?: Partial<Record<FieldGroup, BaselineCandidate>>;
  /** When ebb wrote over what a person had set, oldest first. */
  reversals?: Partial<Record<FieldGroup, readonly number[]>>;
  /** The last change by ebb that restarted the compute. */
  lastDisruption?: { atMs: number; lowered: boolean; policy?: string };
  /** Trials that have begun, and that the policies still have. */
  trials?: TrialRecords;
  /** What its project was last called; remembered where policies belong to teams. */
  projectName?: string;
  /** Its project has got a name by which policies of a team select it that did not before. */
  renamed?: { from: string; atMs: number; by: readonly string[] };
  /** A person wants the baseline back. */
  restore?: Restore;
  /** What policies set at the last decision; absent if nothing. Tells those who have only the store. */
  setBy?: SetBy;
  /** A PATCH of size and timeout together was refused: they are sent apart, so that one does not block the other. */
  oneFieldGroupAtATime?: true;
}

/** The record of a compute that ebb has just discovered: what it has now is its baseline. */
export function firstRecord(compute: Compute, nowMs: number): ComputeRecord {
  return {
    baseline: settingsOf(compute),
    firstSeenAtMs: nowMs,
    lastApplied: {},
    lastDecidedAtMs: nowMs,
    openOperations: [],
  };
}
