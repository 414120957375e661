/**
 * Validates choices: they are made on the first weeks of a log and tested on later ones, to avoid overfitting. Also has the 80 % interval of
 * what a choice saves in a coming month.
 */
import { type Estimate, inOrder, type Range } from '../estimate.ts';
import { sum } from '../sum.ts';

/** The weight of a week relative to the week after it. */
const FADING = 0.8;
const WEEK_DAYS = 7;
const MAX_VALIDATION_PERIODS = 4;
/** A change must be better in this share of the validation periods. */
const BETTER_SHARE = 0.75;

/** A span of whole days since the beginning of a log: [from, to). */
export interface DaySpan {
  from: number;
  to: number;
}

/** A change that could be made. */
export interface Option {
  /** Its gain in these days, in milliseconds awake; later days count more, see {@link weightOf}. */
  gainIn(days: DaySpan): number;
}

/** The weight of a day in a log of `days` days: the last counts 1, a week earlier 0.8. */
export function weightOf(day: number, days: number): number {
  return FADING ** ((days - 1 - day) / WEEK_DAYS);
}

/** Four periods: the last weeks of a log, or the last fifths of one shorter than five weeks. The days before are left for choosing. */
export function validationPeriods(days: number): DaySpan[] {
  const length = Math.min(WEEK_DAYS, days / (MAX_VALIDATION_PERIODS + 1));
  const count = Math.min(MAX_VALIDATION_PERIODS, Math.floor(days / length + 1e-9) - 1);
  return Array.from({ length: count }, (_, index) => {
    const end = days - (count - 1 - index) * length;
    return { from: Math.round(end - length), to: Math.round(end) };
  });
}

/**
 * The option with the largest gain over the whole log among those that beat `other` in three of four validation periods. Undefined unless the
 * options that would have been chosen before each period beat it, too. `optionsBefore` returns the options that are found from this many days.
 */
export function bestInLaterWeeks<T extends Option>(
  days: number,
  optionsBefore: (day: number) => readonly T[],
  other: { gainIn(period: DaySpan): number; minGain: number } = { gainIn: () => 0, minGain: 0 },
): T | undefined {
  const periods = validationPeriods(days);
  const advantageIn = (period: DaySpan, option?: T) => (option?.gainIn(period) ?? 0) - other.gainIn(period);
  const chosen: number[] = [];
  for (const period of periods) {
    chosen.push(advantageIn(period, byGain(optionsBefore(period.from), period.from)[0]));
    // Options take long to find, and most choices fail early.
    if (!mayBeBetter(chosen, periods.length)) return undefined;
  }
  if (sum(chosen) <= 0 || sum(chosen) < other.minGain) return undefined;
  return byGain(optionsBefore(days), days).find((option) =>
    isBetter(periods.map((period) => advantageIn(period, option))),
  );
}

/** The options that gain anything in the first `day` days, the best first. */
export function byGain<T extends Option>(options: readonly T[], day: number): T[] {
  const gains = options.map((option) => ({ option, gain: option.gainIn({ from: 0, to: day }) }));
  const gained = gains.filter(({ gain }) => gain > 0).sort((a, b) => b.gain - a.gain);
  return gained.map(({ option }) => option);
}

/** True if there is a gain in total, and in three of four periods. */
function isBetter(gains: readonly number[]): boolean {
  return sum(gains) > 0 && mayBeBetter(gains, gains.length);
}

/** False if there are already too many periods without a gain. */
function mayBeBetter(gains: readonly number[], periods: number): boolean {
  return gains.filter((gain) => gain <= 0).length <= (1 - BETTER_SHARE) * periods;
}

/** The sums by week, the last first; days at the beginning that fill no week are left out. */
function byWeek(byDay: readonly number[]): number[] {
  const weeks = Math.max(1, Math.floor(byDay.length / WEEK_DAYS));
  return Array.from({ length: weeks }, (_, index) => {
    const to = byDay.length - index * WEEK_DAYS;
    return sum(byDay.slice(Math.max(0, to - WEEK_DAYS), to));
  });
}

/** The expected value of a coming day: the mean, in which recent weeks count more. */
function expectedDay(byDay: readonly number[]): number {
  const weights = byDay.map((_, day) => weightOf(day, byDay.length));
  return sum(byDay.map((value, day) => value * (weights[day] ?? 0))) / Math.max(1e-9, sum(weights));
}

/**
 * The 80 % interval of a coming month's mean, as factors of the expected mean, from the coefficient of variation of the weeks. It was fitted to
 * generated databases with the shape of real ones. The low end is 0 for irregular use, which may also stop. The coefficient is limited to
 * √(weeks − 1), its maximum for values that are not negative. Gains and losses with a mean near 0 would exceed it.
 */
export function monthFactors(byDay: readonly number[]): Range {
  const weeks = byWeek(byDay);
  const mean = sum(weeks) / weeks.length;
  if (mean <= 0) return { low: 0, high: 1 };
  const deviation = Math.sqrt(sum(weeks.map((week) => (week - mean) ** 2)) / weeks.length);
  const variation = weeks.length < 2 ? 0.5 : Math.min(deviation / mean, Math.sqrt(weeks.length - 1));
  const factor = Math.exp(0.25 + 0.75 * variation);
  return { low: variation < 0.8 ? 1 / factor : 0, high: factor * Math.exp(0.6 * Math.max(0, variation - 0.4)) };
}

/** Returns a function for the weighted sum of daily gains in a span of days. */
export function gainsOf(gainByDay: readonly number[]): Option['gainIn'] {
  const weighted = gainByDay.map((gain, day) => gain * weightOf(day, gainByDay.length));
  return ({ from, to }) => sum(weighted.slice(from, to));
}

/** The estimate for a coming month, scaled to the number of known days. */
export function monthOf(byDay: readonly number[]): Estimate {
  const { low, high } = monthFactors(byDay);
  const mid = expectedDay(byDay) * byDay.length;
  return inOrder({ low: mid * low, mid, high: mid * high });
}
