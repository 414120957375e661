export const FIELD_GROUPS: readonly FieldGroup[] = ['size', 'suspend_timeout'];

/** The fields of a group; undefined unless all of them are set. */
export function fieldsOf(
  group: FieldGroup,
  { minCu, maxCu, suspendTimeoutSeconds }: { [Field in keyof ComputeSettings]?: number | undefined },
): Partial<ComputeSettings> | undefined {
  if (group === 'size') return minCu === undefined || maxCu === undefined ? undefined : { minCu, maxCu };
  return suspendTimeoutSeconds === undefined ? undefined : { suspendTimeoutSeconds };
}

/** The group of the fields that a change sets; `size` if it sets both groups. */
export function groupOf({ maxCu }: { maxCu?: number | undefined }): FieldGroup {
  return maxCu === undefined ? 'suspend_timeout' : 'size';
}

/** The wanted fields of a group; undefined without a value. */
export function wantedFields(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: Desired,
): Partial<ComputeSettings> | undefined {
  return fieldsOf(group, { ...size, suspendTimeoutSeconds: suspendTimeoutSeconds ?? undefined });
}

/** A group of fields: all fields of a group are decided, gated and reported together. */
export type FieldGroup = 'size' | 'suspend_timeout';

/** Wanted settings of a compute; null leaves the field as it is. */
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

/** The three settings that ebb writes. The timeout is canonical: −1 means "never suspends", and 0 does not occur. */
export interface ComputeSettings extends Size {
  suspendTimeoutSeconds: number;
}

/** A role of a branch; every branch with a parent is a `child`. */
export const BRANCH_ROLES = ['default', 'protected', 'child'] as const;
export type BranchRole = (typeof BRANCH_ROLES)[number];

/** The facts by which policies select a compute. They are also known for deleted computes. */
export interface ComputeIdentity {
  account: string;
  projectId: string;
  projectName: string;
  /** Set if the project's name could not be read: {@link projectName} is then the id and matches no glob on names. */
  projectNameUnknown?: true;
  computeId: string;
  branchId: string;
  /** Read only where a policy selects by branch; a selector that needs it answers `unknown` if it is absent. */
  branchName?: string;
  /** Absent under the same conditions as {@link branchName}. */
  branchRoles?: readonly BranchRole[];
  type: 'read_write' | 'read_only';
  regionId: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
}

/** A compute (the control API's "endpoint") as last read. Instants are milliseconds since the epoch. */
export interface Compute extends ComputeSettings, ComputeIdentity {
  state: ComputeState;
  /** The state that a running operation leads to; absent when none is running. */
  pendingState?: ComputeState;
  disabled: boolean;
  /** The time of the last change by the control API's clock; absent where unknown. */
  updatedAtMs?: number;
  /** The host name of the compute's Postgres server. */
  host?: string;
  startedAtMs?: number;
  lastActiveAtMs?: number;
}

/** The compute as its running operation will leave it. Operations take seconds, so predictions assume that they have ended. */
export function afterOperation({ pendingState, ...compute }: Compute): Compute {
  return pendingState === undefined ? compute : { ...compute, state: pendingState };
}

/** The platform's default timeout, which the control API also writes as 0. */
export const DEFAULT_SUSPEND_TIMEOUT_SECONDS = 300;

/** The control API's value for "never suspends". */
export const NEVER_SUSPENDS = -1;

/** Replaces 0, which means the platform's default, by 300 s: if 0 and 300 counted as different, ebb would repeat the same PATCH for ever. */
export function canonicalSuspendTimeout(seconds: number): number {
  return seconds === 0 ? DEFAULT_SUSPEND_TIMEOUT_SECONDS : seconds;
}

/** The longer of two canonical timeouts, in seconds; "never" is longer than any other. */
export function longerTimeout(a: number, b: number): number {
  return timeoutLength(b) > timeoutLength(a) ? b : a;
}

/** A canonical timeout as a comparable number: "never" is infinite. */
export function timeoutLength(seconds: number): number {
  return seconds === NEVER_SUSPENDS ? Number.POSITIVE_INFINITY : seconds;
}

/** The inverse of {@link timeoutLength}. */
export function timeoutOfLength(length: number): number {
  return Number.isFinite(length) ? length : NEVER_SUSPENDS;
}

/** The settings of a compute alone, without its identity and state. */
export function settingsOf({ minCu, maxCu, suspendTimeoutSeconds }: ComputeSettings): ComputeSettings {
  return { minCu, maxCu, suspendTimeoutSeconds };
}

export function sizeOf({ minCu, maxCu }: Size): Size {
  return { minCu, maxCu };
}

/** The size or the timeout. */
export function settingOf(group: FieldGroup, settings: ComputeSettings): Size | number {
  return group === 'size' ? sizeOf(settings) : settings.suspendTimeoutSeconds;
}

/** The size or the timeout of wanted or proposed values, as it is there: null or undefined without one. */
export function valueOfGroup<V extends { size?: unknown; suspendTimeoutSeconds?: unknown }>(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: V,
): V['size'] | V['suspendTimeoutSeconds'] {
  return group === 'size' ? size : suspendTimeoutSeconds;
}

/** True if `settings` already has every value of `changes`. */
export function hasSettings(settings: ComputeSettings, changes: Partial<ComputeSettings>): boolean {
  return (
    (changes.minCu ?? settings.minCu) === settings.minCu &&
    (changes.maxCu ?? settings.maxCu) === settings.maxCu &&
    (changes.suspendTimeoutSeconds ?? settings.suspendTimeoutSeconds) === settings.suspendTimeoutSeconds
  );
}

/** True if the maximum rises or, with an equal maximum, the minimum does. */
export function isRaise(from: Size, to: Size): boolean {
  return to.maxCu === from.maxCu ? to.minCu > from.minCu : to.maxCu > from.maxCu;
}

/** A size with the larger of both minimums and the larger of both maximums; `a` itself if neither is larger in `b`. */
export function largerSize(a: Size, b: Size): Size {
  if (b.minCu <= a.minCu && b.maxCu <= a.maxCu) return a;
  return { minCu: Math.max(a.minCu, b.minCu), maxCu: Math.max(a.maxCu, b.maxCu) };
}

/** True if two sizes are equal, or both are unknown. */
export function sameSize(a: Size | null | undefined, b: Size | null | undefined): boolean {
  return a?.minCu === b?.minCu && a?.maxCu === b?.maxCu;
}
