/**
 * Findings for computes that never suspend, or only after a long time. Their log does not show the pauses in which they could sleep, so no
 * timeout can be tried on it. A timeout that costs as much as a start costs at most twice the optimum (ski rental; Karlin et al. 1988). On
 * real databases it cost 3 % more than the best timeout of each.
 */
import { MONTH_HOURS } from '../awake/causes.ts';
import { awakeShare } from '../awake/intervals.ts';
import { workWhileAwake } from '../awake/usage-while-awake.ts';
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS } from '../compute/compute.ts';
import { formatSuspendTimeout, maySleep } from '../compute/compute-units.ts';
import { type Estimate, mapEstimate, type Range } from '../estimate.ts';
import { sum, toHundredths } from '../sum.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { causeOf, type RecommendFacts, sleepAfter, type Unpriced } from './finding.ts';
import { monthOf } from './later-weeks.ts';
import { CANDIDATES_SECONDS, mayChooseTimeout, maySetTimeout } from './timeout.ts';
import { visitsUnder } from './visits.ts';

/** From this timeout on the log shows too little of the pauses. */
export const LONG_TIMEOUT_SECONDS = 1800;
/**
 * A compute that works in a larger share of the hours would hardly sleep. The second share is for a compute that never comes down to its
 * minimum.
 */
const [BUSY_SHARE, BUSY_SHARE_ABOVE_MINIMUM] = [0.95, 0.75];
/**
 * A shorter timeout is not proposed if it saves less than this share of the time awake, not counting the waits before suspends. Additional starts
 * could cost as much.
 */
const MIN_GAIN = 0.02;
/**
 * The time awake with a timeout of five minutes, as a factor of the share of used hours. It is above 1 if a compute is also awake in hours
 * without visible use. Fitted to generated databases with the shape of real ones, like the next constant.
 */
const AWAKE_IN_USED_HOUR: Estimate = { low: 0.1, mid: 0.85, high: 1.15 };
/** The part of an awake interval, without its final wait, in which the compute would sleep with a short timeout. */
const PAUSES_IN_INTERVAL = 0.12;
/** The use of a future month may exceed that of the past by this share of the time. */
const MORE_USE = 0.03;
/** The share of time awake if nothing shows the use: that of real databases of all kinds. */
const AWAKE_ANYWHERE: Estimate = { low: 0, mid: 0.07, high: 0.4 };

/** Proposes a timeout for a compute that never suspends, or only after half an hour or more; undefined if it would hardly sleep. */
export function proposeSleep(facts: RecommendFacts, coldStartWorthMs: number): Unpriced | undefined {
  const { suspendTimeoutSeconds: now } = facts.compute;
  const seconds = skiRentalSeconds(facts, coldStartWorthMs);
  if (now === NEVER_SUSPENDS) return mayBeLetSleep(facts) ? sleepAtAll(facts, seconds) : undefined;
  return hasLongTimeout(facts) && mayChooseTimeout(facts) && seconds < now ? sleepSooner(facts, seconds) : undefined;
}

/** True if the compute suspends, but only after so long that no timeout can be tried on its log. */
export function hasLongTimeout({ compute: { suspendTimeoutSeconds } }: Pick<RecommendFacts, 'compute'>): boolean {
  return suspendTimeoutSeconds >= LONG_TIMEOUT_SECONDS;
}

/** The candidate timeout nearest to the worth of a start; five minutes on plans that allow no other. */
function skiRentalSeconds({ plan }: RecommendFacts, coldStartWorthMs: number): number {
  if (!mayChooseTimeout({ plan })) return DEFAULT_SUSPEND_TIMEOUT_SECONDS;
  const distance = (seconds: number) => Math.abs(Math.log((1000 * seconds) / Math.max(1, coldStartWorthMs)));
  return CANDIDATES_SECONDS.toSorted((a, b) => distance(a) - distance(b))[0] ?? DEFAULT_SUSPEND_TIMEOUT_SECONDS;
}

/** True if a compute whose timeout is "never" would suspend with another timeout, and the plan allows another one. */
function mayBeLetSleep({ compute, plan }: RecommendFacts): boolean {
  return maySetTimeout({ plan }) && maySleep({ ...compute, suspendTimeoutSeconds: DEFAULT_SUSPEND_TIMEOUT_SECONDS });
}

/** The past of a compute, as far as the effect of timeouts needs it. */
export type TimeoutFacts = Pick<RecommendFacts, 'compute' | 'history' | 'hours'>;

/** How much a compute that never suspends is awake now, how much it would be awake if it could suspend, and what that saves in a month. */
function effectOfSleeping(facts: TimeoutFacts) {
  const { compute, history, hours = [] } = facts;
  const { share: used, idleCu = compute.minCu, isAtMinimum = true } = workWhileAwake(facts) ?? {};
  const after = used === undefined ? AWAKE_ANYWHERE : awakeAfter(used);
  const measured = hours.filter(({ cuSeconds }) => cuSeconds !== null);
  const isUnused = measured.length > 0 && measured.every(({ cuSeconds }) => cuSeconds === 0);
  // A compute that never suspends stays awake once it has started. So it sleeps only if nothing has started it in the known time.
  const isAwake = history.intervals.at(-1)?.end === 'open' || (awakeShare(history) ?? (isUnused ? 0 : 1)) > 0;
  const before = isAwake || compute.state === 'active' ? 1 : 0;
  const cuHours = (share: number) => before * (1 - share) * idleCu * MONTH_HOURS;
  const saves: Estimate = { low: cuHours(after.high), mid: cuHours(after.mid), high: cuHours(after.low) };
  return { used, idleCu, isAtMinimum, before, after, saves };
}

