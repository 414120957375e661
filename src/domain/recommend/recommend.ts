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
import { type HolidaysOf, type UsePattern, type UseWindow, usedByLog, usedByUsage, usePattern } from './windows.ts';

type Check = (facts: RecommendFacts, options: RecommendOptions) => Unpriced | undefined;

export interface RecommendOptions {
  /** The cost of a cold start, expressed in milliseconds awake, for computes without their own. */
  coldStartWorthMs?: number;
  /** Looks up public holidays; if absent, no calendar is proposed. */
  holidaysOf?: HolidaysOf;
}

/** All recommendations for a fleet, the largest saving first. Each field of a compute is proposed at most once. */
export function recommend(fleet: Iterable<RecommendFacts>, options: RecommendOptions = {}): Finding[] {
  const findings: Finding[] = [];
  for (const facts of fleet) findings.push(...findingsOf(facts, options));
  return findings.toSorted((a, b) => meanSaving(b) - meanSaving(a));
}

/** The findings for one compute: at most one about its awake time, so that no time is saved twice, and one about its size. */
export function findingsOf(facts: RecommendFacts, options: RecommendOptions = {}): Finding[] {
  const timeFinding = firstOf(TIME_CHECKS, facts, options);
  const sizeFinding =
    timeFinding && DELETION_KINDS.includes(timeFinding.finding) ? undefined : firstOf(SIZE_CHECKS, facts, options);
  const found = [timeFinding, sizeFinding].filter((one) => one !== undefined);
  return found.map((one) => withPrice(withinMeasured(withoutContradiction(one, facts), facts), facts));
}

function firstOf(checks: readonly Check[], facts: RecommendFacts, options: RecommendOptions): Unpriced | undefined {
  return checks.reduce<Unpriced | undefined>((found, check) => found ?? check(facts, options), undefined);
}

/** The middle of the saving in dollars, or in CU-hours if the price is unknown. */
function meanSaving({ savesUsd, savesCuHours }: Finding): number {
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
  // While waiting for its timeout the compute is idle, at its minimum size.
  const cuHours = (ms: number) => (perMonth(ms) / HOUR_MS) * compute.minCu;
  const text = formatSuspendTimeout(seconds);
  return {
    ...{ finding: 'timeout', figure },
    now: { suspend_timeout_seconds: suspendTimeoutSeconds },
    proposed: { suspend_timeout_seconds: seconds },
    savesCuHours: mapRange(found.savedMs, cuHours),
    startsMonth: { before: perMonth(found.starts.before), after: mapRange(found.starts.after, perMonth) },
    awakeShare: { before: share(found.awakeMs.before), after: mapRange(found.awakeMs.after, share) },
    evidence: [`${found.gaps} pauses in ${Math.round(knownMs / 24 / HOUR_MS)} days`, ...causeOf(facts)],
    risk:
      figure === 'replayed'
        ? 'it is awake longer, and starts less often'
        : 'it may start more often: clients wait for a start after shorter pauses',
    policy: figure === 'replayed' ? stayAwake(text) : sleepAfter(text),
  };
};

/** The cause of the awake time as evidence; empty if unknown. */
function causeOf(facts: RecommendFacts): string[] {
  const found = findCause(facts);
  return found === undefined || found.cause === 'unknown' ? [] : [`${found.cause}: ${found.evidence[0]}`];
}

function stayAwake(text: string): PolicyDraft {
  return { name: `awake-for-${text}`, body: { kind: 'limits', suspend_after: { min: text } } };
}

