import { type Compute, type ComputeSettings, type FieldGroup, settingsOf } from '../compute/compute.ts';
import type { Arm, Draw } from '../trial/assignment.ts';

/**
 * A person's request to restore the baseline. It applies only to fields that no policy sets. The others need a hold, since policies would change
 * them again. Instants are milliseconds since the epoch.
 */
export interface Restore {
  /** The person who asked. */
  owner: string;
  askedAtMs: number;
  /** The request is invalid from this instant on. */
  expiresAtMs: number;
  /** Restores without waiting until the compute sleeps. */
  now?: true;
  /** The fields to restore; both groups if absent. */
  fields?: readonly FieldGroup[];
}

/** The name of the policy that sets each group of fields. */
export type SetBy = Partial<Record<FieldGroup, string>>;

/** A change without a known answer. It is stored before the call and removed after it. */
export interface Intent {
  /** The fields of a PATCH; absent for a restart. */
  fields?: Partial<ComputeSettings>;
  restart?: true;
  /** The previous values of the fields that a PATCH changes. */
  before?: Partial<ComputeSettings>;
  atMs: number;
  policy?: string;
  /** The id of the request to the control API. */
  requestId?: string;
  /** The number of clients that the change disconnects; absent if it disconnects none, or an unknown number. */
  dropped?: number;
  /** True for an urgent raise, made because connections were running out. */
  urgent?: true;
  /** Set if the change may disconnect clients and was not announced: what caused it. */
  unannounced?: RestartCause;
  /** Why it was not announced, in words, if more is known than the cause. */
  unannouncedWhy?: string;
  /** Set if it may have been announced, but the store has lost its data since. Milliseconds since the epoch. */
  announcementsLostAtMs?: number;
  /** The receivers whose digest has counted the compute among those that restart. */
  announcedTo?: readonly string[];
  /** Set if the change disconnects clients, and was announced for an instant that is long over. */
  late?: LateChange;
}

/** The announcement of a change that comes late. */
export interface LateChange {
  owner: string;
  /** The first announced instant of the restarts, milliseconds since the epoch. */
  announcedAtMs: number;
  /** The last announced instant; absent if it equals the first. */
  announcedToMs?: number;
  /** The beginning of the announced slot, which the restarts have in common; absent in records of earlier versions. */
  slotMs?: number;
  /** How many restarts were announced with it. */
  restarts: number;
  /** How many of these restarts, at most, are still to be made; absent if unknown. */
  left?: number;
  /** Why it is late; absent if unknown. */
  why?: string;
}

/** The cause of a restart: a boundary of the policies, a person's request, or something unforeseeable. */
export type RestartCause = 'boundary' | 'person' | 'other';

/** An operation of the control API that ebb started and whose end is awaited. */
export interface OpenOperation {
  operationId: string;
  action: string;
  /** The time of the change; equal for all operations that it started. */
  startedAtMs: number;
  /** The policy whose change started it. */
  policy?: string;
  /** The fields of the PATCH that started it; absent for a restart. */
  fields?: Partial<ComputeSettings>;
  /** True if another operation of the same change failed and that failure was counted. */
  failureCounted?: true;
}

/** Consecutive failures of changes to the same desired settings. */
export interface Failures {
  count: number;
  lastAtMs: number;
  /** The desired settings; different ones start a new count. */
  desired: Partial<ComputeSettings>;
  /** The last message of the control API. */
  message: string;
  /** True if the last failure was a refusal that a retry would not change. */
  refused?: true;
}

/** A change that got no answer and counts as failed. It may still take effect. Instants are milliseconds since the epoch. */
export interface LostWrite {
  /** Both ends of the size, or the timeout. */
  fields: Partial<ComputeSettings>;
  /** The instant of the request. */
  atMs: number;
  /** The first reading that showed its effect, if any. */
  seenAtMs?: number;
}

/** The target of a change. */
export type ChangeGroup = FieldGroup | 'restart';

