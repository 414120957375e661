import type { AwakeHistory, AwakeInterval } from '../awake/intervals.ts';
import type { AccountPlan } from '../compute/cost.ts';
import { type Estimate, exactly, inOrder, mapEstimate, type Range } from '../estimate.ts';
import { quantile } from '../sorted.ts';
import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import { proposeWindows, type WindowProposal } from './hours-of-use.ts';
import { bestInLaterWeeks, byGain, gainsOf, monthOf, type Option } from './later-weeks.ts';
import { pausesWithin } from './pauses.ts';
import { areMemoryless, gapsOf, replay, type TimeoutOutcome, type Visits, visitsUnder } from './visits.ts';
import type { HolidaysOf } from './windows.ts';

/**
 * The default cost of a cold start, expressed in time awake. Choosing a timeout is a ski-rental problem: time awake after the last
 * client is the rent, a cold start is the purchase.
 */
export const DEFAULT_COLD_START_WORTH_MS = 300_000;

/** Candidate timeouts, in seconds. Above an hour a replay is unreliable, because of work that runs by itself. */
export const CANDIDATES_SECONDS = [60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600];

const MIN_GAPS = 20;
const MIN_DAYS = 7;
/** The shortest month, which fluctuates most. */
const MONTH_DAYS = 28;
/** 99.999 % quantiles of Student's t distribution by the number of known days (degrees of freedom plus one). */
const T_QUANTILES = [
  [MIN_DAYS, 12.032],
  [10, 8.102],
  [14, 6.501],
  [21, 5.543],
  [28, 5.157],
  [60, 4.638],
  [180, 4.382],
] as const;
/** The assumed duration of a start if none was observed, in milliseconds. */
const DEFAULT_START_MS = 5_000;
/** The maximum error of an interval's length, since instants are whole seconds. */
const RESOLUTION_MS = 2_000;
/** A longer timeout covers a gap only if the client returns at least this much before it. */
const MARGIN_MS = 10_000;

interface TimeoutProposal {
  suspendTimeoutSeconds: number;
  figure: 'replayed' | 'at_least' | 'estimate';
  /** The known time in the log, in milliseconds. */
  knownMs: number;
  /** The number of suspends after which a client returned. */
  gaps: number;
  /** Milliseconds awake saved in a coming month, scaled to the known time; negative if awake longer. For `at_least` the low end is promised. */
  savedMs: Estimate;
  starts: { before: number; after: Range };
  /** Milliseconds awake in the known time. */
  awakeMs: { before: number; after: Range };
  /** Set if the timeout applies only inside windows. */
  windows?: Pick<WindowProposal, 'text' | 'policy'>;
}

interface TimeoutOptions {
  history: AwakeHistory;
  /** Canonical seconds. */
  suspendTimeoutSeconds: number;
  /** The account's plan; if it is unknown, nothing is proposed, since not every plan allows other timeouts. */
  plan?: AccountPlan | undefined;
  coldStartWorthMs?: number;
  /** The region of the compute, for the time zone of windows. */
  regionId?: string;
  /** Looks up public holidays; if absent, windows have none. */
  holidaysOf?: HolidaysOf | undefined;
}

/**
 * Proposes a better timeout. Longer timeouts are replayed. For shorter ones a lower bound is promised: each suspend saves the difference, and the
 * cost of as many additional starts as fit into the remaining awake time is subtracted. The expected number of these starts is estimated.
 * Undefined if the log is short, visits are memoryless, or no timeout passes the validation on later weeks.
 */
export function proposeTimeout(options: TimeoutOptions): TimeoutProposal | undefined {
  const { history, suspendTimeoutSeconds, plan, coldStartWorthMs = DEFAULT_COLD_START_WORTH_MS } = options;
  if (!mayChooseTimeout({ plan })) return undefined;
  const visits = visitsUnder(history, suspendTimeoutSeconds);
  if (!visits || visits.knownMs < MIN_DAYS * DAY_MS) return undefined;
  const gaps = gapsOf(visits);
  if (gaps.length < MIN_GAPS || areMemoryless(gaps.map((ms) => ms - visits.timeoutMs))) return undefined;
  const now = replay(visits, visits.timeoutMs);
  const candidateFor = candidatesOf({ visits, now, startWorthMs: coldStartWorthMs, startMs: startTimeOf(history) });
  const candidates = CANDIDATES_SECONDS.filter((seconds) => seconds !== suspendTimeoutSeconds).map(candidateFor);
  const extent = { knownMs: visits.knownMs, gaps: gaps.length };
  const { regionId = '', holidaysOf } = options;
  const windows = proposeWindows({
    visits,
    now,
    constantBefore: (day) => byGain(candidates, day)[0],
    startWorthMs: coldStartWorthMs,
    regionId,
    holidaysOf,
  });
  if (windows) return { ...outcomeOf(now, windows), figure: 'estimate', ...extent, windows };
  const best = bestInLaterWeeks(now.days.length, () => candidates);
  return best && { ...best.proposal(), ...extent };
}

