/**
 * Databases whose use has the shape of real analytical ones: heavy-tailed levels, hours that switch on and off with daily and weekly
 * patterns of varying strength, sessions and gaps, bursts of queries, changes of regime.
 */
import { type Activity, between, exponential, HOUR, logNormal, MINUTE, type Random, SECOND } from './demand.ts';

export type DatabaseClass = 'serverless' | 'provisioned';

/** Over databases, at 10, 25, 50, 75 and 90 %. */
export type Quantiles = readonly [number, number, number, number, number];

export interface Shape {
  /** The share of hours used. */
  share: Quantiles;
  /** How often a used hour is used again a day, and a week, later. */
  nextDay: Quantiles;
  nextWeek: Quantiles;
  /** The median length of a run of used hours, and of the gap between two, in hours. */
  run: Quantiles;
  gap: Quantiles;
  /** The median number of queries in a used hour. */
  queries: Quantiles;
}

/** Of 35 and 32 real databases that are used in 0.5 to 60 % of the hours of 13 weeks. */
export const REAL_USE: Readonly<Record<DatabaseClass, Shape>> = {
  serverless: {
    share: [0.01, 0.02, 0.08, 0.18, 0.36],
    nextDay: [0.06, 0.19, 0.35, 0.7, 0.84],
    nextWeek: [0, 0.08, 0.26, 0.7, 0.76],
    run: [1, 1, 1, 2, 4],
    gap: [1, 2, 3, 11, 22],
    queries: [2, 5, 23, 98, 320],
  },
  provisioned: {
    share: [0.01, 0.02, 0.07, 0.34, 0.55],
    nextDay: [0, 0.11, 0.54, 0.81, 0.87],
    nextWeek: [0, 0.06, 0.39, 0.68, 0.82],
    run: [1, 1, 1, 3, 8],
    gap: [1, 1, 3, 10, 22],
    queries: [3, 9, 36, 245, 775],
  },
};

export const REAL_WEEKS = 13;
const HOURS = REAL_WEEKS * 168;
const [MIN_SHARE, MAX_SHARE] = [0.005, 0.6];
const MAX_QUERIES = 1_500;
const REGULAR = 0.4;

/** Queries by hour. */
export type Use = Uint16Array<ArrayBuffer>;

/** Draws until the database is used in 0.5 to 60 % of the hours. */
export function drawUse(random: Random, kind: DatabaseClass): Use {
  for (;;) {
    const use = drawAny(random, kind);
    const share = use.filter((count) => count > 0).length / HOURS;
    if (share >= MIN_SHARE && share <= MAX_SHARE) return use;
  }
}

interface Traits {
  share: number;
  /** How many of the used hours follow the template, and how reliably. */
  regular: number;
  run: number;
  gap: number;
  isWeekly: boolean;
}

function drawAny(random: Random, kind: DatabaseClass): Use {
  const real = REAL_USE[kind];
  const size = normal(random);
  const like = (strength: number) => rank(strength * size + Math.sqrt(1 - strength ** 2) * normal(random));
  const share = valueAt(real.share, like(1), [MIN_SHARE, MAX_SHARE], Math.log);
  const traits: Traits = {
    share,
    regular: valueAt(real.nextDay, like(0.6), [0, 0.95]) ** REGULAR,
    run: valueAt(real.run, like(0.75), [1, 14], Math.log) ** 1.3,
    gap: valueAt(real.gap, like(-0.5), [1, 40], Math.log) ** 0.85,
    isWeekly: random() < 0.3,
  };
  const typical = valueAt(real.queries, like(0.5), [1, 1000], Math.log);
  const use = new Uint16Array(HOURS);
  for (const regime of regimesOf(random)) {
    const used = usedHours(random, { ...traits, share: Math.min(0.95, share * regime.level) });
    for (let hour = regime.from; hour < regime.to; hour += 1) {
      if (!used[hour]) continue;
      use[hour] = Math.max(1, Math.min(MAX_QUERIES, Math.round(logNormal(random, typical, 0.9))));
    }
  }
  return use;
}

interface Regime {
  /** Hours since the beginning. */
  from: number;
  to: number;
  /** Of the share of hours. */
  level: number;
}

