/** A longer timeout in the hours of the week in which a compute is used, where that was better than the best plain timeout. */
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import { instantOfMinute, localDayAt, weekdayOf } from '../time/windows/local-time.ts';
import type { PolicyDraft } from './finding.ts';
import { bestInLaterWeeks, type DaySpan, gainsOf, judgingPeriods, type Option } from './later-weeks.ts';
import { replay, type TimeoutOutcome, type Visits } from './visits.ts';
import { type HolidaysOf, type UsePattern, type UseWindow, usePattern } from './windows.ts';

/** Windows need weeks that choose, and weeks that judge. */
const MIN_DAYS = 28;
/** Before the first judging week the pattern needs a whole one. */
const MIN_PATTERN_DAYS = 7;
/** Timeouts inside, in seconds; -1 never suspends. */
const INSIDE_SECONDS = [900, 1800, 3600, -1];
/** Windows must cost at least so much less than the best plain timeout. */
const MIN_ADVANTAGE = 0.05;
const DAY_NAMES = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const WORKDAYS = 5;

interface WindowOption extends Option {
  pattern: UsePattern;
  /** The timeout inside. */
  seconds: number;
  outcome: TimeoutOutcome;
}

export interface WindowProposal {
  /** The timeout inside. */
  suspendTimeoutSeconds: number;
  /** Milliseconds awake by day. */
  awakeMsByDay: readonly number[];
  starts: number;
  text: string;
  policy: PolicyDraft;
}

/**
 * Proposes windows with a longer timeout, replayed; undefined if they were not 5 % cheaper than the best plain timeout, and better in three
 * of the last four weeks, with what was known before each.
 */
export function proposeWindows(options: {
  visits: Visits;
  now: TimeoutOutcome;
  /** The best plain timeout known after so many days; undefined: the present one. */
  plainBefore: (day: number) => Option | undefined;
  worthMs: number;
  regionId: string;
  holidaysOf?: HolidaysOf | undefined;
}): WindowProposal | undefined {
  const { visits, now, plainBefore, worthMs } = options;
  const days = now.days.length;
  if (visits.knownMs < MIN_DAYS * DAY_MS) return undefined;
  const known = new Map<number, WindowOption[]>();
  const optionsBefore = (day: number) => {
    const found = known.get(day) ?? (day < MIN_PATTERN_DAYS ? [] : windowOptions(options, day));
    known.set(day, found);
    return found;
  };
  const costIn = gainsOf(now.days.map(({ awakeMs, starts }) => awakeMs + worthMs * starts));
  const plainIn = (period: DaySpan) => plainBefore(period.from)?.gainIn(period) ?? 0;
  const cost = sum(judgingPeriods(days).map((period) => costIn(period) - plainIn(period)));
  const best = bestInLaterWeeks(days, optionsBefore, { gainIn: plainIn, minGain: MIN_ADVANTAGE * cost });
  if (!best) return undefined;
  const { seconds, outcome, pattern } = best;
  return {
    ...{ suspendTimeoutSeconds: seconds, starts: outcome.starts, text: patternText(pattern) },
    awakeMsByDay: outcome.days.map(({ awakeMs }) => awakeMs),
    policy: policyOf(best, visits.timeoutMs / 1000),
  };
}

/** Windows by the use of the first days, with each timeout inside. */
function windowOptions(
  { visits, now, worthMs, regionId, holidaysOf }: Parameters<typeof proposeWindows>[0],
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
  const windows = instantsOf(pattern, visits, holidaysOf);
  return INSIDE_SECONDS.filter((seconds) => seconds < 0 || 1000 * seconds > timeoutMs).map((seconds) => {
    const outcome = replay(visits, suspendingIn(windows, { timeoutMs, insideMs: 1000 * seconds }));
    const gains = now.days.map((had, index) => {
      const would = outcome.days[index] ?? had;
      return had.awakeMs - would.awakeMs + worthMs * (had.starts - would.starts);
    });
    return { pattern, seconds, gainIn: gainsOf(gains), outcome };
  });
}

/** The windows as instants, in order. */
function instantsOf({ zone, windows, holidayCountry }: UsePattern, { fromMs, toMs }: Visits, holidaysOf?: HolidaysOf) {
  const holidays = new Set(holidayCountry === undefined ? [] : holidaysOf?.(holidayCountry));
  const found: { fromMs: number; toMs: number }[] = [];
  for (let day = localDayAt(zone, fromMs) - 1; day <= localDayAt(zone, toMs); day += 1) {
    for (const { days, startMinute, endMinute } of windows) {
      if (!days.includes(weekdayOf(day)) || (isOnWorkdays(days) && holidays.has(day))) continue;
      const [startMs, endMs] = [startMinute, endMinute].map((minute) => instantOfMinute(zone, day, minute));
      found.push({ fromMs: startMs ?? 0, toMs: endMs ?? 0 });
    }
  }
  return found.sort((a, b) => a.fromMs - b.fromMs);
}

/** When a compute suspends after its last activity; activities come in order of time. */
function suspendingIn(
  windows: readonly { fromMs: number; toMs: number }[],
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
    ...{ name: 'hours-of-use', zone: pattern.zone },
    ...(pattern.holidayCountry !== undefined && { holidays: pattern.holidayCountry }),
    body: { kind: 'schedule', windows, otherwise: { suspend_after: formatSuspendTimeout(nowSeconds) } },
  };
}

function isOnWorkdays(days: readonly number[]): boolean {
  return days.every((day) => day <= WORKDAYS);
}

function patternText({ windows, zone, holidayCountry }: UsePattern): string {
  const holidays = holidayCountry === undefined ? '' : `, not on public holidays (${holidayCountry})`;
  return `used ${windows.map(windowText).join(', ')} ${zone}${holidays}`;
}

/** A window as policies write it: `Mon-Fri 08:00-18:00`. */
function windowText({ days, startMinute, endMinute }: UseWindow): string {
  return `${daysText(days)} ${clock(startMinute)}-${clock(endMinute > 1440 ? endMinute - 1440 : endMinute)}`;
}

function daysText(days: readonly number[]): string {
  const names = days.map((day) => DAY_NAMES[day - 1] ?? '');
  const isRange = days.length > 2 && days.every((day, index) => day === (days[0] ?? 0) + index);
  return isRange ? `${names[0]}-${names.at(-1)}` : names.join(',');
}

function clock(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((value) => String(value).padStart(2, '0')).join(':');
}
