import { DateTime } from 'luxon';
import type { Span } from '../../domain/forecast/forecast.ts';

/** A day of a zone as it is drawn: the cells of it that lie in the time asked for. */
export interface Day {
  /** `Mon 2 Mar`. */
  label: string;
  cells: readonly Span[];
  /** Cells of a whole day. */
  wholeCells: number;
}

/** Divides time into the local days of a zone, and those into cells of so many hours of local time; 24 is a multiple of them. */
export function daysOf({ fromMs, toMs }: Span, { zone, hoursPerCell }: { zone: string; hoursPerCell: number }): Day[] {
  const days: Day[] = [];
  let day = DateTime.fromMillis(fromMs, { zone }).startOf('day');
  while (day.toMillis() < toMs) {
    const next = day.plus({ days: 1 }).startOf('day');
    const starts = Array.from({ length: 24 / hoursPerCell }, (_, index) => atHour(day, index * hoursPerCell));
    const cells = starts.map((startMs, index) => ({ fromMs: startMs, toMs: starts[index + 1] ?? next.toMillis() }));
    days.push({
      label: day.toFormat('ccc d LLL', { locale: 'en' }),
      // Where the clocks are put forward an hour, and with it a cell, may be missing.
      cells: cells.filter((cell) => cell.fromMs < cell.toMs && cell.toMs > fromMs && cell.fromMs < toMs),
      wholeCells: starts.length,
    });
    day = next;
  }
  return days;
}

/** Local midnight itself may be what a change of the clocks skips. */
function atHour(day: DateTime, hour: number): number {
  return hour === 0 ? day.toMillis() : day.set({ hour }).toMillis();
}
