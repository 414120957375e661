import type { AskedPostgres } from '../../domain/awake/clients.ts';
import { dailyUse } from '../../domain/awake/daily-use.ts';
import { awakeShare } from '../../domain/awake/intervals.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan, Prices } from '../../domain/compute/cost.ts';
import { type Estimate, mapEstimate } from '../../domain/estimate.ts';
import { groupBy } from '../../domain/grouping.ts';
import { changesIn, type Finding } from '../../domain/recommend/finding.ts';
import { expectedSaving } from '../../domain/recommend/recommend.ts';
import { ascending } from '../../domain/sorted.ts';
import { sum } from '../../domain/sum.ts';
import { type Projection, projectMonth } from '../../domain/usage/projection.ts';
import { FREE_CU_HOURS, type RunsOut, runsOut } from '../../domain/usage/runs-out.ts';
import type { Project, ProjectPeriod } from '../../ports/control-api.ts';
import type { PastCompute } from './facts.ts';

/** The usage of a project in its billing period. */
export interface ProjectReport {
  projectId: string;
  name: string;
  period: ProjectPeriod;
  /** The CU-hours that the plan includes; absent unless the plan is the free one. */
  includedCuHours?: number;
  /** US dollars so far; absent if the plan is free or unknown. */
  usd?: number;
  /** The usage at the end of the period; absent if less than a week of days is known. */
  projected?: Projection;
  /** `projected` in US dollars; absent if the plan is free or unknown. */
  projectedUsd?: Estimate;
  runsOut?: RunsOut;
}

/** Returns true if the project has used up what its plan includes, or probably will. */
export function willRunOut({ runsOut: out }: Pick<ProjectReport, 'runsOut'>): boolean {
  return out?.midMs !== undefined;
}

/** The best finding of a compute. */
export interface ComputeReport {
  compute: Compute;
  /** The change of settings that saves most. */
  setting?: Finding;
  /** If there is no such change: a finding that settings can't mend. */
  cause?: Finding;
  /** True if the compute has not fallen asleep in its known history. */
  neverSlept: boolean;
  /** The share of the known time in which the compute was awake, 0 to 1; absent if no time is known. */
  awakeShare?: number;
  past: PastCompute & { asked?: AskedPostgres };
}

export interface PeriodReport {
  atMs: number;
  /** First those that run out, soonest first; then by use. */
  projects: ProjectReport[];
  /** Largest savings first. */
  computes: ComputeReport[];
  /** The price on Launch of this period's compute, in US dollars, for the organizations whose free projects run out. */
  onLaunch?: { organizations: number; projects: number; usd: number };
  /** One line for each part that could not be read. */
  missing: string[];
}

export function periodReport(input: {
  atMs: number;
  projects: readonly Project[];
  periods: ReadonlyMap<string, ProjectPeriod>;
  past: readonly PastCompute[];
  findings: readonly Finding[];
  prices: Prices;
  /** The plan in the settings; it takes precedence over the plan that the control API shows. */
  planOf(account: string): AccountPlan | undefined;
  missing: string[];
}): PeriodReport {
  const { atMs, projects, periods, past, findings, prices, planOf, missing } = input;
  const pastByProject = groupBy(past, ({ compute }) => compute.projectId);
  const reports = projects.flatMap((project) => {
    const found = periods.get(project.projectId);
    if (!found) return [];
    const plan = planOf(project.account) ?? found.plan;
    const period = plan === undefined ? found : { ...found, plan };
    return [projectReport(project, { period, past: pastByProject.get(project.projectId) ?? [], prices, atMs })];
  });
  const findingsByCompute = groupBy(findings, ({ compute }) => compute.computeId);
  const priceOnLaunch = onLaunch(projects, reports, prices);
  const computes = past.map((one) => computeReport(one, findingsByCompute.get(one.compute.computeId) ?? []));
  return {
    atMs,
    projects: reports.sort((a, b) => runsOutFirst(a, b) || b.period.cuHours - a.period.cuHours),
    computes: computes.sort((a, b) => savedBy(b) - savedBy(a)),
    ...(priceOnLaunch && { onLaunch: priceOnLaunch }),
    missing,
  };
}

/**
 * Returns what all projects of the organizations with a project that runs out would cost on Launch. Returns undefined if no project runs out, or
 * the projection of one of these projects is unknown.
 */
function onLaunch(
  projects: readonly Project[],
  reports: readonly ProjectReport[],
  { launch }: Prices,
): PeriodReport['onLaunch'] {
  const reportOf = new Map(reports.map((one) => [one.projectId, one]));
  const organizationOf = ({ account, organizationId }: Project) => `${account} ${organizationId}`;
  const isRunningOut = ({ projectId }: Project) => willRunOut(reportOf.get(projectId) ?? {});
  const organizations = new Set(projects.filter(isRunningOut).map(organizationOf));
  const concerned = projects.filter((project) => organizations.has(organizationOf(project)));
  const cuHours = sum(concerned.map(({ projectId }) => reportOf.get(projectId)?.projected?.mid ?? Number.NaN));
  if (concerned.length === 0 || !Number.isFinite(cuHours)) return undefined;
  return { organizations: organizations.size, projects: concerned.length, usd: cuHours * launch };
}

function projectReport(
  { projectId, name }: Project,
  input: { period: ProjectPeriod; past: readonly PastCompute[]; prices: Prices; atMs: number },
): ProjectReport {
  const { period, past, prices, atMs } = input;
  const month = { fromMs: period.fromMs, toMs: period.toMs, untilMs: Math.min(atMs, period.toMs) };
  const computes = past.map(({ readHistory, ...rest }) => ({ ...rest, history: readHistory() }));
  const days = dailyUse(computes, { ...month, cuHours: period.cuHours });
  const spent = period.cuHours;
  const projected = projectMonth(days, { month, spent, unknown: 0 });
  const included = period.plan === 'free' ? FREE_CU_HOURS : undefined;
  const price = period.plan && period.plan !== 'free' ? prices[period.plan] : undefined;
  const out = included === undefined ? undefined : runsOut(days, { month, spent, limit: included });
  return {
    projectId,
    name,
    period,
    ...(included !== undefined && { includedCuHours: included }),
    ...(price !== undefined && { usd: spent * price }),
    ...(projected && { projected }),
    ...(projected && price !== undefined && { projectedUsd: mapEstimate(projected, (cuHours) => cuHours * price) }),
    ...(out && { runsOut: out }),
  };
}

function computeReport(past: PastCompute, findings: readonly Finding[]): ComputeReport {
  const { compute, readHistory } = past;
  const setting = findings.find((one) => one.policy && changesIn(one).length > 0 && one.savesCuHours.high > 0);
  const cause = findings.find((one) => !one.policy);
  const history = readHistory();
  const { intervals } = history;
  const neverSlept = intervals.length > 0 && intervals.every(({ end }) => end === 'open');
  const share = awakeShare(history);
  const report = { compute, neverSlept, past, ...(share !== undefined && { awakeShare: share }) };
  return { ...report, ...(setting ? { setting } : cause && { cause }) };
}

/** The value to sort computes by: the saving of their setting. Those without a setting come last. */
function savedBy({ setting }: ComputeReport): number {
  return setting ? Math.max(Number.MIN_VALUE, expectedSaving(setting)) : 0;
}

function runsOutFirst(one: ProjectReport, other: ProjectReport): number {
  const runsOutMs = ({ runsOut: out }: ProjectReport) => out?.midMs ?? Number.POSITIVE_INFINITY;
  return runsOutMs(one) === runsOutMs(other) ? 0 : ascending(runsOutMs(one), runsOutMs(other));
}
