import pLimit from 'p-limit';
import type { Clock } from '../ports/clock.ts';
import type { ApiResult, ControlApiError, ControlApiErrorCode, Project } from '../ports/control-api.ts';
import { type JobHandler, QUEUE_NAMES, type QueueName } from '../ports/job-queue.ts';
import type { Running } from './background.ts';
import { adoptsSettled } from './evaluate-project/evaluate.ts';
import { isAboutBranches } from './fleet/branches.ts';
import { readProjectList, readProjectQuietly } from './fleet/cached-projects.ts';
import type { Fleet } from './fleet/fleet.ts';
import { currentNarrowKeys } from './fleet/inventory.ts';
import { compareList } from './fleet/project-list.ts';
import { type LoadedReadings, loadReadings, type SharedReadings, takeLoaded } from './fleet/stored-readings.ts';
import type { StoreClock } from './group/clock-skew.ts';
import { ATTEMPT_EVERY_MS, type LeaderLease } from './group/leader.ts';
import type { StoreWatch } from './group/store-loss.ts';
import { followStored } from './operations/follow.ts';
import { type ActivateDeps, startWithRules } from './rollout/activate.ts';
import { type Reloading, refreshLeaderDecisions } from './rollout/reload.ts';
import { exportSets, type ShowSetsDeps } from './rollout/write-permission.ts';
import type { OutageDeps } from './telemetry/outages.ts';
import { type EnsureTriggersDeps, ensureTriggers, requestReconcile } from './triggers.ts';

/** Intervals of the daemon's repeated tasks, in real milliseconds. */
export interface Rhythm {
  /** Interval between readings of the list of projects. */
  inventoryMs: number;
  /** Interval of the resync loop, which restores the queue's jobs and updates counters. */
  resyncMs: number;
  /** Interval between reconciles of a compute whose change waits. */
  waitingMs: number;
  /** Interval between checks of the policy files, and of the group's state in the store. */
  rulesMs: number;
  /** Interval between checks for due sources of connections. */
  samplingMs: number;
  /** Interval between questions to guards. */
  guardsMs: number;
  /** Interval between checks for projects that are due for findings. */
  wasteMs: number;
  /** Interval between checks for new usage or changed owners. */
  usageMs: number;
}

/** At the start, an API that does not answer within this time counts as unavailable, in real milliseconds. */
const START_DEADLINE_MS = 5_000;

/** How many projects are read before the first log line. The rate budget allows so many requests at once. */
const PROJECTS_READ_AT_START = 20;

/** How many projects are evaluated or stored concurrently at the start. */
const CONCURRENT_PROJECTS = 16;

/** Errors that concern the whole account. Other errors concern one project, which the inventory reads again. */
const FATAL_AT_START: ReadonlySet<ControlApiErrorCode> = new Set(['unauthorised', 'unavailable', 'timeout']);

/** Concurrent jobs of each queue. `crossings` has many, because most of them only wait for their instant. */
const CONCURRENCY = { inventory: 1, boundaries: 20, crossings: 4_000, reconcile: 32, operations: 16 } as const;

export interface Daemon {
  /** Reads policies and settings again, changed or not. */
  reload(): Promise<void>;
  /** Ends the timers and background tasks. Jobs end when the caller closes the queue. */
  stop(): Promise<void>;
}

interface StartLogFacts {
  apiUrl: string;
  accounts: readonly string[];
  queue: string;
}

export interface DaemonDeps extends ActivateDeps, ShowSetsDeps, EnsureTriggersDeps, OutageDeps {
  clock: Clock;
  fleet: Fleet;
  storeWatch: StoreWatch;
  storeClock: Pick<StoreClock, 'compare' | 'lastExcessiveOffsetMs'>;
  leaderLease: LeaderLease;
  /** True if a daemon of this group is known to have run on this machine before. */
  hasRunHere: boolean;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  listFacts: { exchange(): Promise<void> };
  /** Absent: no other daemon has the store. */
  sharedReadings?: SharedReadings;
  rhythm: Rhythm;
  handlers: Readonly<Record<QueueName, JobHandler>>;
  startReloading(): Reloading;
  background: readonly (() => Running)[];
}