/** Of ten databases six stay as they are; others stop, begin, move their hours, or are used more or less. */
function regimesOf(random: Random): Regime[] {
  const kind = random();
  const at = Math.round(between(random, 0.15, 0.85) * HOURS);
  const [before, after] = [at / HOURS, 1 - at / HOURS];
  const levels = (first: number, second: number): Regime[] => [
    { from: 0, to: at, level: first },
    { from: at, to: HOURS, level: second },
  ];
  if (kind < 0.6) return [{ from: 0, to: HOURS, level: 1 }];
  if (kind < 0.7) return levels(1 / before, 0);
  if (kind < 0.78) return levels(0, 1 / after);
  if (kind < 0.9) return levels(1, 1);
  const factor = logNormal(random, 1, 0.8);
  const mean = before + after * factor;
  return levels(1 / mean, factor / mean);
}

/** Hours of a template that repeats by day or week, and sessions at any time. */
function usedHours(random: Random, traits: Traits): Uint8Array {
  const used = new Uint8Array(HOURS);
  followTemplate(random, traits, used);
  let missing = Math.round(traits.share * HOURS) - used.reduce((sum, one) => sum + one, 0);
  for (let tries = 0; missing > 0 && tries < 10_000; tries += 1) {
    const hour = Math.floor(random() * HOURS);
    const isByDay = hour % 24 >= 7 && hour % 24 <= 18;
    if (random() < 0.6 && !isByDay) continue;
    const runs = 1 + Math.floor(exponential(random, traits.gap > 12 ? 1 : 6));
    missing -= useRuns(random, used, { ...traits, hour, runs, most: missing });
  }
  return used;
}

/** A template with more hours than the share is followed for some days, and then not for some. In some weeks it moves. */
function followTemplate(random: Random, { share, regular, run, gap, isWeekly }: Traits, used: Uint8Array): void {
  const template = isWeekly ? weekTemplate(random, { share, run, gap }) : dayTemplate(random, { share, run, gap });
  const follow = Math.min(1, (share * 168) / template.reduce((sum, one) => sum + one, 0));
  const daysOn = lengthNear(random, 6);
  const moving = random() < 0.65 ? 0.3 : 0;
  let [isFollowed, shift] = [random() < follow, 0];
  for (let hour = 0; hour < HOURS; hour += 1) {
    if (hour % 168 === 0 && random() < moving) shift = Math.floor(random() * 168);
    const isEnding = random() < 1 / daysOn;
    if (hour % 24 === 0 && isEnding) isFollowed = random() < follow;
    if (isFollowed && template[(hour + shift) % 168] && random() < regular) used[hour] = 1;
  }
}

/** Uses some runs of hours from an hour on, with gaps between them; returns how many hours were not used before. */
function useRuns(
  random: Random,
  used: Uint8Array,
  { run, gap, runs, most, ...from }: Pick<Traits, 'run' | 'gap'> & { hour: number; runs: number; most: number },
): number {
  let { hour } = from;
  let many = 0;
  for (let left = runs; left > 0 && many < most; left -= 1) {
    for (let length = lengthNear(random, run); length > 0 && many < most; length -= 1, hour += 1) {
      if (hour >= used.length || used[hour]) continue;
      used[hour] = 1;
      many += 1;
    }
    hour += lengthNear(random, gap);
  }
  return many;
}

/** The same hours on each day, or on each working day. */
function dayTemplate(random: Random, { share, run, gap }: Pick<Traits, 'share' | 'run' | 'gap'>): Uint8Array {
  const days = random() < 0.5 ? 7 : 5;
  const template = new Uint8Array(168);
  const hours = (share * 168) / days;
  let left = Math.min(24, Math.max(gap < 12 ? 3 : 1, Math.round(hours)));
  const day = new Uint8Array(24);
  for (let hour = Math.floor(random() * 24); left > 0; hour += Math.max(1, Math.min(24, lengthNear(random, gap)))) {
    for (let length = lengthNear(random, run); length > 0 && left > 0; length -= 1, hour += 1) {
      if (day[hour % 24]) continue;
      day[hour % 24] = 1;
      left -= 1;
    }
  }
  for (let hour = 0; hour < 24 * days; hour += 1) template[hour] = day[hour % 24] ?? 0;
  return template;
}

/** Any hours of the week. */
function weekTemplate(random: Random, { share, run, gap }: Pick<Traits, 'share' | 'run' | 'gap'>): Uint8Array {
  const template = new Uint8Array(168);
  let left = Math.max(gap < 12 ? 6 : 2, Math.round(share * 168));
  while (left > 0) {
    let hour = Math.floor(random() * 168);
    for (let runs = 1 + Math.floor(exponential(random, 2)); runs > 0 && left > 0; runs -= 1) {
      for (let length = lengthNear(random, run); length > 0 && left > 0; length -= 1, hour += 1) {
        if (template[hour % 168]) continue;
        template[hour % 168] = 1;
        left -= 1;
      }
      hour += lengthNear(random, gap);
    }
  }
  return template;
}

