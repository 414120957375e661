import { type AwakeHistory, awakeHistory, historyFrom } from '../../domain/awake/intervals.ts';
import { createOperationLog, type OperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { unitOf, usageUnitOf } from '../../domain/decide/control-group.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { AT_ANY_AGE } from '../../domain/policy/select.ts';
import { mayBeOfUnloadedTeam } from '../../domain/policy/team-parts.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import { trialSpan } from '../../domain/trial/assignment.ts';
import { usageLowerBound } from '../../domain/usage/lower-bound.ts';
import { HOURS_KEPT } from '../../domain/usage/stored.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, ControlApiError, Project } from '../../ports/control-api.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { oneAtATime, type RunInBackground, type Running, StoppedError } from '../background.ts';
import type { Rhythm } from '../daemon.ts';
import { addOperations, readOperations } from '../fleet/read-operations.ts';
import type { StoreLosses } from '../shared-documents.ts';
import { createBudgetRounds } from './budget-rounds.ts';
import { collectUsage } from './collect-usage.ts';
import { costDetail, fillDetail, keepDetail } from './cost-detail.ts';
import { costSummary, fillSummary, keepSummary } from './cost-summary.ts';
import { readKeptOperations, withKeptOperations } from './kept-operations.ts';
import { type MonthCosts, monthCosts } from './month-costs.ts';
import {
  attributionOf,
  computesOf,
  type Identities,
  listedProjects,
  organizationsNow,
  rememberIdentities,
  type Spenders,
  type SpendersDeps,
  spendersOf,
} from './spenders.ts';
import { forgetTrial, keepTrialDays, keepTrialPolicies } from './trial-days.ts';
import { createStopTrials, type StopTrials } from './trial-stops.ts';
import { type Organization, type StoredUsage, type UsageAccount, usageAccount, usageKey } from './usage-account.ts';
import { clearUsageMetrics, exportUsageAge, exportUsageMetrics, logAnomalies } from './usage-metrics.ts';
import { createWeeklyDigest } from './weekly-digest.ts';

/** Pauses after a repeated refusal, and after any other failure, in milliseconds. */
const REFUSED_MS = 24 * HOUR_MS;
const FAILED_MS = HOUR_MS / 6;

/** How often a daemon that has just started checks whether projects are listed, in milliseconds. */
const LISTED_EVERY_MS = 5_000;

/** Errors of accounts or keys that can't read usage. */
const REFUSED: ReadonlySet<ControlApiError['code']> = new Set(['not_found', 'forbidden', 'unauthorised']);

export interface UsageRoundsDeps extends SpendersDeps {
  api: Pick<ControlApi, 'usage' | 'operationsFrom'>;
  clock: Clock;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
  mode: 'enforce' | 'observe';
  mayWrite(): Promise<{ ok: boolean }>;
  storeWatch: StoreLosses;
  runInBackground: RunInBackground;
  rhythm: Pick<Rhythm, 'usageMs'>;
}

/** The leader reads usage every hour, stores and exports this month's cost, decides budgets and trial stops, and queues weekly digests. */
export function startUsageRounds(deps: UsageRoundsDeps): Running {
  const { clock, leaderLease, runInBackground, telemetry } = deps;
  const stop = new AbortController();
  const retryAtMs = new Map<string, number>();
  const loggedAnomalies = new Set<string>();
  const notedPolicies = new Map<string, string>();
  const awake = createAwakeLog(deps);
  let isAwakeNew = false;
  let shown: MonthCosts[] = [];
  let shownAttribution = '';
  let identities: Identities = { projects: [], computes: [] };
  const budgets = createBudgetRounds(deps);
  const decideStops = createStopTrials();
  const sendDigests = createWeeklyDigest(deps);

  // Runs beside the rounds, since it takes long for a large fleet, and only the counterfactual needs it.
  const awakeReading = oneAtATime(() =>
    runInBackground('usage', async () => {
      isAwakeNew ||= await awake.refresh(listedProjects(deps), clock.now(), stop.signal);
    }),
  );

  async function round(): Promise<void> {
    if (!leaderLease.isHeld()) {
      if (shown.length > 0) clearUsageMetrics(telemetry);
      shown = [];
      budgets.forget();
      return;
    }
    const results = await readAll(deps, retryAtMs, stop.signal);
    // Reading may take minutes, in which another daemon may have become the leader.
    if (stop.signal.aborted || !leaderLease.isHeld()) return;
    await notePolicies(deps, notedPolicies);
    if (deps.mode === 'observe') void awakeReading.run();
    const attribution = attributionOf(deps);
    const isNew = shown.length === 0 || results.includes('new') || isAwakeNew || attribution !== shownAttribution;
    if (isNew) {
      shownAttribution = attribution;
      isAwakeNew = false;
      identities = await rememberIdentities(deps);
      shown = await costsNow(deps, awake, spendersOf(deps, identities));
      await storeCosts(deps, shown, identities);
      exportUsageMetrics(telemetry, shown);
      logAnomalies(telemetry, shown, loggedAnomalies);
    }
    await budgets.decide(isNew, identities);
    await stopTrials(deps, decideStops);
    await sendDigests(() => ({ ...spendersOf(deps, identities), months: shown }));
    exportUsageAge(telemetry, shown, clock.now());
    const failure = results.find((result) => typeof result === 'object');
    if (failure) throw new Error(`usage of account ${failure.account}: ${failure.message}`);
  }

  // A loss of the store also ends the lease, so a daemon that remembers no costs may lead by now.
  deps.storeWatch.onLoss(async () => {
    notedPolicies.clear();
    if (shown.length > 0) await storeCosts(deps, shown, { ...identities, ifMissing: true });
  });

  // The first reading of a large fleet takes longer than the interval.
  const check = oneAtATime(() => runInBackground('usage', round));
  const first = onceListed(deps, check.run);
  const rounds = clock.every(deps.rhythm.usageMs, check.run);
  return {
    async close() {
      stop.abort(new StoppedError());
      await first.close();
      await rounds.close();
      await check.ended();
      await awakeReading.ended();
    },
  };
}

/**
 * Stores this month's costs for the other daemons and for commands; with `ifMissing`, only where none are stored, since a new leader may have
 * stored its own.
 */
async function storeCosts(
  { store, clock }: UsageRoundsDeps,
  months: readonly MonthCosts[],
  { projects, ifMissing = false }: Pick<Identities, 'projects'> & { ifMissing?: boolean },
): Promise<void> {
  const names = new Map(projects.map(({ projectId, projectName }) => [projectId, projectName]));
  await (ifMissing ? fillSummary : keepSummary)(store, costSummary(months, clock.now()));
  const detail = costDetail(months, (projectId) => names.get(projectId) ?? projectId);
  await (ifMissing ? fillDetail : keepDetail)(store, detail);
}

/** Calls `run` once, as soon as projects are listed: a daemon that has just started knows none. */
function onceListed(deps: UsageRoundsDeps, run: () => Promise<void>): ReturnType<Clock['every']> {
  let isListed = false;
  return deps.clock.every(Math.min(LISTED_EVERY_MS, deps.rhythm.usageMs), async () => {
    if (isListed || organizationsNow(deps).length === 0) return;
    isListed = true;
    await run();
  });
}

/** True if this daemon leads and, in enforce mode, may write. */
async function mayDecide({ leaderLease, mode, mayWrite }: UsageRoundsDeps): Promise<boolean> {
  return leaderLease.isHeld() && (mode !== 'enforce' || (await mayWrite()).ok);
}

type ReadResult = 'new' | 'old' | ControlApiError;

async function readAll(
  deps: UsageRoundsDeps,
  retryAtMs: Map<string, number>,
  signal: AbortSignal,
): Promise<ReadResult[]> {
  const results: ReadResult[] = [];
  for (const organization of organizationsNow(deps)) {
    if (!signal.aborted) results.push(await readOne(deps, organization, retryAtMs, signal));
  }
  return results;
}

async function readOne(
  deps: UsageRoundsDeps,
  organization: Organization,
  retryAtMs: Map<string, number>,
  signal: AbortSignal,
): Promise<ReadResult> {
  const { api, store, clock } = deps;
  const { log, metrics } = deps.telemetry;
  const nowMs = clock.now();
  const { account, organization: id } = organization;
  const key = usageKey(organization);
  if (nowMs < (retryAtMs.get(key) ?? 0)) return 'old';
  const stored = usageAccount(store, organization);
  const keepTrials = (before: readonly string[]) => keepTrialsNow(deps, organization, { stored, nowMs, before });
  const lowerBound = usageLowerBound(computesOf(deps), nowMs);
  const read = await collectUsage({ api, stored, organization, nowMs, lowerBound, signal, keepTrials });
  if (read.ok) {
    if (retryAtMs.delete(key))
      log.info({ event: 'ebb.usage_available', account, organization: id }, `usage of ${id} can be read`);
    metrics.increment('ebb_usage_corrections_total', { account }, read.value.corrected);
    return read.value.isRead ? 'new' : 'old';
  }
  const { error } = read;
  const isRefused = REFUSED.has(error.code);
  const isFirstFailure = !retryAtMs.has(key);
  retryAtMs.set(key, nowMs + (isRefused && !isFirstFailure ? REFUSED_MS : FAILED_MS));
  if (!isRefused) return { ...error, account };
  const fields = { event: 'ebb.usage_unavailable', account, organization: id, status: error.status };
  const message = `the control API gives no usage of ${id} (${error.message}): costs are not known; it needs a paid plan and a key that is not scoped to a project`;
  if (isFirstFailure) log.info(fields, message);
  return 'old';
}

/** Notes the current policies for each trial that has begun. `noted` has this daemon's last note, by organization and trial. */
async function notePolicies(deps: UsageRoundsDeps, noted: Map<string, string>): Promise<void> {
  const { policies, revision = null } = deps.rules.current;
  const inEffect = { atMs: deps.clock.now(), setHash: policies.set.hash, revision };
  const rules = `${inEffect.setHash} ${revision}`;
  const running = policiesOfKind(policies.set.policies, 'trial');
  if (running.length === 0 || !(await mayDecide(deps))) return;
  for (const organization of organizationsNow(deps)) {
    for (const trial of running) {
      const key = `${usageKey(organization)}/${trial.name}`;
      if (noted.get(key) === rules || inEffect.atMs < trialSpan(trial.design).fromMs) continue;
      await keepTrialPolicies(deps.store, organization, trial, inEffect);
      noted.set(key, rules);
    }
  }
}

async function stopTrials(deps: UsageRoundsDeps, decideStops: StopTrials): Promise<void> {
  if (!(await mayDecide(deps))) return;
  const { store, rules, clock, telemetry } = deps;
  await decideStops({
    store,
    log: telemetry.log,
    rules: rules.current,
    computes: computesOf(deps),
    organizations: organizationsNow(deps),
    nowMs: clock.now(),
  });
}

/** Stores the days of all current trials, and deletes those of other trials, unless the policies of their team are not loaded. */
async function keepTrialsNow(
  deps: UsageRoundsDeps,
  organization: Organization,
  { stored, nowMs, before }: { stored: UsageAccount; nowMs: number; before: readonly string[] },
): Promise<string[]> {
  const { store, rules } = deps;
  if (!(await mayDecide(deps))) return [...before];
  const { policies } = rules.current;
  const computes = computesOf(deps, organization);
  const names: string[] = [];
  for (const [index, one] of policies.set.policies.entries()) {
    const policy = asKind(one, 'trial');
    if (policy === undefined) continue;
    names.push(policy.name);
    const selected = computes.filter((compute) => policies.selects(index, compute, AT_ANY_AGE));
    const units = new Map(selected.map((compute) => [unitOf(policy, compute), usageUnitOf(policy, compute)]));
    const trial = { name: policy.name, design: policy.design, units: [...units.values()] };
    await keepTrialDays(store, organization, { stored, trial, nowMs });
  }
  for (const name of before) {
    if (names.includes(name)) continue;
    if (mayBeOfUnloadedTeam(policies.set, name)) names.push(name);
    else await forgetTrial(store, organization, name);
  }
  return names;
}

async function costsNow(
  deps: UsageRoundsDeps,
  { historyOf }: AwakeLog,
  { ownerOf, organizations }: Spenders,
): Promise<MonthCosts[]> {
  const { store, clock, rules } = deps;
  const { costs, policies } = rules.current;
  const all: MonthCosts[] = [];
  for (const one of organizations) {
    const { account, organization } = one;
    const observed = deps.mode === 'observe' && { computes: computesOf(deps, one), policies, historyOf };
    const month = await monthCosts({
      stored: usageAccount(store, one),
      account,
      organization,
      costs,
      ownerOf,
      nowMs: clock.now(),
      ...(observed && { observed }),
    });
    if (month !== undefined) all.push(month);
  }
  return all;
}

/* The awake times of computes in the last two weeks, from operations that are stored for findings or else read once a day. */

const SPAN_MS = HOURS_KEPT * HOUR_MS;

/** The most pages that are read of a project, a thousand operations each. A project with more pages has a shorter history. */
const MAX_PAGES = 3;

interface AwakeLog {
  /** Reads the operations of projects, unless they were read within the last day. Returns true if it has read them. */
  refresh(projects: readonly Project[], nowMs: number, signal: AbortSignal): Promise<boolean>;
  /** The awake history up to the last reading; undefined if unknown. */
  historyOf(compute: Compute): AwakeHistory | undefined;
}

export function createAwakeLog(deps: {
  api: Pick<ControlApi, 'operationsFrom'>;
  store: StoredUsage;
  clock: Pick<Clock, 'monotonicMs'>;
}): AwakeLog {
  const { store, clock } = deps;
  let reading: { log: OperationLog; toMs: number; storedAtMs: ReadonlyMap<string, number> } | undefined;
  return {
    async refresh(projects, nowMs, signal) {
      if (reading !== undefined && nowMs - reading.toMs < DAY_MS) return false;
      const log = createOperationLog();
      const sinceMs = nowMs - SPAN_MS;
      const kept = await readKeptOperations(store, { sinceMs, nowMs });
      const api = withKeptOperations(kept, (...args) => deps.api.operationsFrom(...args));
      const storedAtMs = new Map<string, number>();
      await readOperations({
        api,
        projects,
        sinceMs,
        nowMs,
        signal,
        maxPages: MAX_PAGES,
        priority: 'background',
        monotonicMs: clock.monotonicMs,
        onPage(projectId, operations, complete, state) {
          const project = log.project(projectId);
          addOperations(project, operations);
          if (complete) project.coverFrom((state.storedAtMs ?? nowMs) - SPAN_MS);
          if (state.storedAtMs !== undefined) storedAtMs.set(projectId, state.storedAtMs);
        },
      });
      if (signal.aborted) return false;
      reading = { log, toMs: nowMs, storedAtMs };
      return true;
    },
    historyOf(compute) {
      const project = reading?.log.projects.find(({ projectId }) => projectId === compute.projectId);
      if (reading === undefined || project?.fromMs === undefined) return undefined;
      const toMs = reading.storedAtMs.get(compute.projectId) ?? reading.toMs;
      const history = awakeHistory(project.eventsOf(compute.computeId), {
        fromMs: project.fromMs,
        toMs,
        present: compute,
      });
      return historyFrom(history, toMs - SPAN_MS);
    },
  };
}