/**
 * Starts all activities of a daemon. First it reads from the control API: the start fails if the API can't be reached or refuses every key. A
 * later outage does not end the daemon. Rejects with the signal's reason when the signal is aborted.
 */
export async function startDaemon(
  deps: DaemonDeps,
  logFacts: StartLogFacts,
  signal: AbortSignal,
): Promise<{ ok: true; daemon: Daemon } | { ok: false; error: ControlApiError }> {
  const { queue, clock, rhythm, storeWatch, leaderLease } = deps;
  const loaded = await loadStored(deps);
  const firstProjects = await readFirstProjects(deps, { loaded, apiUrl: logFacts.apiUrl }, signal);
  signal.throwIfAborted();
  if (!firstProjects.ok) return firstProjects;
  logStart(deps, logFacts, firstProjects.value);
  await joinGroup(deps);
  signal.throwIfAborted();
  for (const name of QUEUE_NAMES) await queue.work(name, deps.handlers[name], { concurrency: CONCURRENCY[name] });
  const following = deps.runInBackground('resync', () => followStored(deps));
  await reconcileCached(deps);
  await ensureTriggers(deps);
  const reloading = deps.startReloading();
  const running = [
    reloading,
    { close: () => following },
    ...deps.background.map((start) => start()),
    clock.every(rhythm.rulesMs, () => deps.runInBackground('store_check', () => storeWatch.check())),
    clock.every(ATTEMPT_EVERY_MS, () => deps.runInBackground('leader_lease', () => leaderLease.attend())),
  ];
  return {
    ok: true,
    daemon: {
      reload: () => reloading.reload(),
      async stop() {
        deps.outages.end();
        await Promise.all(running.map((one) => one.close()));
        // Without the release, other daemons would have to wait for the lease to expire.
        await deps.runInBackground('leader_lease', () => leaderLease.release());
      },
    },
  };
}

/** Loads the readings that the group has stored. If the store can't be read, everything is read from the control API. */
async function loadStored(deps: DaemonDeps): Promise<LoadedReadings | undefined> {
  let loaded: LoadedReadings | undefined;
  await deps.runInBackground('readings', async () => {
    await deps.listFacts.exchange();
    loaded = await loadReadings(deps);
  });
  return loaded;
}

/**
 * Requests reconciles of the cached projects. A project whose reading is from the store is evaluated first, without a request. It is reconciled
 * only if something is to be done or recorded.
 */
async function reconcileCached(deps: DaemonDeps): Promise<void> {
  const { fleet } = deps;
  await pLimit(CONCURRENT_PROJECTS).map(fleet.cachedProjects(), async ({ project: { projectId }, isShared }) => {
    if (isShared && (await adoptsSettled(deps, projectId))) return;
    if (!isShared) await deps.sharedReadings?.share(projectId);
    await requestReconcile(deps, projectId);
  });
}

/** Reads the state of the store and the group, and chooses the rules, before anything is written. */
async function joinGroup(deps: DaemonDeps): Promise<void> {
  const { store, storeWatch, storeClock, overrides, clock } = deps;
  await overrides.refresh(store, clock.now());
  await storeWatch.check();
  await storeClock.compare();
  await deps.leaderLease.attend();
  const isNew = (await store.generation()) === undefined && (await store.projectIds()).length === 0;
  await startWithRules(deps);
  // Comes after the rules are chosen: their policies, some of which may come from the store, determine which decisions count.
  await refreshLeaderDecisions(deps);
  exportSets(deps);
  if (isNew) logEmptyStore(deps);
}

function logEmptyStore({ telemetry: { log, metrics }, hasRunHere }: DaemonDeps): void {
  const baseline = 'what computes have when they are first seen becomes their baseline';
  if (!hasRunHere) {
    log.info({ event: 'ebb.store_new' }, `the store is empty: ${baseline}`);
    return;
  }
  metrics.increment('ebb_store_lost_total', {});
  const stayActive = 'the holds and freezes known to this daemon stay active';
  log.warn(
    { event: 'ebb.store_lost' },
    `the store is empty, though a daemon has run here before: ${stayActive}; ${baseline}`,
  );
}