interface CandidateInput {
  visits: Visits;
  /** The outcome of the present timeout. */
  now: TimeoutOutcome;
  /** The cost of a start, expressed in milliseconds awake. */
  startWorthMs: number;
  /** The duration of a start, in milliseconds. */
  startMs: number;
}

function candidatesOf(input: CandidateInput): (seconds: number) => Candidate {
  const pauses = pausesWithin(input.visits);
  return (seconds) =>
    1000 * seconds > input.visits.timeoutMs ? tryLonger(input, seconds) : tryShorter(input, seconds, pauses);
}

/** The milliseconds awake that another timeout saves in the known time; negative if the compute would be awake longer. */
export function savedByTimeout(
  history: AwakeHistory,
  { hadSeconds, seconds }: { hadSeconds: number; seconds: number },
): { savedMs: Estimate; knownMs: number; figure: TimeoutProposal['figure'] } | undefined {
  const visits = visitsUnder(history, hadSeconds);
  if (!visits || visits.knownMs <= 0) return undefined;
  const now = replay(visits, visits.timeoutMs);
  const startMs = startTimeOf(history);
  const candidateFor = candidatesOf({ visits, now, startWorthMs: DEFAULT_COLD_START_WORTH_MS, startMs });
  const { savedMs, figure } = candidateFor(seconds).proposal();
  return { savedMs, knownMs: visits.knownMs, figure };
}

/** True if the plan allows any timeout. Launch allows 300 s and never, Free only 300 s; others are answered with 412. */
export function mayChooseTimeout({ plan }: { plan?: AccountPlan | undefined }): boolean {
  return plan === 'scale';
}

/** True if the plan allows changes of the timeout. Free has a fixed one: changes are answered with 412. */
export function maySetTimeout({ plan }: { plan?: AccountPlan | undefined }): boolean {
  return plan !== 'free';
}

interface Candidate extends Option {
  proposal(): Omit<TimeoutProposal, 'knownMs' | 'gaps'>;
}

function tryLonger({ visits, now, startWorthMs }: CandidateInput, seconds: number): Candidate {
  const longer = replay(visits, 1000 * seconds);
  // A timeout that only just covers a gap may miss the next one, so starts are counted with a margin.
  const missed = replay(visits, 1000 * seconds - MARGIN_MS);
  const awakeMsByDay = longer.days.map(({ awakeMs }) => awakeMs);
  const gainByDay = now.days.map(({ awakeMs, starts }, index) => {
    const savedStarts = starts - (missed.days[index]?.starts ?? starts);
    return startWorthMs * savedStarts + awakeMs - (awakeMsByDay[index] ?? awakeMs);
  });
  return {
    gainIn: gainsOf(gainByDay),
    proposal: () => ({
      figure: 'replayed',
      ...outcomeOf(now, { suspendTimeoutSeconds: seconds, starts: longer.starts, awakeMsByDay }),
    }),
  };
}

/** The milliseconds awake that a replay saves in a coming month, scaled to the known time; negative if the compute would be awake longer. */
export function savedByReplay(now: TimeoutOutcome, days: readonly { awakeMs: number }[]): { savedMs: Estimate } {
  const saved = days.map(({ awakeMs }, day) => (now.days[day]?.awakeMs ?? 0) - awakeMs);
  const isSaving = sum(saved) > 0;
  const month = monthOf(isSaving ? saved : saved.map((ms) => -ms));
  return { savedMs: inOrder(isSaving ? month : mapEstimate(month, (ms) => -ms)) };
}

function outcomeOf(
  now: TimeoutOutcome,
  proposed: Pick<WindowProposal, 'suspendTimeoutSeconds' | 'starts' | 'awakeMsByDay'>,
): Pick<TimeoutProposal, 'suspendTimeoutSeconds' | 'savedMs' | 'starts' | 'awakeMs'> {
  const { suspendTimeoutSeconds, starts, awakeMsByDay } = proposed;
  return {
    suspendTimeoutSeconds,
    ...savedByReplay(
      now,
      awakeMsByDay.map((awakeMs) => ({ awakeMs })),
    ),
    starts: { before: now.starts, after: exactly(starts) },
    awakeMs: { before: now.awakeMs, after: exactly(sum(awakeMsByDay)) },
  };
}