/** The CU-hours of a month that a compute which never suspends would save if it could suspend, by its use in these hours. */
export function savedBySleeping(facts: TimeoutFacts): Estimate {
  return effectOfSleeping(facts).saves;
}

function sleepAtAll(facts: RecommendFacts, seconds: number): Unpriced | undefined {
  const { used, idleCu, isAtMinimum, before, after, saves } = effectOfSleeping(facts);
  if (used !== undefined && used >= (isAtMinimum ? BUSY_SHARE : BUSY_SHARE_ABOVE_MINIMUM)) return undefined;
  return {
    finding: 'never_suspends',
    figure: 'estimate',
    now: { suspend_timeout_seconds: NEVER_SUSPENDS },
    proposed: { suspend_timeout_seconds: seconds },
    savesCuHours: saves,
    awakeShare: { before, after: { low: before * after.low, high: before * after.high } },
    evidence: ['its timeout is "never"', useText(used, idleCu)],
    risk: 'the first visit after a pause waits for a start; sessions that must stay, such as replication, keep it awake anyway',
    policy: sleepAfter(formatSuspendTimeout(seconds)),
  };
}

function awakeAfter(share: number): Estimate {
  const { low, mid, high } = AWAKE_IN_USED_HOUR;
  return { low: low * share, mid: mid * share, high: Math.min(1, high * share + MORE_USE) };
}

function useText(used: number | undefined, idleCu: number): string {
  if (used === undefined) return 'usage does not show when it works: the saving is that of other databases';
  return `${Math.round(100 * used)} % of its hours above ${toHundredths(idleCu)} CU`;
}

/** The CU-hours of a month that a compute with a long timeout saves by a shorter one. */
export function savedBySleepingSooner({ compute, history }: TimeoutFacts, seconds: number): Estimate {
  const { suspendTimeoutSeconds: now, minCu } = compute;
  const shorterMs = 1000 * (now - seconds);
  const visits = visitsUnder(history, now);
  const fromMs = visits?.fromMs ?? history.toMs;
  const days = Math.max(1, Math.ceil((history.toMs - fromMs) / DAY_MS));
  const savedByDay = new Array<number>(days).fill(0);
  for (const { startMs, endMs, end } of visits?.intervals ?? []) {
    const day = Math.min(days - 1, Math.floor((endMs - fromMs) / DAY_MS));
    const saved = end === 'timeout' ? shorterMs - PAUSES_IN_INTERVAL * 1000 * now : 0;
    savedByDay[day] = (savedByDay[day] ?? 0) + saved + PAUSES_IN_INTERVAL * (endMs - startMs);
  }
  const knownShare = Math.max(1, visits?.knownMs ?? 1) / (days * DAY_MS);
  const cuHoursPerSavedMs = (minCu * MONTH_HOURS) / 24 / knownShare / days / HOUR_MS;
  return mapEstimate(monthOf(savedByDay), (savedMs) => savedMs * cuHoursPerSavedMs);
}

function sleepSooner(facts: RecommendFacts, seconds: number): Unpriced | undefined {
  const { compute, history } = facts;
  const { suspendTimeoutSeconds: now, minCu } = compute;
  const visits = visitsUnder(history, now);
  const intervals = visits?.intervals ?? [];
  const suspends = intervals.filter(({ end }) => end === 'timeout').length;
  const awakeBeforeWaitsMs = sum(intervals.map(({ startMs, endMs }) => endMs - startMs)) - suspends * 1000 * now;
  if (suspends * 1000 * (now - seconds) < MIN_GAIN * awakeBeforeWaitsMs) return undefined;
  const days = Math.max(1, Math.ceil((history.toMs - (visits?.fromMs ?? history.toMs)) / DAY_MS));
  const savesCuHours = savedBySleepingSooner(facts, seconds);
  const perMonth = (count: number) => (count / Math.max(1, visits?.knownMs ?? 1)) * MONTH_HOURS * HOUR_MS;
  const share = awakeShare(history) ?? 0;
  const after = (saved: number) => Math.max(0, share - saved / minCu / MONTH_HOURS);
  const starts = intervals.filter(({ start }) => start === 'client').length;
  // At most one more start for each hour awake.
  const afterStarts: Range = { low: perMonth(starts), high: perMonth(starts + awakeBeforeWaitsMs / HOUR_MS) };
  return {
    finding: 'timeout',
    figure: 'estimate',
    now: { suspend_timeout_seconds: now },
    proposed: { suspend_timeout_seconds: seconds },
    savesCuHours,
    startsMonth: { before: perMonth(starts), after: afterStarts },
    awakeShare: { before: share, after: { low: after(savesCuHours.high), high: after(savesCuHours.low) } },
    evidence: [
      suspends === 0
        ? `not used in ${days} days: it will wait ${formatSuspendTimeout(now)} after the next use`
        : `waits ${formatSuspendTimeout(now)} after each of ${suspends} uses in ${days} days`,
      ...causeOf(facts),
    ],
    risk: 'it may start more often: clients wait for a start after shorter pauses',
    policy: sleepAfter(formatSuspendTimeout(seconds)),
  };
}
