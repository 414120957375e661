/** Failed changes, counted per group of fields, so that a change that is always refused does not affect others. */
import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
} from '../compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../compute/compute-units.ts';
import { MINUTE_MS } from '../time/units.ts';
import type { ChangeGroup, ComputeRecord, Failures, Intent, LostWrite } from './compute-record.ts';
import { laggingGroups, withLag, withLastChange } from './lag.ts';
import { RECOVERY } from './recovery-times.ts';

/** After this many failures in a row a change is degraded: it is reported, and retried only rarely. */
export const FAILURES_UNTIL_DEGRADED = 3;

/**
 * A request without an answer may take effect for this long after it was sent, in milliseconds: longer than proxies usually keep a
 * request. Until then its values are not taken for a person's.
 */
export const LATE_EFFECT_MS = 10 * MINUTE_MS;

/** The clock of the control API may be behind ebb's by this much. */
const CLOCKS_APART_MS = MINUTE_MS;

/** Keeps the record small. */
const MAX_LOST_WRITES = 10;

export interface Failure {
  /** Empty for a restart. */
  desired: Partial<ComputeSettings>;
  message: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  /** True for a refusal that a retry would not change; a single one may still be temporary. */
  isPermanent: boolean;
}

/** True if a change failed so often that it is retried only rarely. */
export function isDegraded(failures: Failures | undefined): boolean {
  return failures !== undefined && failures.count >= FAILURES_UNTIL_DEGRADED;
}

/** The failures of a compute that are degraded. */
export function degradedFailures({ failures = {} }: Pick<ComputeRecord, 'failures'>): Failures[] {
  return Object.values(failures).filter(isDegraded);
}

/** The first failure that became degraded between two records, with the desired settings of all failures that did; undefined if none did. */
export function newlyDegraded(before: ComputeRecord, after: ComputeRecord): Failures | undefined {
  const groups = Object.entries(after.failures ?? {}) as [ChangeGroup, Failures][];
  const added = groups.filter(([group, failures]) => isDegraded(failures) && !isDegraded(before.failures?.[group]));
  const [first] = added;
  return first && { ...first[1], desired: Object.assign({}, ...added.map(([, { desired }]) => desired)) };
}

/** Text such as `the timeout of ep-1 can't be set to 1m`, about the desired settings of a failed change; a restart has none. */
export function describeFailing(computeId: string, desired: Partial<ComputeSettings>): string {
  const { minCu, maxCu, suspendTimeoutSeconds: seconds } = desired;
  const names: string[] = [];
  const values: string[] = [];
  if (minCu !== undefined && maxCu !== undefined) {
    names.push('size');
    values.push(`${formatSize({ minCu, maxCu })} CU`);
  }
  if (seconds !== undefined) {
    names.push('timeout');
    values.push(formatSuspendTimeout(seconds));
  }
  if (names.length === 0) return `${computeId} can't be restarted`;
  return `the ${names.join(' and ')} of ${computeId} can't be set to ${values.join(' and ')}`;
}

/**
 * Returns the record after one more failure. A different desired value for the same fields starts a new count. After a second refusal
 * in a row the change is degraded.
 */
export function withFailure(record: ComputeRecord, { desired, message, atMs, isPermanent }: Failure): ComputeRecord {
  const failures = { ...record.failures };
  for (const group of groupsOf(desired)) {
    const fields = group === 'restart' ? {} : (fieldsOf(group, desired) ?? desired);
    const before = failures[group];
    const previous = before && sameFields(before.desired, fields) ? before : undefined;
    const inARow = (previous?.count ?? 0) + 1;
    const count = isPermanent && previous?.refused ? Math.max(inARow, FAILURES_UNTIL_DEGRADED) : inARow;
    failures[group] = { count, lastAtMs: atMs, desired: fields, message, ...(isPermanent && { refused: true }) };
  }
  return { ...record, failures };
}

