/** Clients whose behaviour is known, and what the platform would show of a compute that serves them: operations and usage. */
import type { OperationRow } from '../../src/domain/awake/operation-log.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Clients want something from one instant to another; `cu` is the size that serves them. */
export interface Activity {
  fromMs: number;
  toMs: number;
  cu: number;
}

export interface Span {
  fromMs: number;
  toMs: number;
}

export type Random = () => number;

export const between = (random: Random, low: number, high: number) => low + (high - low) * random();
export const oneOf = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
export const exponential = (random: Random, mean: number) => -Math.log(1 - random()) * mean;
export function logNormal(random: Random, median: number, sigma: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(sigma * normal);
}

/** Visits whose gaps and lengths, in milliseconds, are drawn. */
export function visits(span: Span, gap: () => number, length: () => number, cu = 0.25): Activity[] {
  const found: Activity[] = [];
  for (let atMs = span.fromMs + gap(); atMs < span.toMs; ) {
    const toMs = Math.min(span.toMs, atMs + length());
    found.push({ fromMs: atMs, toMs, cu });
    atMs = toMs + gap();
  }
  return found;
}

/** A cron job: at the same place of each period, as punctual as `jitterMs`. */
export function cron(random: Random, span: Span, periodMs: number, jitterMs = 2 * SECOND): Activity[] {
  const found: Activity[] = [];
  const phaseMs = random() * periodMs;
  for (let atMs = span.fromMs + phaseMs; atMs < span.toMs - MINUTE; atMs += periodMs) {
    const fromMs = atMs + random() * jitterMs;
    found.push({ fromMs, toMs: fromMs + between(random, 0.1, 5) * SECOND, cu: 0.25 });
  }
  return found;
}

/** Visits on working days only, between two hours of UTC. */
export function inHours(
  activities: readonly Activity[],
  fromHour: number,
  toHour: number,
  weekends = false,
): Activity[] {
  return activities.filter(({ fromMs }) => {
    const hour = (fromMs % DAY) / HOUR;
    const weekday = (Math.floor(fromMs / DAY) + 4) % 7;
    return hour >= fromHour && hour < toHour && (weekends || (weekday !== 0 && weekday !== 6));
  });
}

export interface Simulated {
  /** Oldest first, whole seconds. */
  operations: OperationRow[];
  hours: UsageBucket[];
  awakeSeconds: number;
  /** Starts for clients. */
  starts: number;
}

export interface SimulateOptions extends Span {
  random: Random;
  activities: readonly Activity[];
  /** -1: never. */
  timeoutSeconds: number;
  minCu?: number;
  maxCu?: number;
  projectId?: string;
  computeId?: string;
  /** Restarts by the platform, failed suspends, availability checks, other operations. */
  noise?: boolean;
  startMs?: number;
}

/** What the platform does for these clients. The compute is asleep at first. */
export function simulate(options: SimulateOptions): Simulated {
  const { random, fromMs, toMs, timeoutSeconds, noise = false, minCu = 0.25, maxCu = 2 } = options;
  const { projectId = 'p', computeId = 'ep', startMs = 900 } = options;
  const timeoutMs = timeoutSeconds === -1 ? Number.POSITIVE_INFINITY : timeoutSeconds * SECOND;
  const rows: OperationRow[] = [];
  const awake: [number, number][] = [];
  let starts = 0;
  const add = (atMs: number, action: string, status: string, durationMs: number) => {
    const createdAtMs = Math.floor(atMs / SECOND) * SECOND;
    if (atMs <= toMs) rows.push({ projectId, computeId, action, status, createdAtMs, totalDurationMs: durationMs });
  };
  const end = (beganMs: number, lastMs: number) => {
    let sleepMs = lastMs + timeoutMs;
    for (let atMs = beganMs + 7 * DAY * random(); noise && atMs < Math.min(sleepMs, toMs) - HOUR; atMs += 7 * DAY) {
      if (atMs < lastMs && atMs > beganMs + MINUTE) {
        add(atMs, 'suspend_compute', 'finished', 600);
        add(atMs + 700, 'start_compute', 'finished', startMs);
      }
    }
    if (noise && random() < 0.01 && sleepMs < toMs) {
      add(sleepMs, 'suspend_compute', 'failed', 600);
      sleepMs += between(random, 10, 40) * SECOND;
    }
    add(sleepMs, 'suspend_compute', 'finished', 400);
    awake.push([beganMs, Math.min(sleepMs, toMs)]);
    return sleepMs;
  };
  /** The platform checks a compute that has slept for long; every other time it wakes it for that. */
  const check = (sinceMs: number, untilMs: number) => {
    const checkMs = sinceMs + (untilMs - sinceMs) * between(random, 0.3, 0.6);
    add(checkMs, 'check_availability', 'finished', 500);
    if (random() < 0.5) return;
    add(checkMs + SECOND, 'start_compute', 'finished', startMs);
    end(checkMs + SECOND, checkMs + 2 * SECOND);
  };
  let beganMs: number | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  let asleepMs = fromMs;
  for (const one of options.activities.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (beganMs !== undefined && one.fromMs > lastMs + timeoutMs) {
      asleepMs = end(beganMs, lastMs);
      beganMs = undefined;
    }
    if (beganMs === undefined) {
      if (noise && one.fromMs - asleepMs > 6 * HOUR && random() < 0.2) check(asleepMs, one.fromMs);
      beganMs = Math.max(one.fromMs, asleepMs + SECOND);
      lastMs = beganMs;
      starts += 1;
      add(beganMs, 'start_compute', 'finished', startMs * between(random, 0.8, 1.5));
    }
    lastMs = Math.max(lastMs, one.toMs, beganMs + startMs);
  }
  if (beganMs !== undefined) end(beganMs, lastMs);
  const operations = rows.toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  const hours = hoursOf(awake, options.activities, { fromMs, toMs, minCu, maxCu });
  const awakeSeconds = awake.reduce((sum, [from, to]) => sum + (to - from) / SECOND, 0);
  return { operations, hours, awakeSeconds, starts };
}

/** CU-seconds by hours: the minimum while awake, and what activities need above it. */
function hoursOf(
  awake: readonly (readonly [number, number])[],
  activities: readonly Activity[],
  { fromMs, toMs, minCu, maxCu }: Span & { minCu: number; maxCu: number },
): UsageBucket[] {
  const first = Math.floor(fromMs / HOUR);
  const used = new Float64Array(Math.ceil(toMs / HOUR) - first);
  const addUse = (from: number, to: number, cu: number) => {
    for (let hour = Math.floor(from / HOUR); hour * HOUR < Math.min(to, toMs); hour += 1) {
      const ms = Math.min(to, (hour + 1) * HOUR) - Math.max(from, hour * HOUR);
      used[hour - first] = (used[hour - first] ?? 0) + (cu * ms) / SECOND;
    }
  };
  for (const [from, to] of awake) addUse(from, to, minCu);
  for (const { fromMs: from, toMs: to, cu } of activities)
    if (cu > minCu) addUse(from, to, Math.min(cu, maxCu) - minCu);
  return [...used].map((cuSeconds, index) => ({ startMs: (first + index) * HOUR, seconds: 3600, cuSeconds }));
}