interface FirstProjects {
  projects: number;
  /** How many of the projects are known from stored readings. */
  fromStore: number;
}

/**
 * Lists the projects, takes the stored readings that the list confirms, and reads some of the other projects. Fails if no account answers. The
 * inventory later reads the remaining projects as new ones.
 */
async function readFirstProjects(
  deps: DaemonDeps,
  { loaded, apiUrl }: { loaded: LoadedReadings | undefined; apiUrl: string },
  signal: AbortSignal,
): Promise<ApiResult<FirstProjects>> {
  const options = { deadlineMs: START_DEADLINE_MS, signal };
  const list = await readProjectList(deps, options);
  const { projects, failures } = list;
  const fromStore = loaded ? await takeLoaded(deps, loaded, { projects, apiUrl }) : 0;
  const unread = await compareList(deps, list);
  const listed = new Set(projects.map(({ account }) => account));
  const errorByAccount = new Map([...failures].filter(([account]) => !listed.has(account)));
  const answering = new Set<string>();
  await pLimit(PROJECTS_READ_AT_START).map(firstToRead(deps, unread), async (project) => {
    const records = await deps.store.records(project.projectId);
    const cachedProject = await readProjectQuietly(deps, project, { ...options, records });
    // If only the branches of a project can't be read, the account answers.
    if (cachedProject.ok || isAboutBranches(cachedProject.error)) answering.add(project.account);
    else if (FATAL_AT_START.has(cachedProject.error.code)) errorByAccount.set(project.account, cachedProject.error);
  });
  for (const account of answering) errorByAccount.delete(account);
  const [error] = errorByAccount.values();
  if (error !== undefined && errorByAccount.size === deps.api.accountStatus().length) return { ok: false, error };
  return { ok: true, value: { projects: projects.length, fromStore } };
}

/** Returns the projects to read first: daemons that start together begin at different projects of a large fleet. */
function firstToRead({ holder }: DaemonDeps, unread: readonly Project[]): Project[] {
  const number = Buffer.from(holder).reduce((sum, byte) => (sum * 31 + byte) % 65_521, 0);
  const start = unread.length > PROJECTS_READ_AT_START ? number % unread.length : 0;
  return [...unread.slice(start), ...unread.slice(0, start)].slice(0, PROJECTS_READ_AT_START);
}

function logStart(deps: DaemonDeps, facts: StartLogFacts, { projects, fromStore }: FirstProjects): void {
  const { mode, fleet, telemetry } = deps;
  const { set } = deps.rules.current.policies;
  const cachedProjects = [...fleet.cachedProjects()];
  const computes = cachedProjects.reduce((sum, cached) => sum + cached.computes.length, 0);
  const computeCount = cachedProjects.length === projects ? `, ${computes} computes` : '';
  const { apiUrl, accounts, queue } = facts;
  const names = set.policies.map(({ name }) => name);
  const fields = { event: 'ebb.start', mode, api: apiUrl, accounts, queue, projects, computes, policies: names };
  const stored = fromStore > 0 && { projects_from_store: fromStore };
  const modeText = mode === 'observe' ? 'observe mode: nothing is written' : 'enforce mode: computes are changed';
  const unreadCount = projects - cachedProjects.length;
  const happens = mode === 'observe' ? 'shown' : 'changed';
  const leftText =
    unreadCount > 0 ? `; ${unreadCount} are not read yet, and each is ${happens} only once it is read` : '';
  telemetry.log.info(
    { ...fields, ...stored, hash: set.hash },
    `${modeText}; API ${apiUrl}, account ${accounts.join(', ')}, ${projects} projects${computeCount}${leftText}`,
  );
  for (const { message, ...narrow } of currentNarrowKeys(deps))
    telemetry.log.warn({ event: 'ebb.project_scoped_key', ...narrow }, message);
}
