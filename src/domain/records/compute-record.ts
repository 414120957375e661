import { type Compute, type ComputeSettings, type FieldGroup, settingsOf } from '../compute/compute.ts';
import type { Arm, Draw } from '../trial/assignment.ts';

/**
 * A person wants a compute back as it was before ebb. It concerns the fields on which no policy sets a value; where policies
 * speak they would change it again, which takes a hold. Instants are milliseconds since the epoch.
 */
export interface Restore {
  /** The person who asked. */
  owner: string;
  askedAtMs: number;
  /** The request expires here. */
  expiresAtMs: number;
  /** Without waiting for sleep. */
  now?: true;
  /** The fields to restore; both groups if absent. */
  fields?: readonly FieldGroup[];
}

/** By group of fields, the name of the policy that sets it. */
export type SetBy = Partial<Record<FieldGroup, string>>;

/** A change that was asked for and whose answer is not yet known. Written before the call, removed after it. */
export interface Intent {
  /** The fields of a PATCH; absent for a restart. */
  fields?: Partial<ComputeSettings>;
  restart?: true;
  /** The previous values of the fields that a PATCH changes. */
  before?: Partial<ComputeSettings>;
  atMs: number;
  policy?: string;
  /** That of the request. */
  requestId?: string;
  /** The number of clients that it was known to disconnect; absent if none, or if unknown. */
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
  /** The wish that failed; another one starts again. */
  desired: Partial<ComputeSettings>;
  /** The last message of the control API. */
  message: string;
  /** The last one was refused for a missing permission of the account. */
  refused?: true;
}

/** The target of a change. */
export type ChangeGroup = FieldGroup | 'restart';

export interface Wanted {
  fields: Partial<ComputeSettings>;
  sinceMs: number;
}

/** A value set by a person, or another program, in place of ebb's. */
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
  /** The compute's previous values. */
  before: Partial<ComputeSettings>;
  answeredAtMs: number;
  /** The compute's last change, by the clock of the control API in the answer. */
  updatedAtMs?: number;
}

/** A value that people have set, which becomes the baseline if a later reading shows it too. */
export interface BaselineCandidate {
  fields: Partial<ComputeSettings>;
  /** The start of the first reading that showed it. */
  readAtMs: number;
}

/** A compute's draw in a trial, and its settings before. */
export interface TrialRecord extends Draw {
  /** The settings in the control group; null: they can't be trusted, so the compute is in no arm. */
  baseline: ComputeSettings | null;
  /** Digest of the terms under which it was assigned. */
  terms: string;
  sinceMs: number;
  /** The time with the settings of its arm; absent before the first check in an arm. */
  kept?: Compliance;
}

/** The state since `sinceMs`, and the sums before it, by arm: milliseconds with the settings of the arm, and in all. */
export interface Compliance {
  arm: Arm | null;
  isKept: boolean;
  sinceMs: number;
  control: readonly [keptMs: number, allMs: number];
  treated: readonly [keptMs: number, allMs: number];
}

/** By name of the trial. */
export type TrialRecords = Readonly<Record<string, TrialRecord>>;

/** ebb's memory of a compute. Instants are milliseconds since the epoch. */
export interface ComputeRecord {
  /** The compute's settings when ebb first saw it. */
  baseline: ComputeSettings;
  firstSeenAtMs: number;
  /** The first reconcile by a daemon that may write; absent while it was only observed. */
  enforcedSinceMs?: number;
  /** The values that ebb last applied, by field. */
  lastApplied: Partial<ComputeSettings>;
  /** No decision is made for an instant before this one. */
  lastDecidedAtMs: number;
  /** When a change was last sent: earlier readings of the compute are outdated. */
  lastSentAtMs?: number;
  /** Since when it has not been listed; absent while it is. */
  absentSinceMs?: number;
  intent?: Intent;
  openOperations: OpenOperation[];
  failures?: Partial<Record<ChangeGroup, Failures>>;
  /** The last wish of the policies that may write, and since when; empty fields: no value. */
  wanted?: Partial<Record<FieldGroup, Wanted>>;
  /** Changes by hand that are still there. */
  manual?: Partial<Record<FieldGroup, ManualMark>>;
  /** ebb's last change of each group of fields. */
  lastChanges?: Partial<Record<FieldGroup, LastChange>>;
  /** Fields that the last reading showed with values older than known ones. */
  lagging?: Partial<Record<FieldGroup, true>>;
  baselineCandidates?: Partial<Record<FieldGroup, BaselineCandidate>>;
  /** When ebb overwrote a person's values, oldest first. */
  reversals?: Partial<Record<FieldGroup, readonly number[]>>;
  /** The last change by ebb that restarted the compute. */
  lastDisruption?: { atMs: number; lowered: boolean; policy?: string };
  /** Trials that have begun, and that the policies still have. */
  trials?: TrialRecords;
  /** The last name of its project; remembered where policies belong to teams. */
  projectName?: string;
  /** Its project has got a name by which policies of a team select it that did not before. */
  renamed?: { from: string; atMs: number; by: readonly string[] };
  /** A person wants the baseline back. */
  restore?: Restore;
  /** The fields that policies set at the last decision; absent if none. For commands that only have the store. */
  setBy?: SetBy;
  /** A PATCH of size and timeout together was refused: they are sent apart, so that one does not block the other. */
  oneFieldGroupAtATime?: true;
}

/** The record of a compute that ebb has just discovered: its present settings are its baseline. */
export function firstRecord(compute: Compute, nowMs: number): ComputeRecord {
  return {
    baseline: settingsOf(compute),
    firstSeenAtMs: nowMs,
    lastApplied: {},
    lastDecidedAtMs: nowMs,
    openOperations: [],
  };
}