/** Returns the record without failures of these fields, after they were changed successfully. */
export function withoutFailures(record: ComputeRecord, changed: Partial<ComputeSettings>): ComputeRecord {
  return dropFailures(record, new Set(groupsOf(changed)));
}

/**
 * Returns the record without failures whose desired values are now in place, once nothing is running. These values become ebb's own: a request
 * that counted as lost may take effect late, and must not look like a person's change.
 */
export function withoutResolvedFailures(record: ComputeRecord, actual: Compute): ComputeRecord {
  if (!record.failures || record.openOperations.length > 0 || record.intent) return record;
  const resolved = Object.entries(record.failures).filter(([group, { desired, lastAtMs }]) =>
    group === 'restart' ? (actual.startedAtMs ?? 0) > lastAtMs : hasSettings(actual, desired),
  );
  const remaining = dropFailures(record, new Set(resolved.map(([group]) => group as ChangeGroup)));
  if (remaining === record) return record;
  const requested = resolved.map(([, { desired }]) => desired);
  return { ...remaining, lastApplied: Object.assign({}, record.lastApplied, ...requested) };
}

/**
 * Counts a value that a lost write has set late as ebb's own (`lastApplied`), even if ebb has written another one since. Removes lost writes that
 * can no longer take effect. Skips lagging fields, and changes nothing while a change or an operation is running. `readAtMs` is the start of the
 * reading; instants are milliseconds since the epoch.
 */
export function withLateEffects(
  record: ComputeRecord,
  actual: Compute,
  times: { nowMs: number; readAtMs: number },
): ComputeRecord {
  const isBusy = record.intent || record.openOperations.length > 0 || actual.pendingState !== undefined;
  if (!record.lostWrites || isBusy) return record;
  const lagging = laggingGroups(withLag(record, actual, times.readAtMs));
  const groups = FIELD_GROUPS.filter((group) => !lagging.includes(group));
  return groups.reduce((after, group) => withLateEffect(after, group, actual, times), record);
}

function withLateEffect(
  record: ComputeRecord,
  group: FieldGroup,
  actual: Compute,
  { nowMs, readAtMs }: { nowMs: number; readAtMs: number },
): ComputeRecord {
  const writes = record.lostWrites?.[group] ?? [];
  const { updatedAtMs } = actual;
  const applied = fieldsOf(group, record.lastApplied);
  const isExpected = [applied, record.manual?.[group]?.fields].some((fields) => fields && hasSettings(actual, fields));
  const isShown = ({ fields }: LostWrite) => hasSettings(actual, fields);
  // `updated_at` dates an effect that came while no daemon was running; in some accounts a change does not move it.
  const changedAtMs = ({ atMs }: LostWrite) =>
    updatedAtMs !== undefined && updatedAtMs >= atMs - CLOCKS_APART_MS ? Math.min(readAtMs, updatedAtMs) : readAtMs;
  const isLate = (write: LostWrite) =>
    write.seenAtMs === undefined && isShown(write) && changedAtMs(write) < write.atMs + LATE_EFFECT_MS;
  const late = isExpected ? undefined : writes.find(isLate);
  const kept = writes
    .map((write) => (write === late ? { ...write, seenAtMs: nowMs } : write))
    .filter((write) => readAtMs < write.atMs + LATE_EFFECT_MS || (write.seenAtMs !== undefined && isShown(write)));
  if (!late) return kept.length === writes.length ? record : withLostWrites(record, group, kept);
  const withFields = { ...record, lastApplied: { ...record.lastApplied, ...late.fields } };
  const answer = { answeredAtMs: nowMs, ...(updatedAtMs !== undefined && { updatedAtMs }) };
  return withLostWrites(withLastChange(withFields, late.fields, { before: applied, ...answer }), group, kept);
}

function withLostWrites(record: ComputeRecord, group: FieldGroup, writes: readonly LostWrite[]): ComputeRecord {
  const { lostWrites: { [group]: _before, ...others } = {}, ...rest } = record;
  const lostWrites = writes.length > 0 ? { ...others, [group]: writes.slice(-MAX_LOST_WRITES) } : others;
  return Object.keys(lostWrites).length > 0 ? { ...rest, lostWrites } : rest;
}