/** At least an hour. */
function lengthNear(random: Random, hours: number): number {
  return Math.max(1, Math.round(logNormal(random, hours, 0.5)));
}

/** When a database is used, in milliseconds. */
export interface Visits {
  /** Pauses of less than {@link NO_PAUSE_MS} are left out: no timeout is so short. */
  activities: Activity[];
  /** How long queries ran in each hour, summed. */
  workMs: Float64Array<ArrayBuffer>;
}

const NO_PAUSE_MS = 20 * SECOND;

/** Draws when in its hours a database is used: in a part of the hour, or through all of it. */
export function visitsOf(random: Random, use: Use, fromMs: number): Visits {
  const activities: Activity[] = [];
  const workMs = new Float64Array(HOURS);
  for (const [hour, count] of use.entries()) {
    if (count === 0) continue;
    const lengthMs = HOUR * Math.min(1, between(random, 0.4, 2));
    const startMs = fromMs + hour * HOUR + random() * (HOUR - lengthMs);
    const arrivals = Array.from({ length: count }, () => startMs + random() * lengthMs).sort((a, b) => a - b);
    for (const atMs of arrivals) {
      const toMs = atMs + Math.min(20 * MINUTE, logNormal(random, 4 * SECOND, 1.5));
      workMs[hour] = (workMs[hour] ?? 0) + toMs - atMs;
      const last = activities.at(-1);
      if (last && atMs < last.toMs + NO_PAUSE_MS) last.toMs = Math.max(last.toMs, toMs);
      else activities.push({ fromMs: atMs, toMs, cu: 0 });
    }
  }
  return { activities, workMs };
}

/** The shape of some use, as in {@link REAL_USE}. */
export function shapeOf(uses: readonly Use[]): Shape {
  const over = (one: (use: Use) => number) => quantiles(uses.map(one).filter((value) => !Number.isNaN(value)));
  const again = (later: number) => (use: Use) => {
    const before = [...use.subarray(0, HOURS - later).entries()].filter(([, count]) => count > 0);
    return before.filter(([hour]) => (use[hour + later] ?? 0) > 0).length / before.length;
  };
  return {
    share: over((use) => use.filter((count) => count > 0).length / HOURS),
    nextDay: over(again(24)),
    nextWeek: over(again(168)),
    run: over((use) => median(runsOf(use, true))),
    gap: over((use) => median(runsOf(use, false))),
    queries: over((use) => median([...use.filter((count) => count > 0)])),
  };
}

/** The lengths of used runs, or of the gaps between them, in hours. */
function runsOf(use: Use, isUsed: boolean): number[] {
  const [first, last] = [use.findIndex((count) => count > 0), use.findLastIndex((count) => count > 0)];
  const runs: number[] = [];
  let length = 0;
  for (let hour = first; hour <= last + 1; hour += 1) {
    const isInRun = hour <= last && (use[hour] ?? 0) > 0 === isUsed;
    if (isInRun) length += 1;
    else if (length > 0) {
      runs.push(length);
      length = 0;
    }
  }
  return runs;
}

function quantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  return AT.map((at) => sorted[Math.round(at * (sorted.length - 1))] ?? 0) as unknown as Quantiles;
}

function median(values: readonly number[]): number {
  return quantiles(values)[2];
}

const AT = [0.1, 0.25, 0.5, 0.75, 0.9];

/** The value at a rank in [0, 1] between the known quantiles, interpolated on a scale. */
function valueAt(known: Quantiles, at: number, [least, most]: readonly [number, number], scale = (x: number) => x) {
  const xs = [0, ...AT, 1];
  const ys = [least, ...known, most];
  const index = Math.max(
    0,
    Math.min(
      xs.length - 2,
      xs.findLastIndex((x) => x <= at),
    ),
  );
  const [x0 = 0, x1 = 1, y0 = 0, y1 = 1] = [xs[index], xs[index + 1], ys[index], ys[index + 1]];
  const part = (at - x0) / (x1 - x0);
  return scale === Math.log ? Math.exp(Math.log(y0) + part * Math.log(y1 / y0)) : y0 + part * (y1 - y0);
}

function normal(random: Random): number {
  return Math.log(logNormal(random, 1, 1));
}

/** The normal distribution function, approximated by the logistic one (Bowling 2009). */
function rank(z: number): number {
  return 1 / (1 + Math.exp(-(0.07056 * z ** 3 + 1.5976 * z)));
}
