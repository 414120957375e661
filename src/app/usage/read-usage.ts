import {
  arrivedUntil,
  DAY_MS,
  HOUR_MS,
  joinDaysAndHours,
  knownBuckets,
  type LeastUsage,
  monthStart,
  type UsageAnswer,
} from '../../domain/usage/known.ts';
import { type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { ApiResult, ControlApi, UsageGranularity, UsagePages, UsageQuery } from '../../ports/control-api.ts';

/** How far back the control API knows usage. */
const HOURS_BACK = 168;
const DAYS_BACK = 60;
const MONTHS_BACK = 12;

const COMPUTE_METRIC = 'compute_unit_seconds';

/** Quantities that have no price here; routes for branches have none that matters. */
const OTHER_METRICS = [
  'root_branch_bytes_month',
  'child_branch_bytes_month',
  'instant_restore_bytes_month',
  'snapshot_storage_bytes_month',
  'extra_branches_month',
  'public_network_transfer_bytes',
  'private_network_transfer_bytes',
];

export interface OrganizationUsage {
  account: string;
  organization: string;
  /** Projects and, as far as they are known, branches. */
  series: UsageSeries[];
  /** The plan by the instant from which it counts, oldest first. */
  plans: readonly (readonly [fromMs: number, plan: string])[];
  /** The account's own figure of each month that has ended, CU-seconds by its start. */
  months: ReadonlyMap<number, number>;
  /** Other metrics of each day, summed over projects. */
  quantities: ReadonlyMap<number, Readonly<Record<string, number>>>;
  /** Why there are no branches. */
  branchesProblem?: string;
}

export interface ReadUsageOptions {
  api: Pick<ControlApi, 'usage'>;
  account: string;
  organization: string;
  /** Of which branches are asked for. */
  projectIds: readonly string[];
  nowMs: number;
  least?: LeastUsage;
  signal?: AbortSignal;
}

/**
 * Reads everything that the control API knows of an organization's usage: a week of hours, two months of days, a year of months.
 * An error of the routes for projects is that of the whole; without those for branches projects are known all the same.
 */
export async function readUsage(options: ReadUsageOptions): Promise<ApiResult<OrganizationUsage>> {
  const { account, organization, nowMs, least, projectIds } = options;
  const hourMs = nowMs - (nowMs % HOUR_MS);
  const dayMs = nowMs - (nowMs % DAY_MS);
  const hours = { granularity: 'hourly' as const, fromMs: hourMs - HOURS_BACK * HOUR_MS, toMs: hourMs };
  const days = { granularity: 'daily' as const, fromMs: dayMs - DAYS_BACK * DAY_MS, toMs: dayMs };
  const months = { granularity: 'monthly' as const, fromMs: monthStart(nowMs, -MONTHS_BACK), toMs: monthStart(nowMs) };
  const ask = (level: UsageQuery['level'], range: typeof hours | typeof days | typeof months, more: string[] = []) =>
    options.api.usage(
      { account, organization, level, projectIds, ...range, metrics: [COMPUTE_METRIC, ...more] },
      options.signal ? { signal: options.signal } : {},
    );
  const byHour = await ask('projects', hours);
  if (!byHour.ok) return byHour;
  const byDay = await ask('projects', days, OTHER_METRICS);
  if (!byDay.ok) return byDay;
  const byMonth = await ask('projects', months);
  if (!byMonth.ok) return byMonth;
  const ofBranches = { hours: await ask('branches', hours), days: await ask('branches', days) };
  const answers = { hours: answerOf(byHour.value, hours, 3600), days: answerOf(byDay.value, days, 86_400) };
  const arrivedUntilMs = Math.max(arrivedUntil(answers.hours), arrivedUntil(answers.days));
  const known = { nowMs, arrivedUntilMs, ...(least && { least }) };
  const series = joined(knownBuckets(answers.days, known), knownBuckets(answers.hours, known));
  const { hours: branchHours, days: branchDays } = ofBranches;
  if (branchHours.ok && branchDays.ok) {
    const [ofDays, ofHours] = [answerOf(branchDays.value, days, 86_400), answerOf(branchHours.value, hours, 3600)];
    series.push(...joined(knownBuckets(ofDays, known), knownBuckets(ofHours, known)));
  }
  const failed = [branchHours, branchDays].find((answer) => !answer.ok);
  return {
    ok: true,
    value: {
      ...{ account, organization, series },
      plans: [...byMonth.value.plans, ...byDay.value.plans, ...byHour.value.plans].sort(([a], [b]) => a - b),
      months: totalsOf(byMonth.value),
      quantities: quantitiesOf(byDay.value),
      ...(failed && !failed.ok && { branchesProblem: failed.error.message }),
    },
  };
}

function answerOf(
  { units }: UsagePages,
  { fromMs, toMs }: { granularity: UsageGranularity; fromMs: number; toMs: number },
  seconds: number,
): UsageAnswer {
  const values = (buckets: UsagePages['units'][number]['buckets']) =>
    new Map([...buckets].map(([startMs, metrics]) => [startMs, metrics[COMPUTE_METRIC] ?? 0]));
  return { seconds, fromMs, toMs, units: units.map((unit) => ({ ...unit, buckets: values(unit.buckets) })) };
}

function joined(days: readonly UsageSeries[], hours: readonly UsageSeries[]): UsageSeries[] {
  const daysOf = new Map(days.map((series) => [unitName(series), series]));
  const hoursOf = new Map(hours.map((series) => [unitName(series), series]));
  return [...new Map([...daysOf, ...hoursOf]).values()].map(({ projectId, branchId }) => {
    const name = unitName({ projectId, branchId });
    const buckets = joinDaysAndHours(daysOf.get(name)?.buckets ?? [], hoursOf.get(name)?.buckets ?? []);
    return { projectId, branchId, buckets };
  });
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