function tryShorter(
  { visits, now, startWorthMs, startMs }: CandidateInput,
  seconds: number,
  pauses: ReturnType<typeof pausesWithin>,
): Candidate {
  const shorterMs = visits.timeoutMs - 1000 * seconds;
  const firstDay = Math.floor(visits.fromMs / DAY_MS);
  const days = now.days.map(() => ({ suspends: 0, extra: 0 }));
  for (const interval of visits.intervals) {
    const day = days[Math.floor(interval.startMs / DAY_MS) - firstDay];
    if (!day) continue;
    day.suspends += interval.end === 'timeout' ? 1 : 0;
    day.extra += maxExtraSuspends(interval, visits.timeoutMs, 1000 * seconds);
  }
  const savedByDay = days.map(({ suspends, extra }) => suspends * shorterMs - extra * startMs);
  const certainGainIn = gainsOf(days.map(({ extra }, index) => (savedByDay[index] ?? 0) - extra * startWorthMs));
  const extra = sum(days.map((day) => day.extra));
  const maxSavedMs = (sum(days.map(({ suspends }) => suspends)) + extra) * shorterMs;
  const expected = pauses({ timeoutMs: 1000 * seconds, startWorthMs: startWorthMs + startMs });
  return {
    gainIn: (span) => Math.max(certainGainIn(span), expected.gainIn(span)),
    proposal: () => {
      // The coming month fluctuates like the past, and may begin and end within a visit.
      const marginMs = fluctuationOf(savedByDay) + 2 * shorterMs;
      const promised = isInUse(visits) ? Math.max(0, sum(savedByDay) - marginMs) : 0;
      const bySuspends = days.map(({ suspends }) => suspends * shorterMs);
      const { mid, high } = monthOf(bySuspends);
      const factorOfPauses = Math.max(1, expected.savedMs / Math.max(1, sum(bySuspends)));
      const bounded = (savedMs: number) => Math.min(maxSavedMs, Math.max(promised, savedMs * factorOfPauses));
      return {
        suspendTimeoutSeconds: seconds,
        figure: 'at_least',
        savedMs: { low: promised, mid: bounded(mid), high: bounded(high) },
        starts: { before: now.starts, after: { low: now.starts, high: now.starts + extra } },
        awakeMs: {
          before: now.awakeMs,
          after: { low: Math.max(0, now.awakeMs - maxSavedMs), high: now.awakeMs - promised },
        },
      };
    },
  };
}

/**
 * The amount by which a coming month's sum, scaled to the number of known days, may fall below the sum of the known days: half of a prediction
 * interval for the mean of a month (Student's t). Of a thousand computes, all stay within it in 99 of 100 months.
 */
export function fluctuationOf(byDay: readonly number[]): number {
  const known = byDay.length;
  // One day does not show how much days differ.
  if (known < 2) return Number.POSITIVE_INFINITY;
  const [, quantile] = T_QUANTILES.findLast(([days]) => days <= known) ?? T_QUANTILES[0];
  const mean = sum(byDay) / known;
  const variance = sum(byDay.map((value) => (value - mean) ** 2)) / (known - 1);
  return quantile * known * Math.sqrt(variance * (1 / known + 1 / MONTH_DAYS));
}

/** True if the time since the last visit is no longer than a day or the longest earlier pause. Otherwise the database may be abandoned. */
function isInUse({ intervals, toMs }: Visits): boolean {
  const pausesMs = intervals.map(({ endMs }, index) => (intervals[index + 1]?.startMs ?? toMs) - endMs);
  return (pausesMs.at(-1) ?? 0) <= pausesMs.slice(0, -1).reduce((most, ms) => Math.max(most, ms), DAY_MS);
}

/** The largest number of additional suspends that a shorter timeout could have caused in one awake interval. */
export function maxExtraSuspends(
  { startMs, endMs, end }: Pick<AwakeInterval, 'startMs' | 'endMs' | 'end'>,
  timeoutMs: number,
  shorterMs: number,
): number {
  const passedMs = end === 'timeout' ? timeoutMs : 0;
  return Math.max(0, Math.floor((endMs - startMs - passedMs + RESOLUTION_MS) / shorterMs));
}

/** The duration of a start in milliseconds: the 95th percentile of the observed ones. */
export function startTimeOf({ startDurationsMs }: Pick<AwakeHistory, 'startDurationsMs'>): number {
  return quantile(startDurationsMs, 0.95) ?? DEFAULT_START_MS;
}
