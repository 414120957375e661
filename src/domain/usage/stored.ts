/** The stored usage of one unit: hours of two weeks and days of 400, in at most 3 KB. */
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { joinDaysAndHours } from './known.ts';
import type { UsageBucket, UsageSeries, UsageUnit } from './usage.ts';

export const HOURS_KEPT = 14 * 24;
export const DAYS_KEPT = 400;

const VERSION = 1;
const HEADER_BYTES = 14;
const UNKNOWN = 0xffff_ffff;

/** Buckets of one length without gaps, oldest first; null is unknown. */
interface Row {
  startMs: number;
  values: (number | null)[];
}

/** Usage of a unit in whole CU-seconds. */
export interface UnitUsage extends UsageUnit {
  hours: Row;
  days: Row;
}

export function noUsage({ projectId, branchId }: UsageUnit): UnitUsage {
  return { projectId, branchId, hours: { startMs: 0, values: [] }, days: { startMs: 0, values: [] } };
}

/** The end of the last hour or day that is kept, milliseconds since the epoch; 0 if none is. */
export function endOf({ hours, days }: UnitUsage): number {
  return Math.max(hours.startMs + hours.values.length * HOUR_MS, days.startMs + days.values.length * DAY_MS);
}

/** The result of merging an answer. */
export interface Merged {
  usage: UnitUsage;
  /** The number of buckets that were known with another value. */
  corrected: number;
  isChanged: boolean;
}

/**
 * Merges an answer: a known value replaces the stored one; an unknown one replaces nothing, since a stall must not remove earlier data.
 * Expired data are dropped.
 */
export function mergeUsage(kept: UnitUsage, { buckets }: Pick<UsageSeries, 'buckets'>): Merged {
  const hours = mergeRow(
    kept.hours,
    buckets.filter(({ seconds }) => seconds === 3600),
    HOUR_MS,
    HOURS_KEPT,
  );
  const days = mergeRow(
    kept.days,
    buckets.filter(({ seconds }) => seconds === 86_400),
    DAY_MS,
    DAYS_KEPT,
  );
  return {
    usage: { ...kept, hours: hours.row, days: days.row },
    corrected: hours.corrected + days.corrected,
    isChanged: hours.isChanged || days.isChanged,
  };
}

function mergeRow(row: Row, buckets: readonly UsageBucket[], lengthMs: number, most: number) {
  const [first] = buckets;
  if (first === undefined) return { row, corrected: 0, isChanged: false };
  const isEmpty = row.values.length === 0;
  const endMs = Math.max(
    isEmpty ? 0 : row.startMs + row.values.length * lengthMs,
    (buckets.at(-1)?.startMs ?? 0) + lengthMs,
  );
  const startMs = Math.max(isEmpty ? first.startMs : Math.min(row.startMs, first.startMs), endMs - most * lengthMs);
  const values: (number | null)[] = Array.from({ length: (endMs - startMs) / lengthMs }, (_, index) => {
    return row.values[(startMs - row.startMs) / lengthMs + index] ?? null;
  });
  let corrected = 0;
  let isChanged = values.length !== row.values.length || startMs !== row.startMs;
  for (const bucket of buckets) {
    const place = (bucket.startMs - startMs) / lengthMs;
    if (place < 0 || bucket.cuSeconds === null) continue;
    const before = values[place];
    const value = Math.round(bucket.cuSeconds);
    if (before === value) continue;
    if (before !== null) corrected += 1;
    values[place] = value;
    isChanged = true;
  }
  return { row: { startMs, values }, corrected, isChanged };
}

/** The stored usage as one series: days, then hours; a day's total wins over hours that don't agree with it. */
export function seriesOf({ projectId, branchId, hours, days }: UnitUsage): UsageSeries {
  const buckets = joinDaysAndHours(bucketsOf(days, 86_400), bucketsOf(hours, 3600));
  return { projectId, branchId, buckets };
}

function bucketsOf({ startMs, values }: Row, seconds: number): UsageBucket[] {
  return values.map((cuSeconds, index) => ({ startMs: startMs + index * seconds * 1000, seconds, cuSeconds }));
}

/** The usage of a deleted branch added to that of all deleted branches of its project. */
export function addUsage(sum: UnitUsage, one: UnitUsage): UnitUsage {
  const plus = (into: Row, row: Row, seconds: number): UsageBucket[] => {
    const known = new Map(bucketsOf(into, seconds).map((bucket) => [bucket.startMs, bucket.cuSeconds]));
    return bucketsOf(row, seconds).map(({ startMs, cuSeconds }) => {
      const before = known.get(startMs) ?? null;
      const total = before === null && cuSeconds === null ? null : (before ?? 0) + (cuSeconds ?? 0);
      return { startMs, seconds, cuSeconds: total };
    });
  };
  const buckets = [...plus(sum.days, one.days, 86_400), ...plus(sum.hours, one.hours, 3600)];
  return mergeUsage(sum, { buckets }).usage;
}

/** At most 3 KB: a version, and for hours and days the number of the first, how many there are, and 4 bytes for each. */
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

/** Decodes stored usage; undefined if it is of another version, or invalid. */
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
    ...{ projectId, branchId },
    hours: { startMs: view.getUint32(2) * HOUR_MS, values: values(0, hours) },
    days: { startMs: view.getUint32(8) * DAY_MS, values: values(hours, days) },
  };
}