/** Adds a change without an answer, which may still take effect. */
function withLostWrite(record: ComputeRecord, { fields = {}, atMs }: Intent): ComputeRecord {
  return FIELD_GROUPS.reduce((after, group) => {
    const wanted = fieldsOf(group, fields);
    if (!wanted) return after;
    return withLostWrites(after, group, [...(after.lostWrites?.[group] ?? []), { fields: wanted, atMs }]);
  }, record);
}

/** True if the compute has a value of this group that a lost write has set late. */
export function isLateEffect(
  { lostWrites, lastChanges }: ComputeRecord,
  group: FieldGroup,
  actual: ComputeSettings,
): boolean {
  // A later change with an answer set the value itself.
  const sinceMs = lastChanges?.[group]?.answeredAtMs ?? 0;
  const hasSetIt = ({ fields, seenAtMs }: LostWrite) =>
    seenAtMs !== undefined && seenAtMs >= sinceMs && hasSettings(actual, fields);
  return lostWrites?.[group]?.some(hasSetIt) === true;
}

/** True if both have the same fields with the same values. */
export function sameFields(a: Partial<ComputeSettings>, b: Partial<ComputeSettings>): boolean {
  return a.minCu === b.minCu && a.maxCu === b.maxCu && a.suspendTimeoutSeconds === b.suspendTimeoutSeconds;
}

function groupsOf({ minCu, maxCu, suspendTimeoutSeconds }: Partial<ComputeSettings>): ChangeGroup[] {
  const groups: ChangeGroup[] = [];
  if (minCu !== undefined || maxCu !== undefined) groups.push('size');
  if (suspendTimeoutSeconds !== undefined) groups.push('suspend_timeout');
  return groups.length > 0 ? groups : ['restart'];
}

function dropFailures(record: ComputeRecord, groups: ReadonlySet<ChangeGroup>): ComputeRecord {
  const kept = Object.entries(record.failures ?? {}).filter(([group]) => !groups.has(group as ChangeGroup));
  if (kept.length === Object.keys(record.failures ?? {}).length) return record;
  const { failures: _old, ...rest } = record;
  return kept.length > 0 ? { ...rest, failures: Object.fromEntries(kept) } : rest;
}

/**
 * Concludes a change that got no answer. It was applied if the compute shows it. Otherwise it counts as failed after {@link
 * RECOVERY.answerGraceMs}; until then the record stays the same. A reading that may lag behind the previous change proves nothing: it may show
 * the requested values from an earlier time. `readAtMs` is the start of the reading.
 */
export function confirmWrite(record: ComputeRecord, actual: Compute, nowMs: number, readAtMs = nowMs): ComputeRecord {
  if (!record.intent) return record;
  const { intent, ...withoutIntent } = record;
  const fields = intent.fields ?? {};
  if (intent.fields && hasSettings(actual, fields)) {
    const lagging = laggingGroups(withLag(record, actual, readAtMs));
    if (lagging.some((group) => fieldsOf(group, fields))) return record;
    const applied = { ...withoutIntent, lastApplied: { ...record.lastApplied, ...fields } };
    const { updatedAtMs } = actual;
    const answer = { answeredAtMs: nowMs, ...(updatedAtMs !== undefined && { updatedAtMs }) };
    return withLastChange(applied, fields, { before: intent.before, ...answer });
  }
  if (intent.restart && (actual.startedAtMs ?? 0) >= intent.atMs) return withoutIntent;
  // An earlier reading may have missed the effect.
  if (Math.min(readAtMs, nowMs) < intent.atMs + RECOVERY.answerGraceMs) return record;
  // The failure is dated by the request: a daemon that finds the intent after a crash need not wait again.
  const failure = { desired: fields, message: 'no clear answer came', atMs: intent.atMs, isPermanent: false };
  return withFailure(withLostWrite(withoutIntent, intent), failure);
}
