import pLimit from 'p-limit';
import { createOperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import { type Estimate, sumEstimates, ZERO } from '../../domain/estimate.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { backgroundRequests } from '../../domain/rate-budget/limits.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import type { HolidaysOf } from '../../domain/recommend/windows.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, ControlApi, ControlApiError, Project } from '../../ports/control-api.ts';
import type { MetricLabels } from '../../ports/metrics.ts';
import type { Store, UsageStore } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { FindingDocument } from '../../ports/waste.ts';
import { oneAtATime, type RunInBackground, type Running, StoppedError } from '../background.ts';
import { isHerdNear } from '../fleet/at-boundary.ts';
import { type Branches, readBranches, refusesBranches, withBranches } from '../fleet/branches.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { addOperations } from '../fleet/read-operations.ts';
import type { Overrides } from '../overrides.ts';
import { OPERATIONS_KEY } from '../readings/reading.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';
import type { StoreLosses } from '../shared-documents.ts';
import {
  deleteOldOperations,
  OPERATION_DAYS,
  readPlan,
  storeOperations,
  storePlan,
  updateOperations,
} from '../usage/kept-operations.ts';
import { storedUsageOf } from '../usage/usage-account.ts';
import { pastOfComputes, recommendFacts } from './facts.ts';
import { FINDINGS, findingDocument, type ProjectFindings, storeFindings } from './finding-document.ts';

/** Each project is analysed once a day, or an hour after it could not be read; in milliseconds. */
const ANALYSE_EVERY_MS = DAY_MS;
const RETRY_AFTER_MS = HOUR_MS;

/** Findings of a project that is no longer listed are dropped at this age, in milliseconds. */
const FORGET_AFTER_MS = 3 * ANALYSE_EVERY_MS;

/** Limits the memory that is used: it has the operations of four weeks of each project in progress. */
const CONCURRENT_PROJECTS = 4;

/** Requests for each project: usually one page of operations, and the branches. */
const REQUESTS_PER_PROJECT = 2;

export interface WasteRoundsDeps {
  api: Pick<ControlApi, 'operationsFrom' | 'listBranches' | 'projectPeriod'>;
  store: Store;
  storeWatch: StoreLosses;
  clock: Clock;
  fleet: Pick<Fleet, 'cachedProjects' | 'listed' | 'evaluatedComputes' | 'boundaryReconciles'>;
  overrides: Pick<Overrides, 'holds'>;
  rules: CurrentRules;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
  runInBackground: RunInBackground;
  holidaysOf: HolidaysOf;
  /** Interval between searches for due projects, in real milliseconds. */
  rhythm: { wasteMs: number };
}

interface ProjectState {
  /** When the project is analysed next, milliseconds since the epoch. */
  dueMs: number;
  totals: readonly Total[];
}

/**
 * The leader computes and stores the findings of each project once a day. It reads in the background's share of the rate limit, and wakes no
 * compute. No decision depends on it.
 */
export function startWasteRounds(deps: WasteRoundsDeps): Running {
  const { clock, leaderLease, runInBackground, store, telemetry, rhythm } = deps;
  const stop = new AbortController();
  /** Undefined while another daemon leads. */
  let states: Map<string, ProjectState> | undefined;
  const plans: ReadPlans = new Map();

  async function round(): Promise<void> {
    if (!leaderLease.isHeld()) {
      if (states) clearWasteMetrics(telemetry);
      states = undefined;
      return;
    }
    states ??= await readStates(deps);
    const current = states;
    const errors: ControlApiError[] = [];
    await pLimit(CONCURRENT_PROJECTS).map(dueProjects(deps, current), async (cached) => {
      if (stop.signal.aborted || !leaderLease.isHeld()) return;
      if (isHerdNear(deps, clock.now(), cached.project.account)) return;
      const error = await refreshFindings({ ...deps, plans, signal: stop.signal }, cached, current);
      if (error) errors.push(error);
    });
    if (stop.signal.aborted) return;
    const totals = [...current.values()].flatMap((state) => state.totals);
    exportWasteMetrics(telemetry, totals);
    const [first] = errors;
    if (first) throw new Error(`findings of ${errors.length} projects: ${first.message}`);
  }

  // After a loss of the store all projects are analysed again: otherwise their findings would be missing for up to a day. Metrics keep the totals.
  deps.storeWatch.onLoss(async () => {
    for (const state of states?.values() ?? []) state.dueMs = 0;
  });

  // A round over a large fleet takes longer than the interval.
  const check = oneAtATime(() => runInBackground('waste', round));
  const rounds = clock.every(rhythm.wasteMs, check.run);
  return {
    async close() {
      stop.abort(new StoppedError());
      await rounds.close();
      await check.ended();
    },
  };

  /** Loads stored findings, and deletes those of projects that are gone. */
  async function readStates({ fleet }: WasteRoundsDeps): Promise<Map<string, ProjectState>> {
    const stored = await FINDINGS.all(store);
    const isGone = (projectId: string, atMs: number) =>
      fleet.listed(projectId) === undefined && atMs < clock.now() - FORGET_AFTER_MS;
    await deleteOldOperations(store, isGone);
    const gone = [...stored].filter(([projectId, { atMs }]) => isGone(projectId, atMs)).map(([projectId]) => projectId);
    await FINDINGS.delete(store, gone);
    for (const projectId of gone) stored.delete(projectId);
    const withOperations = new Set(await store.usageUnits(OPERATIONS_KEY));
    return new Map(
      [...stored].map(([projectId, one]) => {
        const dueMs = withOperations.has(projectId) ? one.atMs + ANALYSE_EVERY_MS : 0;
        return [projectId, { dueMs, totals: totalsOf(one) }];
      }),
    );
  }
}

/**
 * Returns the due projects that have computes: first those that were never analysed, then the others by due time. Of each account it returns at
 * most as many as can be read until the next round with the background's share of the rate limit.
 */
function dueProjects(
  { fleet, clock, rhythm }: WasteRoundsDeps,
  states: ReadonlyMap<string, ProjectState>,
): CachedProject[] {
  const maxProjects = Math.ceil(backgroundRequests(rhythm.wasteMs) / REQUESTS_PER_PROJECT);
  const dueMs = ({ project }: CachedProject) => states.get(project.projectId)?.dueMs ?? 0;
  const due = [...fleet.cachedProjects()]
    .filter((cached) => cached.computes.length > 0 && dueMs(cached) <= clock.now())
    .sort((a, b) => dueMs(a) - dueMs(b));
  const counts = new Map<string, number>();
  return due.filter(({ project: { account } }) => {
    const count = (counts.get(account) ?? 0) + 1;
    counts.set(account, count);
    return count <= maxProjects;
  });
}

async function refreshFindings(
  deps: WasteRoundsDeps & { plans: ReadPlans; signal: AbortSignal },
  { project, computes }: CachedProject,
  states: Map<string, ProjectState>,
): Promise<ControlApiError | undefined> {
  const { clock, store, rules, overrides, signal } = deps;
  const nowMs = clock.now();
  const findings = await findInProject({
    ...deps,
    project,
    computes,
    nowMs,
    rules: rules.current,
    holds: overrides.holds,
    monotonicMs: () => clock.monotonicMs(),
  });
  if (signal.aborted) return undefined;
  const { projectId, account } = project;
  if (!findings.ok) {
    states.set(projectId, { totals: [], ...states.get(projectId), dueMs: nowMs + RETRY_AFTER_MS });
    return findings.error.code === 'not_found' ? undefined : findings.error;
  }
  const projectFindings = { account, atMs: nowMs, findings: findings.value };
  await storeFindings(store, projectId, projectFindings);
  states.set(projectId, { dueMs: nowMs + ANALYSE_EVERY_MS, totals: totalsOf(projectFindings) });
  return undefined;
}

/** Plans that were read from the control API, by account. */
type ReadPlans = Map<string, { atMs: number; plan: AccountPlan | undefined }>;

interface FindInProjectOptions {
  api: WasteRoundsDeps['api'];
  store: UsageStore & Pick<Store, 'records'>;
  project: Project;
  computes: readonly Compute[];
  rules: CompiledRules;
  holds: readonly Hold[];
  holidaysOf: HolidaysOf;
  nowMs: number;
  plans: ReadPlans;
  signal: AbortSignal;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs: () => number;
}

/** Finds savings in one project, from its operations and its stored usage. The operations are read from Neon, and stored for commands. */
async function findInProject(options: FindInProjectOptions): Promise<ApiResult<FindingDocument[]>> {
  const { project, rules, holds, holidaysOf, nowMs, signal, store } = options;
  const { projectId } = project;
  const fromMs = nowMs - OPERATION_DAYS * DAY_MS;
  const read = await updateOperations({ ...options, computes: options.computes.length });
  if (!read.ok) return read;
  const log = createOperationLog();
  addOperations(log.project(projectId), read.value.operations);
  if (read.value.end === 'complete') log.project(projectId).coverFrom(fromMs);
  const withNames = await withBranchNames(options);
  if (!withNames.ok) return withNames;
  const { computes, branches } = withNames.value;
  if (!signal.aborted) await storeOperations(store, projectId, { ...read.value, ...(branches && { branches }) });
  const stored = await storedUsageOf(store, project, options.computes);
  const { plans, prices, owners, coldStartWorthMs } = rules.costs;
  const plan = plans.get(project.account) ?? stored.plan ?? (await planOf(options));
  const pricing = () => (plan === undefined ? {} : { plan, price: prices[plan] });
  const past = pastOfComputes({ computes, log, usage: stored.usage, fromMs, toMs: nowMs, pricing });
  const profileOf = (account: string) => {
    const profile = rules.profiles.get(account);
    if (!profile) throw new Error(`no profile of account ${account}`);
    return profile;
  };
  const records = await store.records(projectId);
  const recordOf = (computeId: string) => records.get(computeId);
  const facts = recommendFacts(past, {
    owners,
    coldStartWorthMs,
    policies: rules.policies,
    holds,
    profileOf,
    recordOf,
  });
  return { ok: true, value: recommend(facts, { holidaysOf }).map(findingDocument) };
}

/** Adds the names of branches, which tell previews apart, unless the key may not list branches. */
async function withBranchNames({
  api,
  project,
  computes,
  signal,
}: FindInProjectOptions): Promise<ApiResult<{ computes: readonly Compute[]; branches?: Branches | 'refused' }>> {
  if (computes.every(({ branchName }) => branchName !== undefined)) return { ok: true, value: { computes } };
  const read = await readBranches(api, project.projectId, { priority: 'background', signal });
  if (read.ok) return { ok: true, value: { computes: withBranches(computes, read.value), branches: read.value } };
  return refusesBranches(read.error) ? { ok: true, value: { computes, branches: 'refused' } } : read;
}

/** Reads an account's plan from one of its projects, at most once a day, and stores it for commands. */
async function planOf({
  api,
  store,
  project,
  plans,
  nowMs,
  signal,
}: FindInProjectOptions): Promise<AccountPlan | undefined> {
  const { account } = project;
  const earlier = plans.get(account);
  if (earlier && nowMs - earlier.atMs < DAY_MS) return earlier.plan;
  const read = await api.projectPeriod(project, { priority: 'background', signal });
  const plan = read.ok ? read.value.plan : await readPlan(store, account);
  if (read.ok && plan) await storePlan(store, account, plan);
  plans.set(account, { atMs: nowMs, plan });
  return plan;
}

/* Metrics of the monthly savings of findings. Only the leader exports them. */

type Labels = Omit<MetricLabels<'ebb_waste_month_cu_hours'>, 'bound'>;

interface Total {
  labels: Labels;
  cuHours: Estimate;
  /** The sum over findings with a price; undefined if none has one. */
  usd: Estimate | undefined;
}

/** Sums a project's findings by owner, kind of finding and figure. */
function totalsOf({ account, findings }: ProjectFindings): readonly Total[] {
  return sumOf(
    findings.map(({ owner, finding, figure, saves }) => ({
      labels: { account, owner, finding, figure },
      cuHours: saves.cu_hours_month,
      usd: saves.usd_month ?? undefined,
    })),
  );
}

function clearWasteMetrics({ metrics }: Telemetry): void {
  metrics.clear('ebb_waste_month_cu_hours');
  metrics.clear('ebb_waste_month_usd');
}

function exportWasteMetrics(telemetry: Telemetry, totals: readonly Total[]): void {
  const { metrics } = telemetry;
  clearWasteMetrics(telemetry);
  for (const { labels, cuHours, usd } of sumOf(totals)) {
    for (const bound of ['low', 'mid', 'high'] as const) {
      metrics.set('ebb_waste_month_cu_hours', { ...labels, bound }, cuHours[bound]);
      if (usd) metrics.set('ebb_waste_month_usd', { ...labels, bound }, usd[bound]);
    }
  }
}

function sumOf(totals: readonly Total[]): readonly Total[] {
  const sums = new Map<string, Total>();
  for (const { labels, cuHours, usd } of totals) {
    const key = JSON.stringify(labels);
    const sum = sums.get(key);
    sums.set(key, {
      labels,
      cuHours: sumEstimates([sum?.cuHours ?? ZERO, cuHours]),
      usd: usd ? sumEstimates([sum?.usd ?? ZERO, usd]) : sum?.usd,
    });
  }
  return [...sums.values()];
}
