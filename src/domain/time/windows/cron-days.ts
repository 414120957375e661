import type { CronFieldCollection } from 'cron-parser';
import { weekdayOf } from './local-time.ts';

/** On which dates an expression fires: it depends on nothing but the month, the date and the day of the week. */
export type FiresOn = (localDay: number) => boolean;

/** The rules of cron-parser for dates, without asking it for each one, which takes some 20 µs. */
export function cronDays({ month, dayOfMonth, dayOfWeek }: CronFieldCollection): FiresOn {
  const months = new Set<number>(month.values);
  const dates = new Set<unknown>(dayOfMonth.values);
  const weekdays = new Set<unknown>(dayOfWeek.values);
  const lastWeekdays = new Set(dayOfWeek.values.map((value) => Number.parseInt(String(value), 10) % 7));
  const { nthDay } = dayOfWeek;
  const matchesDate = (date: number, isLast: boolean) => dates.has(date) || (dayOfMonth.hasLastChar && isLast);
  const matchesWeekday = (weekday: number, date: number, isLastWeek: boolean) =>
    (weekdays.has(weekday) && (nthDay <= 0 || Math.ceil(date / 7) === nthDay)) ||
    (dayOfWeek.hasLastChar && isLastWeek && lastWeekdays.has(weekday));
  return (localDay) => {
    const { month: ofYear, date } = dateOf(localDay);
    if (!months.has(ofYear)) return false;
    const byDate = () => matchesDate(date, dateOf(localDay + 1).date === 1);
    const byWeekday = () => matchesWeekday(weekdayOf(localDay) % 7, date, dateOf(localDay + 7).month !== ofYear);
    if (dayOfMonth.isWildcard) return dayOfWeek.isWildcard || byWeekday();
    return byDate() || (!dayOfWeek.isWildcard && byWeekday());
  };
}

/** Month (1..12) and day of a date, given as days since 1970-01-01. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
function dateOf(localDay: number): { month: number; date: number } {
  const { floor } = Math;
  const dayOfEra = (((localDay + 719_468) % 146_097) + 146_097) % 146_097;
  const leapDays = floor(dayOfEra / 1460) - floor(dayOfEra / 36_524) + floor(dayOfEra / 146_096);
  const yearOfEra = floor((dayOfEra - leapDays) / 365);
  // Years begin in March, so that a leap day is the last.
  const dayOfYear = dayOfEra - (365 * yearOfEra + floor(yearOfEra / 4) - floor(yearOfEra / 100));
  const month = floor((5 * dayOfYear + 2) / 153);
  return { month: month < 10 ? month + 3 : month - 9, date: dayOfYear - floor((153 * month + 2) / 5) + 1 };
}
