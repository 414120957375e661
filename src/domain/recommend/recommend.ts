import { findCause, MONTH_HOURS, type Range } from '../awake/causes.ts';
import { awakeShare } from '../awake/intervals.ts';
import { averageUseCu, usageWhileAwake } from '../awake/usage-while-awake.ts';
import { NEVER_SUSPENDS } from '../compute/compute.ts';
import { formatSuspendTimeout, MAX_AUTOSCALING_CU } from '../compute/compute-units.ts';
import { HOUR_MS } from '../time/units.ts';
import type { Finding, PolicyDraft, RecommendFacts, Unpriced } from './finding.ts';
import {
  leftOverPreview,
  maySetTimeout,
  neverSuspends,
  sleepAfter,
  smallerMaximum,
  smallerMinimum,
  unused,
} from './simple.ts';
import { DEFAULT_COLD_START_WORTH_MS, mayChooseTimeout, proposeTimeout } from './timeout.ts';
import { type HolidaysOf, type UsePattern, type UseWindow, usePattern, usesByLog, usesByUsage } from './windows.ts';

type Check = (facts: RecommendFacts, options: RecommendOptions) => Unpriced | undefined;

export interface RecommendOptions {
  /** The worth of a cold start, in milliseconds awake, for computes without their own. */
  coldStartWorthMs?: number;
  /** Public holidays of a country; without it no calendar is proposed. */
  holidaysOf?: HolidaysOf;
}

/** Everything that would be better, the most that is saved first. A field is proposed at most once for a compute. */
export function recommend(fleet: Iterable<RecommendFacts>, options: RecommendOptions = {}): Finding[] {
  const findings: Finding[] = [];
  for (const facts of fleet) findings.push(...findingsOf(facts, options));
  return findings.toSorted((a, b) => middleOf(b) - middleOf(a));
}

/** The findings for one compute: the first of those about its awake time, so that no second is saved twice; and its size. */
export function findingsOf(facts: RecommendFacts, options: RecommendOptions = {}): Finding[] {
  const aboutTime = firstOf(ABOUT_TIME, facts, options);
  const aboutSize = aboutTime && IS_TO_GO.includes(aboutTime.finding) ? undefined : firstOf(ABOUT_SIZE, facts, options);
  const found = [aboutTime, aboutSize].filter((one) => one !== undefined);
  return found.map((one) => priced(withinMeasured(withoutContradiction(one, facts), facts), facts));
}

function firstOf(checks: readonly Check[], facts: RecommendFacts, options: RecommendOptions): Unpriced | undefined {
  return checks.reduce<Unpriced | undefined>((found, check) => found ?? check(facts, options), undefined);
}

/** The saving in dollars, or in CU-hours without a price. */
function middleOf({ savesUsd, savesCuHours }: Finding): number {
  const { low, high } = savesUsd ?? savesCuHours;
  return (low + high) / 2;
}

const betterTimeout: Check = (facts, options) => {
  const { compute, history, plan } = facts;
  const coldStartWorthMs = options.coldStartWorthMs ?? facts.coldStartWorthMs ?? DEFAULT_COLD_START_WORTH_MS;
  const { suspendTimeoutSeconds } = compute;
  const found = proposeTimeout({ history, suspendTimeoutSeconds, plan, coldStartWorthMs });
  if (!found) return undefined;
  const { suspendTimeoutSeconds: seconds, knownMs, figure } = found;
  const perMonth = (value: number) => (value / knownMs) * MONTH_HOURS * HOUR_MS;
  const share = (ms: number) => ms / knownMs;
  // While it waits for its timeout it does nothing, so it has its minimum size.
  const cuHours = (ms: number) => (perMonth(ms) / HOUR_MS) * compute.minCu;
  const text = formatSuspendTimeout(seconds);
  return {
    ...{ finding: 'timeout', figure },
    now: { suspend_timeout_seconds: suspendTimeoutSeconds },
    proposed: { suspend_timeout_seconds: seconds },
    savesCuHours: mapped(found.savedMs, cuHours),
    startsMonth: { before: perMonth(found.starts.before), after: mapped(found.starts.after, perMonth) },
    awakeShare: { before: share(found.awakeMs.before), after: mapped(found.awakeMs.after, share) },
    evidence: [`${found.gaps} pauses in ${Math.round(knownMs / 24 / HOUR_MS)} days`, ...causeOf(facts)],
    risk:
      figure === 'replayed'
        ? 'it is awake longer, and starts less often'
        : 'it may start more often: clients wait for a start after shorter pauses',
    policy: figure === 'replayed' ? stayAwake(text) : sleepAfter(text),
  };
};

