export const FIELD_GROUPS: readonly FieldGroup[] = ['size', 'suspend_timeout'];

/** The fields of a group; undefined unless all of them are known. */
export function fieldsOf(
  group: FieldGroup,
  { minCu, maxCu, suspendTimeoutSeconds }: { [Field in keyof ComputeSettings]?: number | undefined },
): Partial<ComputeSettings> | undefined {
  if (group === 'size') return minCu === undefined || maxCu === undefined ? undefined : { minCu, maxCu };
  return suspendTimeoutSeconds === undefined ? undefined : { suspendTimeoutSeconds };
}

/** The wanted fields of a group; undefined without a value. */
export function wantedFields(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: Desired,
): Partial<ComputeSettings> | undefined {
  return fieldsOf(group, { ...size, suspendTimeoutSeconds: suspendTimeoutSeconds ?? undefined });
}

/** The two groups of fields that are decided, gated and reported together. */
export type FieldGroup = 'size' | 'suspend_timeout';

/** Wanted settings of a compute; null: no value, the field is left as it is. */
export interface Desired {
  size: Size | null;
  suspendTimeoutSeconds: number | null;
}

/** The states in which the control API reports a compute. */
export const COMPUTE_STATES = ['init', 'active', 'idle'] as const;
export type ComputeState = (typeof COMPUTE_STATES)[number];

/** An autoscaling range in CU; equal ends are a fixed size. */
export interface Size {
  minCu: number;
  maxCu: number;
}

/** The three settings that ebb writes. The timeout is canonical: never 0, −1 for "never suspends". */
export interface ComputeSettings extends Size {
  suspendTimeoutSeconds: number;
}

/** `child` is every branch with a parent. */
export type BranchRole = 'default' | 'protected' | 'child';

/** The identity of a compute and its place: all that policies select by. It is also known of deleted computes. */
export interface ComputeIdentity {
  account: string;
  projectId: string;
  projectName: string;
  /** The name of the project could not be read: {@link projectName} is its id, and none that a policy could select. */
  projectNameUnknown?: true;
  computeId: string;
  branchId: string;
  /** Known only where a policy selects by branch and the branch could be read; a selector that needs it can't tell without. */
  branchName?: string;
  /** Known as {@link branchName} is. */
  branchRoles?: readonly BranchRole[];
  type: 'read_write' | 'read_only';
  regionId: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
}

/** A compute (the control API's "endpoint") as it was last seen. Instants are milliseconds since the epoch. */
export interface Compute extends ComputeSettings, ComputeIdentity {
  state: ComputeState;
  /** The state that a running operation leads to; absent when nothing is under way. */
  pendingState?: ComputeState;
  disabled: boolean;
  /** Time of the last change, by the clock of the control API; absent where unknown. */
  updatedAtMs?: number;
  /** The host of its Postgres. */
  host?: string;
  startedAtMs?: number;
  lastActiveAtMs?: number;
}

/** The timeout that 0 means, in seconds. */
export const DEFAULT_SUSPEND_TIMEOUT_SECONDS = 300;

/** "Never suspends", as the control API writes it. */
export const NEVER_SUSPENDS = -1;

/**
 * A timeout in the one form in which ebb compares timeouts: 0 means the platform's default of 300 s, so both are 300.
 * Treating them as different would send a PATCH that changes nothing, for ever.
 */
export function canonicalSuspendTimeout(seconds: number): number {
  return seconds === 0 ? DEFAULT_SUSPEND_TIMEOUT_SECONDS : seconds;
}

/** The longer of two canonical timeouts, in seconds; "never" is longer than any other. */
export function longerTimeout(a: number, b: number): number {
  return timeoutLength(b) > timeoutLength(a) ? b : a;
}

/** A canonical timeout as a number that can be compared: "never" is infinite. */
export function timeoutLength(seconds: number): number {
  return seconds === NEVER_SUSPENDS ? Number.POSITIVE_INFINITY : seconds;
}

/** The settings of a compute alone, without its identity and state. */
export function settingsOf(compute: ComputeSettings): ComputeSettings {
  return {
    minCu: compute.minCu,
    maxCu: compute.maxCu,
    suspendTimeoutSeconds: compute.suspendTimeoutSeconds,
  };
}

/** True if every field of `changes` is already so on `settings`. */
export function hasSettings(settings: ComputeSettings, changes: Partial<ComputeSettings>): boolean {
  return (
    (changes.minCu ?? settings.minCu) === settings.minCu &&
    (changes.maxCu ?? settings.maxCu) === settings.maxCu &&
    (changes.suspendTimeoutSeconds ?? settings.suspendTimeoutSeconds) === settings.suspendTimeoutSeconds
  );
}

/** True if two sizes are the same, both unknown included. */
export function sameSize(a: Size | null | undefined, b: Size | null | undefined): boolean {
  return a?.minCu === b?.minCu && a?.maxCu === b?.maxCu;
}
