import { isAtMinimum } from '../compute/compute-units.ts';
import { quantile } from '../sorted.ts';
import { sum } from '../sum.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { AwakeHistory } from './intervals.ts';

/** Hours with less awake time are ignored: they say little about the size. */
const MIN_AWAKE_MS = 60_000;
/** The minimum number of measured hours for the size while awake, and for the share of hours with work. */
const [MIN_HOURS, MIN_HOURS_OF_WORK] = [12, 48];

/** The usage of a project's only compute in its billing period, for computes without hourly usage. */
export interface PeriodUse {
  cuHours: number;
  /** More than 0. */
  awakeHours: number;
}

/** Less time awake in a period says little about the size. */
const MIN_AWAKE_HOURS_OF_PERIOD = 24;
/** An average below this share of the minimum can't come from this compute at its present size alone. */
const LEAST_OF_MINIMUM = 0.97;

export interface UsageWhileAwake {
  /** The average size in CU, weighted by time; absent if not measured. */
  averageCu?: number;
  /** The share of the measured hours at the minimum size, that is, without much work. */
  flatShare?: number;
}

/** The size of a compute while it was awake, from hours with known usage and awake time; without such hours, from its billing period. */
export function usageWhileAwake({
  compute,
  history,
  hours = [],
  period,
}: {
  compute: { minCu: number; maxCu: number };
  history: AwakeHistory;
  hours?: readonly UsageBucket[];
  period?: PeriodUse;
}): UsageWhileAwake {
  if (hours.length === 0 && period) return whileAwakeInPeriod(compute, period);
  if (hours.length < MIN_HOURS) return {};
  const awakeIn = awakeMsByHour(history);
  let cuSeconds = 0;
  let seconds = 0;
  let flat = 0;
  let counted = 0;
  for (const hour of hours) {
    const awakeMs = hour.seconds * 1000 === HOUR_MS ? (awakeIn(hour.startMs) ?? 0) : 0;
    if (hour.cuSeconds === null || awakeMs < MIN_AWAKE_MS) continue;
    cuSeconds += hour.cuSeconds;
    seconds += awakeMs / 1000;
    counted += 1;
    if (isAtMinimum(hour.cuSeconds, compute.minCu, awakeMs / 1000)) flat += 1;
  }
  if (counted < MIN_HOURS) return {};
  const averageCu = Math.min(Math.max(cuSeconds / seconds, compute.minCu), compute.maxCu);
  // A fixed size does not show whether the compute was at work.
  return compute.minCu === compute.maxCu ? { averageCu } : { averageCu, flatShare: flat / counted };
}

function whileAwakeInPeriod(
  { minCu, maxCu }: { minCu: number; maxCu: number },
  { cuHours, awakeHours }: PeriodUse,
): UsageWhileAwake {
  if (awakeHours < MIN_AWAKE_HOURS_OF_PERIOD || cuHours < LEAST_OF_MINIMUM * minCu * awakeHours) return {};
  const averageCu = Math.min(Math.max(cuHours / awakeHours, minCu), maxCu);
  // An average at the minimum was never above it. A larger one does not say for how long.
  return minCu < maxCu && isAtMinimum(cuHours, minCu, awakeHours) ? { averageCu, flatShare: 1 } : { averageCu };
}

/** The minimum measured time for statements about a month. */
const MIN_MEASURED_SECONDS = 7 * 24 * 3600;

/**
 * The average usage of a compute over its history, asleep or awake, in CU: an upper bound of any saving. Undefined if less than a week was
 * measured.
 */
export function averageUseCu({
  history,
  hours = [],
}: {
  history: Pick<AwakeHistory, 'fromMs' | 'toMs'>;
  hours?: readonly UsageBucket[];
}): number | undefined {
  let [cuSeconds, seconds] = [0, 0];
  for (const bucket of hours) {
    if (bucket.cuSeconds === null || bucket.startMs < history.fromMs || bucket.startMs >= history.toMs) continue;
    cuSeconds += bucket.cuSeconds;
    seconds += bucket.seconds;
  }
  return seconds < MIN_MEASURED_SECONDS ? undefined : cuSeconds / seconds;
}

