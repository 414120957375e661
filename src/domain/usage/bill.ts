/** Computes the cost of compute usage in a month, by owner or project, also of the expected usage in unknown hours. */
import { getOrAdd, groupBy } from '../grouping.ts';
import { firstIndex } from '../sorted.ts';
import { roundToSum, sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { UsageSeries, UsageUnit } from './usage.ts';

export interface BillLine {
  name: string;
  /** Known CU-seconds. */
  cuSeconds: number;
  /** The price of the CU-seconds in US dollars; undefined if part of it is unknown. */
  usd: number | undefined;
  /** Hours of projects without known usage; they are not in the sums. */
  unknownHours: number;
}

export interface Bill {
  /** Sorted by CU-seconds, the most first. */
  lines: BillLine[];
  total: BillLine;
}

/** The line for usage of projects that is not attributed to branches, unless lines are projects. */
export const UNATTRIBUTED = 'unattributed';

/** The span, in whole hours, includes the buckets that begin in it. */
export interface BillInput extends Span {
  /** The usage of one account: of its projects and, as far as known, their branches. */
  series: readonly UsageSeries[];
  /** The name of a unit's line; `byProject` is true if lines are projects. */
  lineOf: (unit: UsageUnit) => string;
  byProject: boolean;
  /** US dollars for a CU-hour at an instant; undefined without a price. */
  priceAt: (startMs: number) => number | undefined;
}

/**
 * Adds up the known usage, day by day. Each project's total is split over the lines of its branches, and the rest is unattributed, so
 * that lines sum to the total. An hour without a known project total is unknown.
 */
export function billOf(input: BillInput): Bill {
  const lines = new Map<string, BillLine>();
  for (const { line: share } of dailyLines(input)) {
    const line = getOrAdd(lines, share.name, () => emptyLine(share.name));
    addLine(line, share);
  }
  const sorted = [...lines.values()].sort((a, b) => b.cuSeconds - a.cuSeconds || (a.name < b.name ? -1 : 1));
  const total = emptyLine('total');
  for (const line of sorted) addLine(total, line);
  return { lines: sorted, total };
}

/** Yields the contribution of each day, or part of a day, to the lines. `dayMs` is the start of the day in UTC. */
export function* dailyLines(input: BillInput): Generator<{ dayMs: number; line: BillLine }> {
  for (const projectSeries of byProjects(input.series)) {
    for (let dayMs = input.fromMs - (input.fromMs % DAY_MS); dayMs < input.toMs; dayMs += DAY_MS) {
      const day = { fromMs: Math.max(input.fromMs, dayMs), toMs: Math.min(input.toMs, dayMs + DAY_MS) };
      const price = input.priceAt(day.fromMs);
      for (const { cuSeconds, ...share } of sharesOf(projectSeries, day, input)) {
        const usd = price === undefined ? undefined : (cuSeconds / 3600) * price;
        yield { dayMs, line: { ...share, cuSeconds, usd: cuSeconds === 0 ? 0 : usd } };
      }
    }
  }
}

type Share = Omit<BillLine, 'usd'>;

/** Splits a project's usage of a day, or part of one, over the lines. */
function sharesOf({ project, branches }: ProjectSeries, day: Span, { lineOf, byProject }: BillInput): Share[] {
  const branchUsage = branches.map((branch) => ({ branch, ...sumOf(branch, day) }));
  const shares = branchUsage
    .filter(({ cuSeconds }) => cuSeconds > 0)
    .map(({ branch, cuSeconds }): Share => ({ name: lineOf(branch), cuSeconds, unknownHours: 0 }));
  const [first] = project === undefined ? branches : [project];
  if (first === undefined) return shares;
  const attributed = sum(branchUsage.map(({ cuSeconds }) => cuSeconds));
  const projectUsage = project === undefined ? undefined : sumOf(project, day);
  const unknownHours = projectUsage?.unknownHours ?? Math.max(...branchUsage.map((usage) => usage.unknownHours));
  const rest = projectUsage === undefined ? 0 : unattributedSeconds(projectUsage, attributed);
  if (rest === 0 && unknownHours === 0) return shares;
  const ownsRest = byProject || branches.length === 0;
  const name = ownsRest ? lineOf({ projectId: first.projectId, branchId: null }) : UNATTRIBUTED;
  return [...shares, { name, cuSeconds: rest, unknownHours }];
}

/** A project's usage beyond that of its branches. If its total is incomplete, the branches may have more. */
function unattributedSeconds(total: { cuSeconds: number; unknownHours: number }, attributed: number): number {
  const rest = total.cuSeconds - attributed;
  return total.unknownHours > 0 ? Math.max(0, rest) : rest;
}

/** The known CU-seconds of the buckets that begin in a span, and the hours without known buckets. */
function sumOf({ buckets }: UsageSeries, { fromMs, toMs }: Span): { cuSeconds: number; unknownHours: number } {
  let used = 0;
  let knownMs = 0;
  const first = firstIndex(buckets.length, (index) => (buckets[index]?.startMs ?? 0) >= fromMs);
  for (let index = first; index < buckets.length; index += 1) {
    const bucket = buckets[index];
    if (bucket === undefined || bucket.startMs >= toMs) break;
    if (bucket.cuSeconds === null) continue;
    used += bucket.cuSeconds;
    knownMs += bucket.seconds * 1000;
  }
  return { cuSeconds: used, unknownHours: Math.max(0, (toMs - fromMs - knownMs) / HOUR_MS) };
}

interface ProjectSeries {
  project: UsageSeries | undefined;
  branches: UsageSeries[];
}

/** Groups series by project, sorted by id: the last digit of a sum of dollars depends on the order, which differs between stores. */
function byProjects(series: readonly UsageSeries[]): ProjectSeries[] {
  const idOf = ({ projectId, branchId }: UsageSeries) => `${projectId} ${branchId ?? ''}`;
  const sorted = series.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
  return [...groupBy(sorted, ({ projectId }) => projectId).values()].map((ofProject) => ({
    project: ofProject.findLast(({ branchId }) => branchId === null),
    branches: ofProject.filter(({ branchId }) => branchId !== null),
  }));
}

function emptyLine(name: string): BillLine {
  return { name, cuSeconds: 0, usd: 0, unknownHours: 0 };
}

/** Adds a line to another one in place. */
export function addLine(total: BillLine, { cuSeconds, usd, unknownHours }: BillLine): void {
  total.cuSeconds += cuSeconds;
  total.unknownHours += unknownHours;
  total.usd = total.usd === undefined || usd === undefined ? undefined : total.usd + usd;
}

/** The US dollars of lines in whole cents, which sum to their total in whole cents. */
export function inCents(lines: readonly Pick<BillLine, 'usd'>[]): BillLine['usd'][] {
  const rounded = roundToSum(
    lines.map(({ usd = 0 }) => usd),
    2,
  );
  return lines.map(({ usd }, index) => (usd === undefined ? undefined : rounded[index]));
}

/** The usage of a project in a span that ends today, by day and line. */
export interface PastOfProject extends Span {
  lines: readonly BillLine[];
}

/**
 * The expected usage of a project in its unknown hours, by line: as much per hour as in its known hours. Names may repeat. It is computed for
 * each project, since unknown hours often belong to the few projects that are always awake. Empty without known hours.
 */
export function expectedInUnknown(unknownHours: number, { fromMs, toMs, lines }: PastOfProject): BillLine[] {
  const knownHours = (toMs - fromMs) / HOUR_MS - sum(lines.map((line) => line.unknownHours));
  if (unknownHours === 0 || !(knownHours > 0)) return [];
  const times = unknownHours / knownHours;
  return lines.map(({ name, cuSeconds, usd }) => ({
    name,
    cuSeconds: cuSeconds * times,
    usd: usd === undefined ? undefined : usd * times,
    unknownHours: 0,
  }));
}
