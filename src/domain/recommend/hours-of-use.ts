/** Proposes a longer timeout in the hours of the week in which a compute is used, if that beats the best constant timeout. */

import { formatSuspendTimeout } from '../compute/compute-units.ts';
import { getOrAdd } from '../grouping.ts';
import { sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { DAY_MINUTES, DAY_MS } from '../time/units.ts';
import { instantOfMinute, localDayAt, weekdayOf } from '../time/windows/local-time.ts';
import type { PolicyDraft } from './finding.ts';
import { bestInLaterWeeks, type DaySpan, gainsOf, type Option, validationPeriods } from './later-weeks.ts';
import { replay, type TimeoutOutcome, type Visits } from './visits.ts';
import { type HolidaysOf, type UsePattern, type UseWindow, usePattern } from './windows.ts';

/** The least known days for a proposal: windows are chosen by some weeks and validated on others. */
const MIN_DAYS = 28;
/** A pattern needs at least one whole week. */
const MIN_PATTERN_DAYS = 7;
/** Candidate timeouts inside windows, in seconds; -1 never suspends. */
const INSIDE_SECONDS = [900, 1800, 3600, -1];
/** The share by which windows must be cheaper than the best constant timeout. */
const MIN_ADVANTAGE = 0.05;
export const DAY_NAMES = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const LAST_WORKDAY = 5;

interface WindowOption extends Option {
  pattern: UsePattern;
  /** The timeout inside the windows. */
  seconds: number;
  outcome: TimeoutOutcome;
}

export interface WindowProposal {
  /** The timeout inside the windows. */
  suspendTimeoutSeconds: number;
  /** Milliseconds awake by day. */
  awakeMsByDay: readonly number[];
  starts: number;
  text: string;
  policy: PolicyDraft;
}

/**
 * Replays windows with a longer timeout. Undefined unless they are 5 % cheaper than the best constant timeout, and better in three of the last
 * four weeks. For each of these weeks, both are chosen from the data before it.
 */
export function proposeWindows(options: {
  visits: Visits;
  now: TimeoutOutcome;
  /** The best constant timeout by the data of the first `day` days; undefined: the present one. */
  constantBefore: (day: number) => Option | undefined;
  startWorthMs: number;
  regionId: string;
  holidaysOf?: HolidaysOf | undefined;
}): WindowProposal | undefined {
  const { visits, now, constantBefore, startWorthMs } = options;
  const days = now.days.length;
  if (visits.knownMs < MIN_DAYS * DAY_MS) return undefined;
  const cached = new Map<number, WindowOption[]>();
  const optionsBefore = (day: number) =>
    getOrAdd(cached, day, () => (day < MIN_PATTERN_DAYS ? [] : windowOptions(options, day)));
  const costIn = gainsOf(now.days.map(({ awakeMs, starts }) => awakeMs + startWorthMs * starts));
  const constantIn = (period: DaySpan) => constantBefore(period.from)?.gainIn(period) ?? 0;
  const constantCost = sum(validationPeriods(days).map((period) => costIn(period) - constantIn(period)));
  const minGain = MIN_ADVANTAGE * constantCost;
  const best = bestInLaterWeeks(days, optionsBefore, { gainIn: constantIn, minGain });
  if (!best) return undefined;
  return {
    suspendTimeoutSeconds: best.seconds,
    starts: best.outcome.starts,
    awakeMsByDay: best.outcome.days.map(({ awakeMs }) => awakeMs),
    text: patternText(best.pattern),
    policy: policyOf(best, visits.timeoutMs / 1000),
  };
}

/** The windows that fit the use of the first `day` days, with each candidate timeout inside. */
function windowOptions(
  { visits, now, startWorthMs, regionId, holidaysOf }: Parameters<typeof proposeWindows>[0],
  day: number,
): WindowOption[] {
  const { intervals, timeoutMs, fromMs } = visits;
  const toMs = (Math.floor(fromMs / DAY_MS) + day) * DAY_MS;
  const usedIntervals = intervals.flatMap(({ startMs, endMs, end }) => {
    const lastMs = end === 'timeout' ? Math.max(startMs + 1, endMs - timeoutMs) : endMs;
    return startMs < toMs ? [{ fromMs: startMs, toMs: Math.min(toMs, lastMs) }] : [];
  });
  const pattern = usePattern({ usedIntervals, fromMs, toMs, regionId, holidaysOf });
  if (!pattern) return [];
  const windows = windowSpans(pattern, visits, holidaysOf);
  return INSIDE_SECONDS.filter((seconds) => seconds < 0 || 1000 * seconds > timeoutMs).map((seconds) => {
    const outcome = replay(visits, suspendingIn(windows, { timeoutMs, insideMs: 1000 * seconds }));
    const gains = now.days.map((before, index) => {
      const after = outcome.days[index] ?? before;
      return before.awakeMs - after.awakeMs + startWorthMs * (before.starts - after.starts);
    });
    return { pattern, seconds, gainIn: gainsOf(gains), outcome };
  });
}

/** The openings of the windows, in order. */
function windowSpans({ zone, windows, holidayCountry }: UsePattern, { fromMs, toMs }: Span, holidaysOf?: HolidaysOf) {
  const holidays = new Set(holidayCountry === undefined ? [] : holidaysOf?.(holidayCountry, { fromMs, toMs }));
  const spans: Span[] = [];
  for (let day = localDayAt(zone, fromMs) - 1; day <= localDayAt(zone, toMs); day += 1) {
    for (const { days, startMinute, endMinute } of windows) {
      if (!days.includes(weekdayOf(day)) || (isOnWorkdays(days) && holidays.has(day))) continue;
      spans.push({ fromMs: instantOfMinute(zone, day, startMinute), toMs: instantOfMinute(zone, day, endMinute) });
    }
  }
  return spans.sort((a, b) => a.fromMs - b.fromMs);
}

/** Returns a function that computes when the compute suspends after its last activity. It must be called with ascending instants. */
function suspendingIn(
  windows: readonly Span[],
  { timeoutMs, insideMs }: { timeoutMs: number; insideMs: number },
): (lastActiveMs: number) => number {
  let next = 0;
  return (lastMs) => {
    while ((windows[next]?.toMs ?? Number.POSITIVE_INFINITY) <= lastMs) next += 1;
    const window = windows[next];
    const sleepMs = lastMs + timeoutMs;
    if (!window || window.fromMs > sleepMs) return sleepMs;
    const insideUntilMs = insideMs < 0 ? Number.POSITIVE_INFINITY : lastMs + insideMs;
    return Math.min(insideUntilMs, Math.max(window.toMs, sleepMs));
  };
}

function policyOf({ pattern, seconds }: WindowOption, nowSeconds: number): PolicyDraft {
  const except = pattern.holidayCountry === undefined ? {} : { except: ['holidays'] };
  const windows = pattern.windows.map((window) => ({
    at: windowText(window),
    ...(isOnWorkdays(window.days) && except),
    suspend_after: formatSuspendTimeout(seconds),
  }));
  return {
    name: 'hours-of-use',
    zone: pattern.zone,
    ...(pattern.holidayCountry !== undefined && { holidays: pattern.holidayCountry }),
    body: { kind: 'schedule', windows, otherwise: { suspend_after: formatSuspendTimeout(nowSeconds) } },
  };
}

function isOnWorkdays(days: readonly number[]): boolean {
  return days.every((day) => day <= LAST_WORKDAY);
}

function patternText({ windows, zone, holidayCountry }: UsePattern): string {
  const holidays = holidayCountry === undefined ? '' : `, not on public holidays (${holidayCountry})`;
  return `used ${windows.map(windowText).join(', ')} ${zone}${holidays}`;
}

/** A window as policies write it: `Mon-Fri 08:00-18:00`. */
export function windowText({ days, startMinute, endMinute }: UseWindow): string {
  return `${daysText(days)} ${clockText(startMinute)}-${clockText(endMinute)}`;
}

function daysText(days: readonly number[]): string {
  const names = days.map((day) => DAY_NAMES[day - 1] ?? '');
  const isRange = days.length > 2 && days.every((day, index) => day === (days[0] ?? 0) + index);
  return isRange ? `${names[0]}-${names.at(-1)}` : names.join(',');
}

export function clockText(windowMinute: number): string {
  const minute = windowMinute > DAY_MINUTES ? windowMinute - DAY_MINUTES : windowMinute;
  return [Math.floor(minute / 60), minute % 60].map((value) => String(value).padStart(2, '0')).join(':');
}
