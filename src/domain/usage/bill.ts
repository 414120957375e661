/** The compute cost of a month, by owner or project. */
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { UsageSeries, UsageUnit } from './usage.ts';

export interface BillLine {
  name: string;
  /** Known CU-seconds. */
  cuSeconds: number;
  /** Their price in US dollars; undefined if the price of some is unknown. */
  usd: number | undefined;
  /** Hours of a project of which nothing is known; they are in no sum. */
  unknownHours: number;
}

export interface Bill {
  /** Most CU-seconds first. */
  lines: BillLine[];
  total: BillLine;
}

/** The line for a project's usage beyond its branches, unless lines are projects. */
export const UNATTRIBUTED = 'unattributed';

export interface BillInput {
  /** The series of one account: its projects and, as far as known, their branches. */
  series: readonly UsageSeries[];
  /** Buckets that begin in [fromMs, toMs) count. Milliseconds since the epoch, whole hours. */
  fromMs: number;
  toMs: number;
  /** The line of a unit; `byProject`: lines are projects. */
  lineOf: (unit: UsageUnit) => string;
  byProject: boolean;
  /** US dollars for a CU-hour at an instant; undefined without a price. */
  priceAt: (startMs: number) => number | undefined;
}

/**
 * Adds up the known usage, day by day: a project's own figure counts, its branches share it among their lines, and the rest is
 * unattributed. Lines sum to the total. An hour with an unknown project figure is unknown.
 */
export function billOf(input: BillInput): Bill {
  const lines = new Map<string, BillLine>();
  for (const { line: share } of dailyLines(input)) {
    const line = lines.get(share.name) ?? emptyLine(share.name);
    lines.set(share.name, line);
    addLine(line, share);
  }
  const sorted = [...lines.values()].sort((a, b) => b.cuSeconds - a.cuSeconds || (a.name < b.name ? -1 : 1));
  const total = emptyLine('total');
  for (const line of sorted) addLine(total, line);
  return { lines: sorted, total };
}

/** The additions of each day, or part of one, to the lines. `dayMs`: the start of the day in UTC. */
export function* dailyLines(input: BillInput): Generator<{ dayMs: number; line: BillLine }> {
  for (const ofProject of byProjects(input.series)) {
    for (let dayMs = input.fromMs - (input.fromMs % DAY_MS); dayMs < input.toMs; dayMs += DAY_MS) {
      const day = { fromMs: Math.max(input.fromMs, dayMs), toMs: Math.min(input.toMs, dayMs + DAY_MS) };
      const price = input.priceAt(day.fromMs);
      for (const { cuSeconds, ...share } of sharesOf(ofProject, day, input)) {
        const usd = price === undefined ? undefined : (cuSeconds / 3600) * price;
        yield { dayMs, line: { ...share, cuSeconds, usd: cuSeconds === 0 ? 0 : usd } };
      }
    }
  }
}

interface Share {
  name: string;
  cuSeconds: number;
  unknownHours: number;
}

/** Splits a part of a day over the lines. */
function sharesOf(
  { project, branches }: ProjectSeries,
  day: { fromMs: number; toMs: number },
  { lineOf, byProject }: BillInput,
): Share[] {
  const used = branches.map((branch) => ({ branch, ...sumOf(branch, day) }));
  const shares = used
    .filter(({ cuSeconds }) => cuSeconds > 0)
    .map(({ branch, cuSeconds }): Share => ({ name: lineOf(branch), cuSeconds, unknownHours: 0 }));
  const [first] = project === undefined ? branches : [project];
  if (first === undefined) return shares;
  const attributed = used.reduce((sum, { cuSeconds }) => sum + cuSeconds, 0);
  const whole = project === undefined ? undefined : sumOf(project, day);
  const unknownHours = whole?.unknownHours ?? Math.max(...used.map((one) => one.unknownHours));
  const rest = whole === undefined ? 0 : restOf(whole, attributed);
  if (rest === 0 && unknownHours === 0) return shares;
  const isWhole = byProject || branches.length === 0;
  const name = isWhole ? lineOf({ projectId: first.projectId, branchId: null }) : UNATTRIBUTED;
  return [...shares, { name, cuSeconds: rest, unknownHours }];
}

/** A project's usage beyond its branches. Where it is incomplete, its branches may show more than it does. */
function restOf(whole: { cuSeconds: number; unknownHours: number }, attributed: number): number {
  const rest = whole.cuSeconds - attributed;
  return whole.unknownHours > 0 ? Math.max(0, rest) : rest;
}

/** Known CU-seconds of the buckets that begin in a span, and how many of its hours no known bucket covers. */
function sumOf(
  { buckets }: UsageSeries,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): { cuSeconds: number; unknownHours: number } {
  let sum = 0;
  let knownMs = 0;
  for (let index = firstFrom(buckets, fromMs); index < buckets.length; index += 1) {
    const bucket = buckets[index];
    if (bucket === undefined || bucket.startMs >= toMs) break;
    if (bucket.cuSeconds === null) continue;
    sum += bucket.cuSeconds;
    knownMs += bucket.seconds * 1000;
  }
  return { cuSeconds: sum, unknownHours: Math.max(0, (toMs - fromMs - knownMs) / HOUR_MS) };
}

/** The place of the first bucket at or after an instant. */
function firstFrom(buckets: UsageSeries['buckets'], ms: number): number {
  let [low, high] = [0, buckets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((buckets[middle]?.startMs ?? 0) < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface ProjectSeries {
  project?: UsageSeries;
  branches: UsageSeries[];
}

/** In the order of ids: a sum of dollars depends on the order of its parts in its last digit, and stores and files have orders of their own. */
function byProjects(series: readonly UsageSeries[]): Iterable<ProjectSeries> {
  const projects = new Map<string, ProjectSeries>();
  const idOf = ({ projectId, branchId }: UsageSeries) => `${projectId} ${branchId ?? ''}`;
  for (const one of series.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))) {
    const known = projects.get(one.projectId) ?? { branches: [] };
    projects.set(one.projectId, known);
    if (one.branchId === null) known.project = one;
    else known.branches.push(one);
  }
  return projects.values();
}

function emptyLine(name: string): BillLine {
  return { name, cuSeconds: 0, usd: 0, unknownHours: 0 };
}

/** Adds a line to another, such as the total. */
export function addLine(sum: BillLine, { cuSeconds, usd, unknownHours }: BillLine): void {
  sum.cuSeconds += cuSeconds;
  sum.unknownHours += unknownHours;
  sum.usd = sum.usd === undefined || usd === undefined ? undefined : sum.usd + usd;
}
