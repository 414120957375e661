import { pastOfComputes } from '../../app/recommend/facts.ts';
import { type UsageSources, usageOfFew } from '../../app/situation/fleet-usage.ts';
import type { ForecastStart } from '../../app/situation/read-situation.ts';
import { OPERATION_DAYS } from '../../app/usage/kept-operations.ts';
import { organizationsOf } from '../../app/usage/usage-account.ts';
import type { Result } from '../../common/result.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { knownHours, MIN_HOURS, type UsageProfile, usageProfile } from '../../domain/forecast/expected.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { type UsageBucket, type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { Settings } from '../../settings/settings.ts';
import { writeErrLine } from '../output.ts';
import { readOperationsFile } from '../past/operations-file.ts';
import { countInUnit, readUsageCsv } from '../usage/usage-csv.ts';

export interface UsageHistory {
  /** The compute's usage by hour of the week. */
  profile?: UsageProfile;
  /** The last weeks by the hour, oldest first. */
  hours?: readonly UsageBucket[];
  /** When the compute was awake; absent if its operations were not read. */
  history?: AwakeHistory;
}

/** By compute id; computes without usage and operations are left out. */
export type UsageHistories = ReadonlyMap<string, UsageHistory>;

/** Savings look back as far as findings do. */
export const SAVING_DAYS = OPERATION_DAYS;

/** Opens the usage that daemons have collected, and the control API. */
export type OpenSources = () => Promise<Result<UsageSources>>;

export interface UsageHistoryOptions {
  settings: Settings;
  usageFile: string | undefined;
  /** operations.csv: when computes were awake. */
  operationsFile?: string | undefined;
  fleetFile: string | undefined;
  /** When the fleet file was taken, milliseconds since the epoch. */
  takenAtMs?: number | undefined;
  computes: readonly Compute[];
  projects: ForecastStart['projects'];
  nowMs: number;
  open: OpenSources;
  /** The control API is not asked if there are more projects. */
  mostProjectsAsked: number;
}

/**
 * Reads usage from a file, from the data of daemons, or from the control API. Without any of them the result is empty, and notes on
 * standard error say why.
 */
export async function readUsageHistories(options: UsageHistoryOptions): Promise<UsageHistories> {
  const usages = await readUsages(options);
  const { operationsFile } = options;
  return operationsFile === undefined ? usages : withOperations(usages, operationsFile, options);
}

async function withOperations(
  usages: UsageHistories,
  operationsFile: string,
  { takenAtMs = 0, computes }: Pick<UsageHistoryOptions, 'takenAtMs' | 'computes'>,
): Promise<UsageHistories> {
  const log = await readOperationsFile(operationsFile);
  const toMs = Math.max(log.newestMs ?? 0, takenAtMs);
  const histories = historiesOf(computes, { log, toMs });
  return new Map(
    [...new Set([...usages.keys(), ...histories.keys()])].map((computeId) => {
      const history = histories.get(computeId);
      return [computeId, { ...usages.get(computeId), ...(history && { history }) }];
    }),
  );
}

/** When computes were awake in the last {@link SAVING_DAYS}; computes without operations in the log are left out. */
export function historiesOf(
  computes: readonly Compute[],
  { log, toMs, storedAtMs }: Pick<Parameters<typeof pastOfComputes>[0], 'log' | 'toMs' | 'storedAtMs'>,
): Map<string, AwakeHistory> {
  const read = new Set(log.projects.filter(({ fromMs }) => fromMs !== undefined).map(({ projectId }) => projectId));
  const known = computes.filter(({ projectId }) => read.has(projectId));
  const input = { computes: known, log, usage: [], fromMs: toMs - SAVING_DAYS * DAY_MS, toMs, pricing: () => ({}) };
  const past = pastOfComputes({ ...input, ...(storedAtMs && { storedAtMs }) });
  return new Map(past.map(({ compute, readHistory }) => [compute.computeId, readHistory()]));
}

async function readUsages(options: UsageHistoryOptions): Promise<UsageHistories> {
  const { usageFile, fleetFile, computes } = options;
  if (usageFile !== undefined) {
    const countOf = countInUnit(computes);
    const series = await readUsageCsv(usageFile, (unit) => countOf(unit) || undefined);
    return usagesOrNotes(computes, series, { from: usageFile, missing: [] });
  }
  if (fleetFile !== undefined) return new Map();
  const { settings, projects, nowMs, open, mostProjectsAsked } = options;
  if (organizationsOf(projects, settings.accounts).length === 0) return new Map();
  const sources = await open();
  const { series, missing } = sources.ok
    ? await usageOfFew(sources.value, { projects, nowMs, mostProjectsAsked })
    : { series: [], missing: [sources.problem] };
  return usagesOrNotes(computes, series, { from: 'usage', missing });
}

/** Returns the usages. If there are none, notes on standard error say why. */
function usagesOrNotes(
  computes: readonly Compute[],
  series: readonly UsageSeries[],
  { from, missing }: { from: string; missing: readonly string[] },
): UsageHistories {
  const usages = usagesOf(computes, series);
  if (usages.size > 0) return usages;
  const isRead = series.length > 0 || missing.length === 0;
  for (const line of [...missing, ...(isRead ? [`${from}: ${whyNothing(computes, series)}`] : [])]) {
    writeErrLine(`note: ${line}`);
  }
  return usages;
}

/** The usage of computes that are alone in a branch or project: usage is only known by branch and project. */
function usagesOf(computes: readonly Compute[], series: readonly UsageSeries[]): UsageHistories {
  return new Map(
    bucketsOf(computes, series).own.flatMap(({ computeId, buckets }) => {
      const profile = usageProfile(buckets);
      return profile ? [[computeId, { profile, hours: buckets }] as const] : [];
    }),
  );
}

/** `own`: the usage of each compute that is alone in its unit. `sharing`: how many computes share a unit that has usage. */
function bucketsOf(computes: readonly Compute[], series: readonly UsageSeries[]) {
  const buckets = new Map(series.map((one) => [unitName(one), one.buckets]));
  const counts = new Map<string, number>();
  for (const unit of computes.flatMap(unitsOf)) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  const own = computes.flatMap((compute) => {
    const unit = unitsOf(compute).find((name) => buckets.has(name) && counts.get(name) === 1);
    return unit === undefined ? [] : [{ computeId: compute.computeId, buckets: buckets.get(unit) ?? [] }];
  });
  const measured = computes.filter((compute) => unitsOf(compute).some((name) => buckets.has(name)));
  return { own, sharing: measured.length - own.length };
}

function unitsOf({ projectId, branchId }: Compute): string[] {
  return [unitName({ projectId, branchId }), unitName({ projectId, branchId: null })];
}

function whyNothing(computes: readonly Compute[], series: readonly UsageSeries[]): string {
  const { own, sharing } = bucketsOf(computes, series);
  const most = own.reduce((hours, { buckets }) => Math.max(hours, knownHours(buckets).length), 0);
  const short = `no compute has the ${MIN_HOURS} known hours that are needed; the most is ${most}`;
  const shared = `${sharing} computes share a branch or project, so their usage can't be told apart`;
  const why = [...(own.length > 0 ? [short] : []), ...(sharing > 0 ? [shared] : [])];
  return why.join('; ') || 'it has no usage of these computes';
}