export interface Wanted {
  fields: Partial<ComputeSettings>;
  sinceMs: number;
  /** The first decision that wanted the fields; absent: at `sinceMs`. */
  notedAtMs?: number;
}

/** A manual change: a value that a person or another program set in place of ebb's. */
export interface ManualMark {
  /** Both ends of the size, or the timeout. */
  fields: Partial<ComputeSettings>;
  seenAtMs: number;
  /** True if the manual change raised the size. */
  raises: boolean;
  /** The time of the manual change by the control API's clock. */
  updatedAtMs?: number;
}

/** ebb's last change of a group of fields. For a while readings may still show the values before it. */
export interface LastChange {
  /** The compute's previous values. */
  before: Partial<ComputeSettings>;
  /** The values that it set; absent in records of older versions. */
  to?: Partial<ComputeSettings>;
  answeredAtMs: number;
  /** The `updated_at` of the compute in the answer, by the control API's clock. */
  updatedAtMs?: number;
}

/** A manually set value that becomes the baseline once a later reading shows it too. */
export interface BaselineCandidate {
  fields: Partial<ComputeSettings>;
  /** The start of the first reading that showed the value. */
  readAtMs: number;
}

/** A value that a person or another program has set, and that has become the baseline. */
export interface BaselineChange {
  /** The start of the first reading that showed it. */
  seenAtMs: number;
  before: Partial<ComputeSettings>;
}

/** A compute's draw in a trial, and its settings before the trial. */
export interface TrialRecord extends Draw {
  /** The settings for the control group; null if they can't be trusted, and the compute is in no arm. */
  baseline: ComputeSettings | null;
  /** The digest of the trial's terms at the time of the draw. */
  terms: string;
  sinceMs: number;
  /** How long the compute had the settings of its arm; absent before the first check in an arm. */
  kept?: Compliance;
}

/** How long a compute has had the settings of its arm, in milliseconds. */
export interface Compliance {
  arm: Arm | null;
  /** True if the compute has had its arm's settings since `sinceMs`. */
  isKept: boolean;
  sinceMs: number;
  /** The sums before `sinceMs`. */
  control: readonly [keptMs: number, allMs: number];
  treated: readonly [keptMs: number, allMs: number];
}

/** Trial records by the name of the trial. */
export type TrialRecords = Readonly<Record<string, TrialRecord>>;

/**
 * The values of a group of fields before a lowering that a guard took back. They are not lowered again while the lowering policy is
 * unchanged. Instants are milliseconds since the epoch.
 */
export interface Floor {
  guard: string;
  sinceMs: number;
  /** Both ends of the size, or the timeout. */
  fields: Partial<ComputeSettings>;
  lowered: Partial<ComputeSettings>;
  /** The policy that lowered them, and the digest of its terms. */
  policy: string;
  terms: string;
}

export type Floors = Partial<Record<FieldGroup, Floor>>;

/** A harm that a guard found after a lowering. Instants are milliseconds since the epoch. */
export interface GuardFinding {
  guard: string;
  /** When the lowering was answered; this lowering and earlier ones are no longer watched. */
  loweredAtMs: number;
  from: Partial<ComputeSettings>;
  to: Partial<ComputeSettings>;
  /** The first bad sample. */
  badSinceMs: number;
  foundAtMs: number;
  remedy: GuardRemedy;
  /** What kept the values from being set back when the harm was found, such as a freeze; absent if nothing did. */
  obstacle?: string;
}

/** `undo` restarts no awake compute, so it sets a size back when the compute next sleeps. */
export type GuardRemedy = 'notify' | 'undo' | 'undo_with_restart';

