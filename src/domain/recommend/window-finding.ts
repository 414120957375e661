import { MONTH_HOURS } from '../awake/causes.ts';
import { awakeShare } from '../awake/intervals.ts';
import { usageWhileAwake } from '../awake/usage-while-awake.ts';
import { NEVER_SUSPENDS } from '../compute/compute.ts';
import { MAX_AUTOSCALING_CU } from '../compute/compute-units.ts';
import { formatSuspendTimeout } from '../compute/settings-text.ts';
import type { RecommendFacts, Unpriced } from './finding.ts';
import { maySetTimeout } from './simple.ts';
import { mayChooseTimeout } from './timeout.ts';
import { type HolidaysOf, type UsePattern, type UseWindow, usePattern, usesByLog, usesByUsage } from './windows.ts';

/** Shorter timeouts let a compute sleep at night by themselves. */
const LONG_TIMEOUT_SECONDS = 1800;
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const WORKDAYS = 5;

/**
 * For a compute that never suspends, or only after long: it stays as it is in the hours of the week in which it is used, and sleeps
 * after five minutes in the others.
 */
export function windowFinding(facts: RecommendFacts, holidaysOf?: HolidaysOf): Unpriced | undefined {
  const { compute, history } = facts;
  const hours = (facts.hours ?? []).filter((bucket) => bucket.seconds === 3600);
  const { suspendTimeoutSeconds: seconds, regionId, minCu } = compute;
  const isNever = seconds === NEVER_SUSPENDS;
  if (!mayHaveWindows(facts)) return undefined;
  const [first, last] = [hours[0], hours.at(-1)];
  const span = isNever
    ? { fromMs: first?.startMs ?? 0, toMs: last ? last.startMs + 1000 * last.seconds : 0 }
    : { fromMs: history.fromMs, toMs: history.toMs };
  const uses = isNever ? usesByUsage(hours, minCu) : usesByLog(history, seconds);
  const found = usePattern({ ...span, uses, regionId, holidaysOf });
  if (!found) return undefined;
  const now = formatSuspendTimeout(seconds);
  const except = found.holidays === undefined ? {} : { except: ['holidays'] };
  const windows = found.windows.map((window) => ({
    at: windowText(window),
    ...(window.days.every((day) => day <= WORKDAYS) && except),
    suspend_after: now,
  }));
  const { flatShare = 1 } = usageWhileAwake(facts);
  const outside = Math.min(found.outsideShare, isNever ? flatShare : 1) * (awakeShare(history) ?? 1);
  return {
    ...{ finding: 'window', figure: 'estimate' },
    now: { suspend_timeout_seconds: seconds },
    proposed: { suspend_timeout_seconds: 300 },
    savesCuHours: { low: 0, high: outside * minCu * MONTH_HOURS },
    evidence: [`used ${found.windows.map(windowText).join(', ')} ${found.zone}${holidayText(found)}`],
    risk: 'outside these hours the first visit after a pause waits for a start',
    policy: {
      ...{ name: 'hours-of-use', zone: found.zone, ...(found.holidays !== undefined && { holidays: found.holidays }) },
      body: { kind: 'schedule', windows, otherwise: { suspend_after: '5m' } },
    },
  };
}

/** It sleeps late or never, and its plan allows to set both timeouts: on Launch, and maybe on one not known, these are five minutes and never. */
function mayHaveWindows(facts: RecommendFacts): boolean {
  const { suspendTimeoutSeconds: seconds, maxCu } = facts.compute;
  if (maxCu > MAX_AUTOSCALING_CU || !maySetTimeout(facts)) return false;
  return seconds === NEVER_SUSPENDS || (seconds >= LONG_TIMEOUT_SECONDS && mayChooseTimeout(facts));
}

function holidayText({ holidays }: UsePattern): string {
  return holidays === undefined ? '' : `, not on public holidays (${holidays})`;
}

/** As policies write it: `Mon-Fri 08:00-18:00`. */
function windowText({ days, startMinute, endMinute }: UseWindow): string {
  return `${daysText(days)} ${clock(startMinute)}-${clock(endMinute > 1440 ? endMinute - 1440 : endMinute)}`;
}

function daysText(days: readonly number[]): string {
  const names = days.map((day) => DAYS[day - 1] ?? '');
  const isRange = days.length > 2 && days.every((day, index) => day === (days[0] ?? 0) + index);
  return isRange ? `${names[0]}-${names.at(-1)}` : names.join(',');
}

function clock(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((value) => String(value).padStart(2, '0')).join(':');
}
