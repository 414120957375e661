/** The stored usage of one unit: 336 hours and 400 days, in at most 3 KB. */
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { joinDaysAndHours } from './known.ts';
import type { UsageBucket, UsageSeries, UsageUnit } from './usage.ts';

export const HOURS_KEPT = 14 * 24;
export const DAYS_KEPT = 400;

const VERSION = 1;
const HEADER_BYTES = 14;
const UNKNOWN = 0xffff_ffff;

/** Contiguous buckets of one length, oldest first; null is unknown. */
interface BucketRow {
  startMs: number;
  values: (number | null)[];
}

/** The usage of a unit in whole CU-seconds. */
export interface UnitUsage extends UsageUnit {
  hours: BucketRow;
  days: BucketRow;
}

export function noUsage({ projectId, branchId }: UsageUnit): UnitUsage {
  return { projectId, branchId, hours: { startMs: 0, values: [] }, days: { startMs: 0, values: [] } };
}

/** The end of the last stored hour or day, milliseconds since the epoch; 0 if there is none. */
export function usageEndMs({ hours, days }: UnitUsage): number {
  return Math.max(hours.startMs + hours.values.length * HOUR_MS, days.startMs + days.values.length * DAY_MS);
}

interface MergeResult {
  usage: UnitUsage;
  /** The number of buckets whose known value was replaced by another one. */
  corrected: number;
  isChanged: boolean;
}

/**
 * Merges new buckets into stored ones. Known values replace stored ones; unknown ones don't, since a stalled service must not remove
 * earlier data. Expired data are dropped.
 */
export function mergeUsage(stored: UnitUsage, { buckets }: Pick<UsageSeries, 'buckets'>): MergeResult {
  const hours = mergeRow(stored.hours, buckets, HOUR_MS, HOURS_KEPT);
  const days = mergeRow(stored.days, buckets, DAY_MS, DAYS_KEPT);
  return {
    usage: { ...stored, hours: hours.row, days: days.row },
    corrected: hours.corrected + days.corrected,
    isChanged: hours.isChanged || days.isChanged,
  };
}

/** Merges the buckets of one length into its row. */
function mergeRow(row: BucketRow, allBuckets: readonly UsageBucket[], lengthMs: number, maxBuckets: number) {
  const buckets = allBuckets.filter(({ seconds }) => seconds * 1000 === lengthMs);
  const [first] = buckets;
  if (first === undefined) return { row, corrected: 0, isChanged: false };
  const isEmpty = row.values.length === 0;
  const endMs = Math.max(
    isEmpty ? 0 : row.startMs + row.values.length * lengthMs,
    (buckets.at(-1)?.startMs ?? 0) + lengthMs,
  );
  const startMs = Math.max(
    isEmpty ? first.startMs : Math.min(row.startMs, first.startMs),
    endMs - maxBuckets * lengthMs,
  );
  const values: (number | null)[] = Array.from({ length: (endMs - startMs) / lengthMs }, (_, index) => {
    return row.values[(startMs - row.startMs) / lengthMs + index] ?? null;
  });
  let corrected = 0;
  let isChanged = values.length !== row.values.length || startMs !== row.startMs;
  for (const bucket of buckets) {
    const index = (bucket.startMs - startMs) / lengthMs;
    if (index < 0 || bucket.cuSeconds === null) continue;
    const before = values[index];
    const value = Math.round(bucket.cuSeconds);
    if (before === value) continue;
    if (before !== null) corrected += 1;
    values[index] = value;
    isChanged = true;
  }
  return { row: { startMs, values }, corrected, isChanged };
}

/** The stored usage as one series of days and hours; see {@link joinDaysAndHours}. */
export function seriesOf({ projectId, branchId, hours, days }: UnitUsage): UsageSeries {
  const buckets = joinDaysAndHours(bucketsOf(days, 86_400), bucketsOf(hours, 3600));
  return { projectId, branchId, buckets };
}

function bucketsOf({ startMs, values }: BucketRow, seconds: number): UsageBucket[] {
  return values.map((cuSeconds, index) => ({ startMs: startMs + index * seconds * 1000, seconds, cuSeconds }));
}

/** Adds the usage of a deleted branch to the sum of its project's deleted branches. */
export function addUsage(sum: UnitUsage, added: UnitUsage): UnitUsage {
  const addedBuckets = (into: BucketRow, row: BucketRow, seconds: number): UsageBucket[] => {
    const storedByStart = new Map(bucketsOf(into, seconds).map((bucket) => [bucket.startMs, bucket.cuSeconds]));
    return bucketsOf(row, seconds).map(({ startMs, cuSeconds }) => {
      const before = storedByStart.get(startMs) ?? null;
      const total = before === null && cuSeconds === null ? null : (before ?? 0) + (cuSeconds ?? 0);
      return { startMs, seconds, cuSeconds: total };
    });
  };
  const buckets = [...addedBuckets(sum.days, added.days, 86_400), ...addedBuckets(sum.hours, added.hours, 3600)];
  return mergeUsage(sum, { buckets }).usage;
}

/** Encodes usage: a version; the first hour and the number of hours; the first day and the number of days; and 4 bytes for each value. */
export function encodeUsage({ hours, days }: Pick<UnitUsage, 'hours' | 'days'>): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + 4 * (hours.values.length + days.values.length));
  const view = new DataView(bytes.buffer);
  view.setUint8(0, VERSION);
  view.setUint32(2, hours.startMs / HOUR_MS);
  view.setUint16(6, hours.values.length);
  view.setUint32(8, days.startMs / DAY_MS);
  view.setUint16(12, days.values.length);
  [...hours.values, ...days.values].forEach((value, index) => {
    view.setUint32(HEADER_BYTES + 4 * index, value === null ? UNKNOWN : Math.min(value, UNKNOWN - 1));
  });
  return bytes;
}

/** Decodes stored usage; undefined if it is invalid or of another version. */
export function decodeUsage(unit: UsageUnit, bytes: Uint8Array): UnitUsage | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [hours, days] = [view.getUint16(6), view.getUint16(12)];
  if (view.getUint8(0) !== VERSION || bytes.length !== HEADER_BYTES + 4 * (hours + days)) return undefined;
  const values = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => {
      const value = view.getUint32(HEADER_BYTES + 4 * (from + index));
      return value === UNKNOWN ? null : value;
    });
  const { projectId, branchId } = unit;
  return {
    projectId,
    branchId,
    hours: { startMs: view.getUint32(2) * HOUR_MS, values: values(0, hours) },
    days: { startMs: view.getUint32(8) * DAY_MS, values: values(hours, days) },
  };
}