/** Why it is awake so often, where that is known. */
function causeOf(facts: RecommendFacts): string[] {
  const found = findCause(facts);
  return found === undefined || found.cause === 'unknown' ? [] : [`${found.cause}: ${found.evidence[0]}`];
}

function stayAwake(text: string): PolicyDraft {
  return { name: `awake-for-${text}`, body: { kind: 'limits', suspend_after: { min: text } } };
}

/** Causes that no policy removes. */
const cause: Check = (facts) => {
  const found = findCause(facts);
  if (!found || ['never_suspends', 'busy'].includes(found.cause)) return undefined;
  return {
    ...{ finding: 'awake', figure: found.figure, now: {}, proposed: {} },
    savesCuHours: found.cause === 'unknown' ? { ...found.cuHoursMonth, low: 0 } : found.cuHoursMonth,
    evidence: [found.cause, ...found.evidence],
    risk: found.advice,
  };
};

const hoursOfUse: Check = (facts, { holidaysOf }) => windowFinding(facts, holidaysOf);

const ABOUT_TIME: readonly Check[] = [
  ...[leftOverPreview, unused, hoursOfUse],
  ...[neverSuspends, betterTimeout, cause],
];
const ABOUT_SIZE: readonly Check[] = [smallerMinimum, smallerMaximum];
/** For computes that should be deleted the size does not matter. */
const IS_TO_GO = ['preview', 'unused'];

/** A setting that a current policy or a hold decides is changed there, not by another policy. */
function withoutContradiction(found: Unpriced, { decided = {} }: RecommendFacts): Unpriced {
  const by =
    ('suspend_timeout_seconds' in found.proposed && decided.suspend_timeout) ||
    (('min_cu' in found.proposed || 'max_cu' in found.proposed) && decided.size);
  if (!by) return found;
  const { policy: _ofAnother, ...rest } = found;
  return { ...rest, evidence: [...found.evidence, `${by} decides this: change it there`] };
}

/** Nothing saves more than the compute was measured to use. */
function withinMeasured(found: Unpriced, facts: RecommendFacts): Unpriced {
  const most = (averageUseCu(facts) ?? Number.POSITIVE_INFINITY) * MONTH_HOURS;
  return { ...found, savesCuHours: mapped(found.savesCuHours, (hours) => Math.min(hours, most)) };
}

function priced(found: Unpriced, { compute, owner, price }: RecommendFacts): Finding {
  if (price === undefined) return { ...found, compute, owner };
  const { low = 0, high = 0 } = found.savesOtherUsd ?? {};
  const savesUsd = { low: found.savesCuHours.low * price + low, high: found.savesCuHours.high * price + high };
  return { ...found, compute, owner, savesUsd };
}

function mapped({ low, high }: Range, change: (value: number) => number): Range {
  return { low: change(low), high: change(high) };
}

/** Shorter timeouts let a compute sleep at night by themselves. */
const LONG_TIMEOUT_SECONDS = 1800;
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const WORKDAYS = 5;

/**
 * For a compute that never suspends, or only after long: it stays as it is in the used hours of the week, and sleeps after five minutes in
 * the others.
 */
function windowFinding(facts: RecommendFacts, holidaysOf?: HolidaysOf): Unpriced | undefined {
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