/** Returns a look-up of the awake time in the hour that begins at an instant, in milliseconds; undefined if unknown. */
export function awakeMsByHour({
  intervals,
  unknown,
  fromMs,
  toMs,
}: AwakeHistory): (startMs: number) => number | undefined {
  const awake = new Map<number, number>();
  for (const interval of intervals) addHours(awake, interval.startMs, interval.endMs);
  const missing = new Map<number, number>();
  for (const gap of unknown) addHours(missing, gap.fromMs, gap.toMs);
  return (startMs) => {
    if (startMs < fromMs || startMs + HOUR_MS > toMs || missing.has(startMs)) return undefined;
    return awake.get(startMs) ?? 0;
  };
}

function addHours(hours: Map<number, number>, fromMs: number, toMs: number): void {
  for (let hour = Math.floor(fromMs / HOUR_MS) * HOUR_MS; hour < toMs; hour += HOUR_MS) {
    const ms = Math.min(toMs, hour + HOUR_MS) - Math.max(fromMs, hour);
    hours.set(hour, (hours.get(hour) ?? 0) + ms);
  }
}

/** The usage of an idle hour is this quantile of all hours. */
const IDLE_QUANTILE = 0.1;
/** An hour has work if its usage exceeds the idle level by this factor. The second factor is for a level above the minimum, which varies more. */
const [ABOVE_MINIMUM, ABOVE_LEVEL] = [1.01, 1.1];
/** An hour with less than this share of the minimum was not awake throughout. */
const LEAST_OF_AWAKE_HOUR = 0.98;
/** Recent hours count more: those of a week ago four fifths. */
const FADING_PER_HOUR = 0.8 ** (1 / 168);

export interface WorkWhileAwake {
  /** The share of hours with work. Absent if usage is the same in all hours: work that fits into the size does not show. */
  share?: number;
  /** The size of the compute without work, in CU. */
  idleCu: number;
  /** False if the compute stays above its minimum while it is idle, because of its memory. */
  isAtMinimum: boolean;
}

/** How much a compute that stays awake works, by its usage above that of idle hours. Undefined with less than two days of usage. */
export function workWhileAwake({
  compute: { minCu },
  hours = [],
}: {
  compute: { minCu: number };
  hours?: readonly UsageBucket[];
}): WorkWhileAwake | undefined {
  const sizes = hours.flatMap(({ startMs, seconds, cuSeconds }) => {
    const cu = (cuSeconds ?? 0) / seconds;
    const isWhole = seconds * 1000 === HOUR_MS && cuSeconds !== null;
    return isWhole && cu >= LEAST_OF_AWAKE_HOUR * minCu ? [{ startMs, cu }] : [];
  });
  if (sizes.length < MIN_HOURS_OF_WORK) return undefined;
  const idleLevel = quantile(
    sizes.map(({ cu }) => cu),
    IDLE_QUANTILE,
  );
  const levelCu = Math.max(minCu, idleLevel ?? minCu);
  const isIdleAtMinimum = isAtMinimum(levelCu, minCu, 1);
  const limit = levelCu * (isIdleAtMinimum ? ABOVE_MINIMUM : ABOVE_LEVEL);
  const idle = sizes.filter(({ cu }) => cu <= limit);
  const idleCu = sum(idle.map(({ cu }) => cu)) / idle.length;
  if (idle.length === sizes.length) return { idleCu, isAtMinimum: isIdleAtMinimum };
  const lastMs = sizes.at(-1)?.startMs ?? 0;
  const weightOf = ({ startMs }: { startMs: number }) => FADING_PER_HOUR ** ((lastMs - startMs) / HOUR_MS);
  const share = 1 - sum(idle.map(weightOf)) / sum(sizes.map(weightOf));
  return { share, idleCu, isAtMinimum: isIdleAtMinimum };
}