/** The stored record of a compute. Instants are milliseconds since the epoch. */
export interface ComputeRecord {
  /** The settings when ebb first saw the compute, or those that a person has set since. */
  baseline: ComputeSettings;
  firstSeenAtMs: number;
  /** The first reconcile that could change the compute; absent while it is only observed, or while the policies of its team are not loaded. */
  enforcedSinceMs?: number;
  /** The values that ebb last applied, or that the compute already had when policies wanted them, by field. */
  lastApplied: Partial<ComputeSettings>;
  /** No decision is made for an instant before this one. */
  lastDecidedAtMs: number;
  /** The last request that changes the compute; readings that began earlier are outdated. */
  lastSentAtMs?: number;
  /** Set while the control API does not list the compute. */
  absentSinceMs?: number;
  intent?: Intent;
  openOperations: OpenOperation[];
  /** When the last operation of a change ended, by the control API's clock. */
  operationEndedAtMs?: number;
  failures?: Partial<Record<ChangeGroup, Failures>>;
  /** Changes without an answer that may still take effect, or took effect late, oldest first. */
  lostWrites?: Partial<Record<FieldGroup, readonly LostWrite[]>>;
  /** The values that enforcing policies want; empty fields: no value. */
  wanted?: Partial<Record<FieldGroup, Wanted>>;
  /** Manual changes that are still in place. */
  manual?: Partial<Record<FieldGroup, ManualMark>>;
  /** ebb's last change of each group of fields. */
  lastChanges?: Partial<Record<FieldGroup, LastChange>>;
  /** Groups that the last reading showed with outdated values, and the newest `updated_at` of consecutive such readings. */
  lagging?: Partial<Record<FieldGroup, true>> & { updatedAtMs?: number };
  /** The last change of the baseline, by group. Absent where the baseline is as ebb first saw it, or was given with a request to restore. */
  baselineChanges?: Partial<Record<FieldGroup, BaselineChange>>;
  baselineCandidates?: Partial<Record<FieldGroup, BaselineCandidate>>;
  /** The instants at which ebb overwrote other values, oldest first. */
  reversals?: Partial<Record<FieldGroup, readonly number[]>>;
  /** The last change by ebb that restarted the compute. */
  lastDisruption?: { atMs: number; lowered: boolean; policy?: string };
  /** Trials that have begun and are still among the policies. */
  trials?: TrialRecords;
  /** The last known name of the project; stored only where policies belong to teams. */
  projectName?: string;
  /** Set if more team policies select the compute because its project was renamed. */
  renamed?: { from: string; atMs: number; by: readonly string[] };
  /** A person's request to restore the baseline. */
  restore?: Restore;
  /** The policies that set fields at the last decision; absent if none. Guards and restores need them, also in commands that run without a daemon. */
  setBy?: SetBy;
  guardFinding?: GuardFinding;
  floors?: Floors;
  /** Set if a PATCH of size and timeout together was refused. They are then sent separately, so that one does not block the other. */
  oneFieldGroupAtATime?: true;
}

/** When ebb began to enforce, and the last changes, made by ebb or by people. */
export type ChangeFacts = Pick<ComputeRecord, 'enforcedSinceMs' | 'lastChanges' | 'manual'>;

/** When a group of fields was last changed; undefined if it was not. Milliseconds since the epoch. */
export function lastChangeMs({ lastChanges, manual }: ChangeFacts, group: FieldGroup): number | undefined {
  const changedMs = Math.max(lastChanges?.[group]?.answeredAtMs ?? 0, manual?.[group]?.seenAtMs ?? 0);
  return changedMs || undefined;
}

/** The parts of a record that affect decisions. */
export function decidingFacts(record: Partial<ComputeRecord> | undefined) {
  return { baseline: record?.baseline, trials: record?.trials, floors: record?.floors };
}

/** The record of a newly discovered compute: its present settings are the baseline. */
export function firstRecord(compute: Compute, nowMs: number): ComputeRecord {
  return {
    baseline: settingsOf(compute),
    firstSeenAtMs: nowMs,
    lastApplied: {},
    lastDecidedAtMs: nowMs,
    openOperations: [],
  };
}
