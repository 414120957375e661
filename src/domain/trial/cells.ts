/** The measurements of a trial as a table: one row per unit, one column per counted local day. */

import { getOrAdd } from '../grouping.ts';
import { instantOfMinute, localDayAt } from '../time/windows/local-time.ts';
import type { UsageBucket } from '../usage/usage.ts';
import { armInPeriod, endDayOf, periodOfDay, type TrialDesign } from './assignment.ts';

export interface Cells {
  /** The number of slots: one in this many units is in the control group at a time. */
  oneOf: number;
  /** The slot of each unit in the rotation, as actually assigned. */
  slots: Uint8Array;
  /** The period of each column; only periods with columns are numbered, from 0. */
  periodOf: Uint16Array;
  /** `control[slot * periods + period]` is 1 if units of that slot are in the control group. */
  control: Uint8Array;
  periods: number;
  /** Values by row, then column; NaN if unknown. */
  values: Float64Array;
}

/** Limits a result to local days from `fromDay` to before `untilDay`. */
export interface DayLimits {
  fromDay?: number | undefined;
  untilDay?: number | undefined;
}

/** The days of the trial within the limits. */
export function daysOfTrial(design: TrialDesign, limits: DayLimits): { fromDay: number; untilDay: number } {
  const endDay = endDayOf(design);
  return {
    fromDay: Math.max(limits.fromDay ?? design.fromDay, design.fromDay),
    untilDay: Math.min(limits.untilDay ?? endDay, endDay),
  };
}

/** A unit's slot and values by local day; missing days and null are unknown. */
interface UnitDays {
  slot: number;
  days: ReadonlyMap<number, number | null>;
}

/**
 * Builds the table of a trial. Leaves out the first day of each period for all units, since flips happen on it, and the days in `leftOut`. The
 * latter must not depend on the draw: otherwise the test would not be exact.
 */
export function cellsOf(
  design: TrialDesign,
  units: readonly UnitDays[],
  limits: DayLimits & { leftOut?: ((localDay: number) => boolean) | undefined } = {},
): Cells {
  const { oneOf, rotateDays } = design;
  const { fromDay, untilDay } = daysOfTrial(design, limits);
  const columns: { day: number; period: number }[] = [];
  for (let day = fromDay; day < untilDay; day += 1) {
    const isFirst = (day - design.fromDay) % rotateDays === 0;
    const period = periodOfDay(design, day);
    if (period !== undefined && !isFirst && !limits.leftOut?.(day)) columns.push({ day, period });
  }
  const periods = [...new Set(columns.map(({ period }) => period))];
  const values = new Float64Array(units.length * columns.length);
  for (const [row, { days }] of units.entries()) {
    for (const [column, { day }] of columns.entries()) {
      values[row * columns.length + column] = days.get(day) ?? Number.NaN;
    }
  }
  return {
    oneOf,
    slots: Uint8Array.from(units, ({ slot }) => slot),
    periodOf: Uint16Array.from(columns, ({ period }) => periods.indexOf(period)),
    control: Uint8Array.from({ length: oneOf * periods.length }, (_, index) => {
      const [slot, period] = [Math.floor(index / periods.length), periods[index % periods.length] ?? 0];
      return armInPeriod(design, slot, period) === 'control' ? 1 : 0;
    }),
    periods: periods.length,
    values,
  };
}

/** True if a row is in the control group in a column. */
export function isControlCell({ slots, control, periodOf, periods }: Cells, row: number, column: number): boolean {
  return control[(slots[row] ?? 0) * periods + (periodOf[column] ?? 0)] === 1;
}

/** The sum of an arm's known cells, and their number. */
export interface ArmTotals {
  unitDays: number;
  sum: number;
}

/** Sums the known cells of each arm. */
export function armTotals(cells: Cells): { control: ArmTotals; treated: ArmTotals } {
  const totals = { control: { unitDays: 0, sum: 0 }, treated: { unitDays: 0, sum: 0 } };
  const columns = cells.periodOf.length;
  for (const [index, value] of cells.values.entries()) {
    if (Number.isNaN(value)) continue;
    const arm = totals[isControlCell(cells, Math.floor(index / columns), index % columns) ? 'control' : 'treated'];
    arm.unitDays += 1;
    arm.sum += value;
  }
  return totals;
}

/**
 * The number of equal units with as much information (Kish): (Σ yᵤ)² / Σ yᵤ², with yᵤ the usage of a unit in its known cells. It is small
 * if a few large units dominate, and 0 without usage.
 */
export function effectiveUnits({ values, slots, periodOf }: Cells): number {
  const columns = periodOf.length;
  let [sum, squares] = [0, 0];
  for (let row = 0; row < slots.length; row += 1) {
    let used = 0;
    for (let column = 0; column < columns; column += 1) used += values[row * columns + column] || 0;
    sum += used;
    squares += used * used;
  }
  return squares === 0 ? 0 : (sum * sum) / squares;
}

/* Sums of measured hours or days by local day. Days are counted from 1970-01-01. */

const HOUR_SECONDS = 3600;

/** A unit's usage on a local day: CU-seconds (null if part of it is unknown), and the number of unknown hours. */
export interface LocalDay {
  cuSeconds: number | null;
  unknownHours: number;
}

/**
 * Sums buckets by local day within a range. Days without any bucket are missing. An hour across local midnight is split; a longer bucket
 * across midnight leaves both days unknown.
 */
export function localDays(
  buckets: readonly UsageBucket[],
  { zone, fromDay, untilDay }: { zone: string; fromDay: number; untilDay: number },
): Map<number, LocalDay> {
  const partsByDay = new Map<number, { cuSeconds: number; seconds: number }>();
  for (const { startMs, seconds, cuSeconds } of buckets) {
    const endMs = startMs + seconds * 1000;
    const [first, last] = [localDayAt(zone, startMs), localDayAt(zone, endMs - 1)];
    for (let day = Math.max(first, fromDay); day <= Math.min(last, untilDay - 1); day += 1) {
      const part = getOrAdd(partsByDay, day, () => ({ cuSeconds: 0, seconds: 0 }));
      if (cuSeconds === null || (first !== last && seconds > HOUR_SECONDS)) continue;
      const inside =
        Math.min(endMs, instantOfMinute(zone, day + 1, 0)) - Math.max(startMs, instantOfMinute(zone, day, 0));
      part.cuSeconds += (cuSeconds * inside) / (seconds * 1000);
      part.seconds += inside / 1000;
    }
  }
  return new Map([...partsByDay].map(([day, part]) => [day, toLocalDay(zone, day, part)]));
}

/** Merges two readings by day: the more complete reading of a day wins, and `later` if both are equally complete. */
export function moreComplete(
  before: ReadonlyMap<number, LocalDay>,
  later: ReadonlyMap<number, LocalDay>,
): Map<number, LocalDay> {
  const days = new Map(before);
  for (const [day, reading] of later) {
    if (reading.unknownHours <= (days.get(day)?.unknownHours ?? Number.POSITIVE_INFINITY)) days.set(day, reading);
  }
  return new Map([...days].sort(([a], [b]) => a - b));
}

function toLocalDay(zone: string, day: number, known: { cuSeconds: number; seconds: number }): LocalDay {
  const lengthSeconds = (instantOfMinute(zone, day + 1, 0) - instantOfMinute(zone, day, 0)) / 1000;
  const unknownSeconds = lengthSeconds - known.seconds;
  if (unknownSeconds < 1) return { cuSeconds: known.cuSeconds, unknownHours: 0 };
  return { cuSeconds: null, unknownHours: Math.max(1, Math.round(unknownSeconds / HOUR_SECONDS)) };
}
