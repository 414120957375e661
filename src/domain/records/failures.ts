/** Failed changes, by the group that they change: one that is refused for ever must not hide, nor be hidden by, another. */

import { type Compute, type ComputeSettings, fieldsOf, hasSettings } from '../compute/compute.ts';
import type { ChangeGroup, ComputeRecord, Failures } from './compute-record.ts';
import { withLastChange } from './lag.ts';
import { RECOVERY } from './recovery-times.ts';

/** After this many failures in a row a compute is degraded: visible, and tried again rarely. */
export const FAILURES_UNTIL_DEGRADED = 3;

/** One failure. */
export interface Failure {
  /** Empty for a restart. */
  desired: Partial<ComputeSettings>;
  message: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  /** True if the same request would be refused again; a single refusal may be temporary. */
  permanent: boolean;
}

/** True if a change failed so often that it is tried again only rarely. */
export function isDegraded(failures: Failures | undefined): boolean {
  return failures !== undefined && failures.count >= FAILURES_UNTIL_DEGRADED;
}

/** Of a compute's failures the one that has happened most often. */
export function worstFailures({ failures = {} }: Pick<ComputeRecord, 'failures'>): Failures | undefined {
  return Object.values(failures).toSorted((a, b) => b.count - a.count)[0];
}

/**
 * A record after one more failure. Another desired value for the same fields starts again. A second refusal in a row is the last attempt for
 * a while.
 */
export function withFailure(record: ComputeRecord, { desired, message, atMs, permanent }: Failure): ComputeRecord {
  const failures = { ...record.failures };
  for (const group of groupsOf(desired)) {
    const fields = group === 'restart' ? {} : (fieldsOf(group, desired) ?? desired);
    const before = failures[group];
    const same = before && sameFields(before.desired, fields) ? before : undefined;
    const inARow = (same?.count ?? 0) + 1;
    const count = permanent && same?.refused ? Math.max(inARow, FAILURES_UNTIL_DEGRADED) : inARow;
    failures[group] = { count, lastAtMs: atMs, desired: fields, message, ...(permanent && { refused: true }) };
  }
  return { ...record, failures };
}

/** A record after a successful change of these fields: only their failures are removed. */
export function withoutFailures(record: ComputeRecord, changed: Partial<ComputeSettings>): ComputeRecord {
  return dropFailures(record, new Set(groupsOf(changed)));
}

/** A record without failures of values that are there by now, once nothing is running: however they got there. */
export function forgetOvercome(record: ComputeRecord, actual: Compute): ComputeRecord {
  if (!record.failures || record.openOperations.length > 0 || record.intent) return record;
  const overcome = Object.entries(record.failures).filter(([group, { desired, lastAtMs }]) =>
    group === 'restart' ? (actual.startedAtMs ?? 0) > lastAtMs : hasSettings(actual, desired),
  );
  return dropFailures(record, new Set(overcome.map(([group]) => group as ChangeGroup)));
}

/** True if both name the same fields with the same values. */
export function sameFields(a: Partial<ComputeSettings>, b: Partial<ComputeSettings>): boolean {
  return a.minCu === b.minCu && a.maxCu === b.maxCu && a.suspendTimeoutSeconds === b.suspendTimeoutSeconds;
}

function groupsOf({ minCu, maxCu, suspendTimeoutSeconds }: Partial<ComputeSettings>): ChangeGroup[] {
  const groups: ChangeGroup[] = [
    ...(minCu !== undefined || maxCu !== undefined ? (['size'] as const) : []),
    ...(suspendTimeoutSeconds !== undefined ? (['suspend_timeout'] as const) : []),
  ];
  return groups.length > 0 ? groups : ['restart'];
}

function dropFailures(record: ComputeRecord, groups: ReadonlySet<ChangeGroup>): ComputeRecord {
  const kept = Object.entries(record.failures ?? {}).filter(([group]) => !groups.has(group as ChangeGroup));
  if (kept.length === Object.keys(record.failures ?? {}).length) return record;
  const { failures: _old, ...rest } = record;
  return kept.length > 0 ? { ...rest, failures: Object.fromEntries(kept) } : rest;
}

/**
 * Concludes a change whose answer never arrived: it was applied (then it is what was last applied), it can no longer arrive (then it has
 * failed, and is wanted again), or it is too early to tell. Nothing is ever sent to find out.
 */
export function confirmWrite(record: ComputeRecord, actual: Compute, nowMs: number): ComputeRecord {
  if (!record.intent) return record;
  const { intent, ...answered } = record;
  const fields = intent.fields ?? {};
  if (intent.fields && hasSettings(actual, fields)) {
    const applied = { ...answered, lastApplied: { ...record.lastApplied, ...fields } };
    const { updatedAtMs } = actual;
    return withLastChange(applied, fields, {
      ...{ before: intent.before, answeredAtMs: nowMs },
      ...(updatedAtMs !== undefined && { updatedAtMs }),
    });
  }
  if (intent.restart && (actual.startedAtMs ?? 0) >= intent.atMs) return answered;
  if (nowMs < intent.atMs + RECOVERY.answerGraceMs) return record;
  // It failed when it was sent: a daemon that finds it after a crash has waited already.
  return withFailure(answered, { desired: fields, message: 'no answer came', atMs: intent.atMs, permanent: false });
}
