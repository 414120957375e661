import { chunksOf } from '../../common/chunks.ts';
import { groupBy } from '../../domain/grouping.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import { arrivedUntil, knownBuckets, type UsageAnswer } from '../../domain/usage/known.ts';
import type { UsageLowerBound } from '../../domain/usage/lower-bound.ts';
import { monthStart, type PlanTimes } from '../../domain/usage/month.ts';
import { mergeUsage, noUsage, seriesOf, type UnitUsage } from '../../domain/usage/stored.ts';
import { type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { ApiResult, ControlApi, UsageGranularity, UsagePages, UsageQuery } from '../../ports/control-api.ts';
import { UNITS_AT_ONCE, type UsageMetadata, type UsageReader, unitNamed } from './usage-account.ts';

const COMPUTE_METRIC = 'compute_unit_seconds';

/** Further metrics of projects, for which ebb has no prices. */
const OTHER_METRICS = [
  'root_branch_bytes_month',
  'child_branch_bytes_month',
  'instant_restore_bytes_month',
  'snapshot_storage_bytes_month',
  'extra_branches_month',
  'public_network_transfer_bytes',
  'private_network_transfer_bytes',
];

export interface UsageRange {
  hours: number;
  days: number;
  months: number;
}

/**
 * All that the control API has: 168 hours, 60 days, a year, less one of each. It refuses to go back further (406), and the next hour, day
 * or month may begin before a request is sent.
 */
export const EVERYTHING: UsageRange = { hours: 167, days: 59, months: 11 };

export interface AskedUsage {
  /** The series of projects and, if they can be read, branches. */
  hours: UsageSeries[];
  days: UsageSeries[];
  /** The plans with the instants from which they apply, oldest first. */
  plans: PlanTimes;
  /** The vendor's figures of complete months, CU-seconds by the start of the month. */
  months: ReadonlyMap<number, number>;
  /** Other metrics of each day, summed over projects. */
  quantities: ReadonlyMap<number, Readonly<Record<string, number>>>;
  /** Why branches are missing. */
  branchesProblem?: string;
}

export interface OrganizationUsage extends Omit<AskedUsage, 'hours' | 'days'> {
  account: string;
  organization: string;
  /** Projects and branches: days, then hours. */
  series: UsageSeries[];
}

export interface ReadUsageOptions {
  api: Pick<ControlApi, 'usage'>;
  account: string;
  organization: string;
  /** The projects whose branches are asked for. */
  projectIds: readonly string[];
  nowMs: number;
  lowerBound?: UsageLowerBound | undefined;
  signal?: AbortSignal | undefined;
}

/** Asks for an organization's usage of complete hours, days and months. Fails only if the usage of projects can't be read. */
export async function askUsage(options: ReadUsageOptions, range: UsageRange): Promise<ApiResult<AskedUsage>> {
  const { nowMs, lowerBound } = options;
  const ranges = rangesOf(range, nowMs);
  const projects = await askLevel(options, 'projects', ranges);
  if (!projects.ok) return projects;
  const branches = await askLevel(options, 'branches', { ...ranges, months: undefined });
  const { hours, days, months } = projects.value;
  const arrivedUntilMs = Math.max(...[hours, days].map((answer) => arrivedUntil(toAnswer(answer))));
  const arrival = { nowMs, arrivedUntilMs, ...(lowerBound && { lowerBound }) };
  const levels = [projects.value, ...(branches.ok ? [branches.value] : [])];
  return {
    ok: true,
    value: {
      hours: levels.flatMap((level) => knownBuckets(toAnswer(level.hours), arrival)),
      days: levels.flatMap((level) => knownBuckets(toAnswer(level.days), arrival)),
      plans: mergedPlans(months.pages.plans, days.pages.plans, hours.pages.plans),
      months: totalsOf(months.pages),
      quantities: quantitiesOf(days.pages),
      ...(!branches.ok && { branchesProblem: branches.error.message }),
    },
  };
}

/** The plans of several readings, oldest first. The last reading of an instant counts. */
export function mergedPlans(...readings: Iterable<PlanTimes[number]>[]): UsageMetadata['plans'] {
  return [...new Map(readings.flatMap((plans) => [...plans]))].sort(([a], [b]) => a - b);
}

interface Range {
  granularity: UsageGranularity;
  fromMs: number;
  toMs: number;
}

/** Undefined ranges are not read. */
interface Ranges {
  hours: Range;
  days: Range | undefined;
  months: Range | undefined;
}

function rangesOf({ hours, days, months }: UsageRange, nowMs: number): Ranges {
  const hourMs = nowMs - (nowMs % HOUR_MS);
  const dayMs = nowMs - (nowMs % DAY_MS);
  return {
    hours: { granularity: 'hourly', fromMs: hourMs - hours * HOUR_MS, toMs: hourMs },
    days: days === 0 ? undefined : { granularity: 'daily', fromMs: dayMs - days * DAY_MS, toMs: dayMs },
    months:
      months === 0
        ? undefined
        : { granularity: 'monthly', fromMs: monthStart(nowMs, -months), toMs: monthStart(nowMs) },
  };
}

interface RangeAnswer {
  range: Range;
  pages: UsagePages;
}

async function askLevel(
  { api, account, organization, projectIds, signal }: ReadUsageOptions,
  level: UsageQuery['level'],
  ranges: Ranges,
): Promise<ApiResult<{ hours: RangeAnswer; days: RangeAnswer; months: RangeAnswer }>> {
  const answers: RangeAnswer[] = [];
  for (const range of [ranges.hours, ranges.days, ranges.months]) {
    if (range === undefined) {
      answers.push({ range: { granularity: 'daily', fromMs: 0, toMs: 0 }, pages: { units: [], plans: new Map() } });
      continue;
    }
    const metrics =
      level === 'projects' && range === ranges.days ? [COMPUTE_METRIC, ...OTHER_METRICS] : [COMPUTE_METRIC];
    const query = { account, organization, level, projectIds, metrics, ...range };
    const answer = await api.usage(query, signal ? { signal } : {});
    if (!answer.ok) return answer;
    answers.push({ range, pages: answer.value });
  }
  const [hours, days, months] = answers as [RangeAnswer, RangeAnswer, RangeAnswer];
  return { ok: true, value: { hours, days, months } };
}

function toAnswer({ range, pages: { units } }: RangeAnswer): UsageAnswer {
  const seconds = range.granularity === 'hourly' ? 3600 : 86_400;
  const values = (buckets: UsagePages['units'][number]['buckets']) =>
    new Map([...buckets].map(([startMs, metrics]) => [startMs, metrics[COMPUTE_METRIC] ?? 0]));
  const { fromMs, toMs } = range;
  return { seconds, fromMs, toMs, units: units.map((unit) => ({ ...unit, buckets: values(unit.buckets) })) };
}

function totalsOf({ units }: UsagePages): Map<number, number> {
  const totals = new Map<number, number>();
  for (const [startMs, metrics] of units.flatMap(({ buckets }) => [...buckets])) {
    totals.set(startMs, (totals.get(startMs) ?? 0) + (metrics[COMPUTE_METRIC] ?? 0));
  }
  return totals;
}

function quantitiesOf({ units }: UsagePages): Map<number, Record<string, number>> {
  const quantities = new Map<number, Record<string, number>>();
  for (const [startMs, metrics] of units.flatMap(({ buckets }) => [...buckets])) {
    const sums = quantities.get(startMs) ?? {};
    for (const name of OTHER_METRICS) {
      if (metrics[name] !== undefined) sums[name] = (sums[name] ?? 0) + metrics[name];
    }
    quantities.set(startMs, sums);
  }
  return quantities;
}

/* The stored usage of an organization, completed from the control API where it is outdated. */

/** Stored usage older than this is completed from the control API; in milliseconds. Daemons read usage each hour. */
const FRESH_MS = 2 * HOUR_MS;

/**
 * Reads an organization's usage: stored usage, which goes back further than the control API's, and newer usage from the control API unless
 * the stored usage is recent. Fails only if the control API does and nothing is stored.
 */
export async function readKnownUsage(
  stored: UsageReader | undefined,
  options: ReadUsageOptions,
): Promise<ApiResult<OrganizationUsage>> {
  const metadata = await stored?.metadata();
  const usage = stored && metadata ? await readUnits(stored) : new Map<string, UnitUsage>();
  if (metadata && metadata.hourMs > options.nowMs - FRESH_MS)
    return { ok: true, value: usageOf(options, metadata, usage) };
  const answer = await askUsage(options, EVERYTHING);
  if (!answer.ok) return metadata ? { ok: true, value: usageOf(options, metadata, usage) } : answer;
  const { hours, days, ...others } = answer.value;
  for (const [name, series] of groupBy([...days, ...hours], unitName)) {
    const before = usage.get(name) ?? noUsage(unitNamed(name));
    usage.set(name, mergeUsage(before, { buckets: series.flatMap(({ buckets }) => buckets) }).usage);
  }
  const plans = mergedPlans(metadata?.plans ?? [], others.plans);
  const months = new Map([...(metadata?.months ?? []), ...others.months]);
  const quantities = new Map([...(metadata?.quantities ?? []), ...others.quantities]);
  const { account, organization } = options;
  return { ok: true, value: { account, organization, ...others, plans, months, quantities, series: seriesIn(usage) } };
}

function usageOf(
  { account, organization }: ReadUsageOptions,
  { plans, months, quantities }: UsageMetadata,
  usage: ReadonlyMap<string, UnitUsage>,
): OrganizationUsage {
  const series = seriesIn(usage);
  return { account, organization, plans, months: new Map(months), quantities: new Map(quantities), series };
}

async function readUnits(stored: UsageReader): Promise<Map<string, UnitUsage>> {
  const units = await stored.units();
  const usage = new Map<string, UnitUsage>();
  for (const chunk of chunksOf(units, UNITS_AT_ONCE)) {
    for (const one of await stored.read(chunk)) usage.set(unitName(one), one);
  }
  return usage;
}

function seriesIn(usage: ReadonlyMap<string, UnitUsage>): UsageSeries[] {
  return [...usage.values()].map(seriesOf);
}
