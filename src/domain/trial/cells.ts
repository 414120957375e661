/** The measurements of a trial as a table: a row for each unit, a column for each local day that counts. */

import { instantOfMinute, localDayAt } from '../time/windows/local-time.ts';
import type { UsageBucket } from '../usage/usage.ts';
import { armInPeriod, periodOfDay, type TrialDesign } from './assignment.ts';

export interface Cells {
  oneOf: number;
  /** Place of each unit in the rotation, as it was really assigned. */
  slots: Uint8Array;
  /** Period of each column, counted from 0 over those periods alone that have a column. */
  periodOf: Uint16Array;
  /** `control[slot * periods + period]` is 1 where units of that place are in the control group. */
  control: Uint8Array;
  periods: number;
  /** By row, then column; NaN where it is not known. */
  values: Float64Array;
}

/** One unit with its usage by local day; a day that is missing or null is unknown. */
export interface UnitDays {
  slot: number;
  days: ReadonlyMap<number, number | null>;
}

/**
 * The cells of a trial. The first day of every period counts for no unit, since flips happen on it; nor does a day in `leftOut`. That
 * depends on the calendar alone, never on who was drawn: else the test would not be exact.
 */
export function cellsOf(
  design: TrialDesign,
  units: readonly UnitDays[],
  { fromDay, untilDay, leftOut }: { fromDay?: number; untilDay?: number; leftOut?: (localDay: number) => boolean } = {},
): Cells {
  const { oneOf, rotateDays } = design;
  const last = Math.min(untilDay ?? Number.POSITIVE_INFINITY, design.fromDay + design.periods * rotateDays);
  const columns: { day: number; period: number }[] = [];
  for (let day = Math.max(fromDay ?? design.fromDay, design.fromDay); day < last; day += 1) {
    const isFirst = (day - design.fromDay) % rotateDays === 0;
    const period = periodOfDay(design, day);
    if (period !== undefined && !isFirst && !leftOut?.(day)) columns.push({ day, period });
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

/** The usage in each arm, and the number of its cells. */
export interface ArmTotals {
  unitDays: number;
  sum: number;
}

/** Over the known cells. */
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
 * The number of equal units that would carry as much information (Kish): (Σ yᵤ)² / Σ yᵤ², with yᵤ the usage of a unit in its known cells.
 * A few large units dominate the rest. 0 where nothing was used.
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

/* Sums by local day, of hours or days that were measured. Days are counted from 1970-01-01. */

const HOUR_SECONDS = 3600;

/** A unit's usage on a local day: CU-seconds, null where a part is unknown, and the number of unknown hours. */
export interface LocalDay {
  cuSeconds: number | null;
  unknownHours: number;
}

/**
 * The local days from `fromDay` up to, not including, `untilDay`; a day without any bucket is not in the result. An hour that a local
 * midnight divides is split; a longer bucket that one divides says nothing about either day.
 */
export function localDays(
  buckets: readonly UsageBucket[],
  { zone, fromDay, untilDay }: { zone: string; fromDay: number; untilDay: number },
): Map<number, LocalDay> {
  const known = new Map<number, { cuSeconds: number; seconds: number }>();
  for (const { startMs, seconds, cuSeconds } of buckets) {
    const endMs = startMs + seconds * 1000;
    const [first, last] = [localDayAt(zone, startMs), localDayAt(zone, endMs - 1)];
    for (let day = Math.max(first, fromDay); day <= Math.min(last, untilDay - 1); day += 1) {
      const part = known.get(day) ?? { cuSeconds: 0, seconds: 0 };
      known.set(day, part);
      if (cuSeconds === null || (first !== last && seconds > HOUR_SECONDS)) continue;
      const inside =
        Math.min(endMs, instantOfMinute(zone, day + 1, 0)) - Math.max(startMs, instantOfMinute(zone, day, 0));
      part.cuSeconds += (cuSeconds * inside) / (seconds * 1000);
      part.seconds += inside / 1000;
    }
  }
  return new Map([...known].map(([day, part]) => [day, toLocalDay(zone, day, part)]));
}

/** The more complete of two readings of the same days; where both are known, `later`. */
export function moreKnown(
  before: ReadonlyMap<number, LocalDay>,
  later: ReadonlyMap<number, LocalDay>,
): Map<number, LocalDay> {
  const days = new Map(before);
  for (const [day, one] of later) {
    if (one.unknownHours <= (days.get(day)?.unknownHours ?? Number.POSITIVE_INFINITY)) days.set(day, one);
  }
  return new Map([...days].sort(([a], [b]) => a - b));
}

function toLocalDay(
  zone: string,
  day: number,
  { cuSeconds, seconds }: { cuSeconds: number; seconds: number },
): LocalDay {
  const length = (instantOfMinute(zone, day + 1, 0) - instantOfMinute(zone, day, 0)) / 1000;
  const unknownHours = Math.round((length - seconds) / HOUR_SECONDS);
  const isKnown = length - seconds < 1;
  return { cuSeconds: isKnown ? cuSeconds : null, unknownHours: isKnown ? 0 : Math.max(1, unknownHours) };
}
