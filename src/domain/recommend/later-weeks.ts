/** Choices are made on the first weeks of a log and judged on later ones, since what fits a log best need not fit the time after it. */
import type { Estimate } from '../estimate.ts';
import { sum } from '../sum.ts';

/** How much less a week counts than the week after it. */
const FADING = 0.8;
const WEEK_DAYS = 7;
/** At most so many periods judge, the last ones. */
const MAX_JUDGES = 4;
/** In this share of them a change must be better. */
const BETTER_SHARE = 0.75;

/** A span of whole days since the beginning of a log: [from, to). */
export interface DaySpan {
  from: number;
  to: number;
}

/** Something that could be changed. */
export interface Option {
  /** What it would have gained in these days, in milliseconds awake; later days count more, see {@link weightOf}. */
  gainIn(days: DaySpan): number;
}

/** The weight of a day among so many: the last counts 1, a week earlier 0.8. */
export function weightOf(day: number, days: number): number {
  return FADING ** ((days - 1 - day) / WEEK_DAYS);
}

/** The periods that judge: weeks, or a quarter of a log of less than four weeks. The first period only chooses. */
export function judgingPeriods(days: number): DaySpan[] {
  const length = Math.min(WEEK_DAYS, days / (MAX_JUDGES + 1));
  const many = Math.min(MAX_JUDGES, Math.floor(days / length + 1e-9) - 1);
  return Array.from({ length: many }, (_, index) => {
    const end = days - (many - 1 - index) * length;
    return { from: Math.round(end - length), to: Math.round(end) };
  });
}

/**
 * The option with the largest gain over the whole log, if it gained more than `other` in three of four later periods, and so did what would
 * have been chosen before each of them. `optionsBefore` returns the options that are known after so many days.
 */
export function bestInLaterWeeks<T extends Option>(
  days: number,
  optionsBefore: (day: number) => readonly T[],
  other: { gainIn(period: DaySpan): number; minGain: number } = { gainIn: () => 0, minGain: 0 },
): T | undefined {
  const periods = judgingPeriods(days);
  const againstOther = (gain: number, period: DaySpan) => gain - other.gainIn(period);
  const chosen = periods.map((period) => {
    return againstOther(byGain(optionsBefore(period.from), period.from)[0]?.gainIn(period) ?? 0, period);
  });
  if (!isBetter(chosen) || sum(chosen) < other.minGain) return undefined;
  return byGain(optionsBefore(days), days).find((option) => {
    return isBetter(periods.map((period) => againstOther(option.gainIn(period), period)));
  });
}

/** The options that gained something in the first days, the best first. */
export function byGain<T extends Option>(options: readonly T[], day: number): T[] {
  const gains = options.map((option) => ({ option, gain: option.gainIn({ from: 0, to: day }) }));
  const gained = gains.filter(({ gain }) => gain > 0).sort((a, b) => b.gain - a.gain);
  return gained.map(({ option }) => option);
}

/** True if there is a gain in total, and in three of four periods. */
function isBetter(gains: readonly number[]): boolean {
  return sum(gains) > 0 && gains.filter((gain) => gain > 0).length >= BETTER_SHARE * gains.length;
}

/** What was by week, from the last one back; days at the beginning that fill no week are left out. */
function byWeek(byDay: readonly number[]): number[] {
  const weeks = Math.max(1, Math.floor(byDay.length / WEEK_DAYS));
  return Array.from({ length: weeks }, (_, index) => {
    const to = byDay.length - index * WEEK_DAYS;
    return sum(byDay.slice(Math.max(0, to - WEEK_DAYS), to));
  });
}

/** The mean of a day in the time to come: recent weeks count more. */
export function expectedDay(byDay: readonly number[]): number {
  const weights = byDay.map((_, day) => weightOf(day, byDay.length));
  return sum(byDay.map((value, day) => value * (weights[day] ?? 0))) / Math.max(1e-9, sum(weights));
}

/**
 * The factors between which the mean of a coming month lies in 80 of 100 cases, by how much weeks differ from each other (coefficient of
 * variation). Fitted to generated databases with the shape of real ones. What comes and goes may stay away.
 */
export function monthFactors(byDay: readonly number[]): { low: number; high: number } {
  const weeks = byWeek(byDay);
  const mean = sum(weeks) / weeks.length;
  if (mean <= 0) return { low: 0, high: 1 };
  const variation =
    weeks.length < 2 ? 0.5 : Math.sqrt(sum(weeks.map((week) => (week - mean) ** 2)) / weeks.length) / mean;
  const factor = Math.exp(0.25 + 0.75 * variation);
  return { low: variation < 0.8 ? 1 / factor : 0, high: factor * Math.exp(0.6 * Math.max(0, variation - 0.4)) };
}

/** What was gained in some days; later ones count more. */
export function gainsOf(gainByDay: readonly number[]): Option['gainIn'] {
  const weighted = gainByDay.map((gain, day) => gain * weightOf(day, gainByDay.length));
  return ({ from, to }) => sum(weighted.slice(from, to));
}

/** What is to be expected of a coming month, scaled to the days that are known. */
export function monthOf(byDay: readonly number[]): Estimate {
  const { low, high } = monthFactors(byDay);
  const mid = expectedDay(byDay) * byDay.length;
  return { low: mid * low, mid, high: mid * high };
}