/** Reports causes of awake time that no policy removes. */
const otherCause: Check = (facts) => {
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

const TIME_CHECKS: readonly Check[] = [
  ...[leftOverPreview, unused, hoursOfUse],
  ...[neverSuspends, betterTimeout, otherCause],
];
const SIZE_CHECKS: readonly Check[] = [smallerMinimum, smallerMaximum];
/** Findings that suggest deletion; the size of such computes does not matter. */
const DELETION_KINDS = ['preview', 'unused'];

/** Drops the policy draft if a policy or hold already decides the field: it must be changed there. */
function withoutContradiction(found: Unpriced, { decided = {} }: RecommendFacts): Unpriced {
  const decider =
    ('suspend_timeout_seconds' in found.proposed && decided.suspend_timeout) ||
    (('min_cu' in found.proposed || 'max_cu' in found.proposed) && decided.size);
  if (!decider) return found;
  const { policy: _ofAnother, ...rest } = found;
  return { ...rest, evidence: [...found.evidence, `${decider} decides this: change it there`] };
}

/** Limits the saving to the compute's measured usage. */
function withinMeasured(found: Unpriced, facts: RecommendFacts): Unpriced {
  const maxCuHours = (averageUseCu(facts) ?? Number.POSITIVE_INFINITY) * MONTH_HOURS;
  return { ...found, savesCuHours: mapRange(found.savesCuHours, (hours) => Math.min(hours, maxCuHours)) };
}

function withPrice(found: Unpriced, { compute, owner, price }: RecommendFacts): Finding {
  if (price === undefined) return { ...found, compute, owner };
  const { low = 0, high = 0 } = found.savesOtherUsd ?? {};
  const savesUsd = { low: found.savesCuHours.low * price + low, high: found.savesCuHours.high * price + high };
  return { ...found, compute, owner, savesUsd };
}

function mapRange({ low, high }: Range, change: (value: number) => number): Range {
  return { low: change(low), high: change(high) };
}

/** With shorter timeouts a compute sleeps at night anyway. */
const LONG_TIMEOUT_SECONDS = 1800;
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const WORKDAYS = 5;

/**
 * Proposes a schedule for a compute that never suspends, or only after a long time: it keeps its timeout in the used hours of the week
 * and sleeps after five minutes in the others.
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
  const uses = isNever ? usedByUsage(hours, minCu) : usedByLog(history, seconds);
  const found = usePattern({ ...span, usedIntervals: uses, regionId, holidaysOf });
  if (!found) return undefined;
  const now = formatSuspendTimeout(seconds);
  const except = found.holidayCountry === undefined ? {} : { except: ['holidays'] };
  const windows = found.windows.map((window) => ({
    at: windowText(window),
    ...(window.days.every((day) => day <= WORKDAYS) && except),
    suspend_after: now,
  }));
  const { flatShare = 1 } = usageWhileAwake(facts);
  const outsideShare = Math.min(found.outsideShare, isNever ? flatShare : 1) * (awakeShare(history) ?? 1);
  return {
    ...{ finding: 'window', figure: 'estimate' },
    now: { suspend_timeout_seconds: seconds },
    proposed: { suspend_timeout_seconds: 300 },
    savesCuHours: { low: 0, high: outsideShare * minCu * MONTH_HOURS },
    evidence: [`used ${found.windows.map(windowText).join(', ')} ${found.zone}${holidayText(found)}`],
    risk: 'outside these hours the first visit after a pause waits for a start',
    policy: {
      ...{
        name: 'hours-of-use',
        zone: found.zone,
        ...(found.holidayCountry !== undefined && { holidays: found.holidayCountry }),
      },
      body: { kind: 'schedule', windows, otherwise: { suspend_after: '5m' } },
    },
  };
}

/** True if the timeout is long or never, and the plan allows both that and five minutes. Launch allows only five minutes and never. */
function mayHaveWindows(facts: RecommendFacts): boolean {
  const { suspendTimeoutSeconds: seconds, maxCu } = facts.compute;
  if (maxCu > MAX_AUTOSCALING_CU || !maySetTimeout(facts)) return false;
  return seconds === NEVER_SUSPENDS || (seconds >= LONG_TIMEOUT_SECONDS && mayChooseTimeout(facts));
}

function holidayText({ holidayCountry: holidays }: UsePattern): string {
  return holidays === undefined ? '' : `, not on public holidays (${holidays})`;
}

/** A window as policies write it: `Mon-Fri 08:00-18:00`. */
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
