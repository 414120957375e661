import type { ApiResult, ControlApiError, ControlApiErrorCode } from '../ports/control-api.ts';
import type { Readiness } from '../ports/operator.ts';
import type { RulesSource } from '../ports/rules.ts';
import { createBoundaries } from './boundaries/boundaries.ts';
import { createCrossings } from './boundaries/crossings.ts';
import { startSampling } from './connections/sampler.ts';
import type { DaemonContext } from './context.ts';
import { readProjectList, readProjectQuietly } from './fleet/cached-projects.ts';
import { createInventory } from './fleet/inventory.ts';
import { narrowKeysOf } from './fleet/narrow-keys.ts';
import { ATTEND_MS } from './group/leader.ts';
import { startLeaderRefresh } from './group/leader-refresh.ts';
import { onlyAsLeader, withRightClock } from './group/pause-queues.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { createFollowOperations } from './operations/follow.ts';
import { checkReadiness } from './operator/readiness.ts';
import { createReconcile } from './reconcile/reconcile.ts';
import { startResync } from './resync.ts';
import { beginWithRules } from './rollout/activate.ts';
import { startReloading } from './rollout/reload.ts';
import { showSets } from './rollout/write-permission.ts';
import { ensureTriggers, requestReconcile } from './triggers.ts';

/** Whoever starts a daemon is waiting: an API that does not answer by then is not there, in real milliseconds. */
const FIRST_ANSWER_MS = 5_000;

/** Projects that are read before the first line of the log, within what the rate budget allows at once. */
const READ_AT_START = 20;

/** Errors that would hit every project; others concern one, which the inventory tries again. */
const FATAL_AT_START: ReadonlySet<ControlApiErrorCode> = new Set(['unauthorised', 'unavailable', 'timeout']);

/** Crossings are many because most of them only wait for their instant. */
const CONCURRENCY = { inventory: 1, boundaries: 20, crossings: 1_000, reconcile: 32, operations: 16 } as const;

export interface Daemon {
  readiness(): Promise<Readiness>;
  /** Reads policies and settings anew, whether they have changed or not. */
  reload(): Promise<void>;
  /** Ends the local timers; closing the queue ends the rest. */
  stop(): Promise<void>;
}

/** What the first line of the log says about where the daemon runs. */
export interface Surroundings {
  apiUrl: string;
  accounts: readonly string[];
  queue: string;
}

/**
 * Starts everything that a daemon does. It asks the control API once first: one that can't be reached, or that refuses the key,
 * is an error of the start; later it is an outage that is lived through. Rejects with the signal's reason when it is aborted.
 */
export async function startDaemon(
  context: DaemonContext,
  surroundings: Surroundings,
  { rules, signal }: { rules?: RulesSource | undefined; signal: AbortSignal },
): Promise<{ ok: true; daemon: Daemon } | { ok: false; error: ControlApiError }> {
  const { queue, fleet, clock, rhythm } = context;
  const first = await readFirstProjects(context, signal);
  signal.throwIfAborted();
  if (!first.ok) return first;
  logStart(context, surroundings, first.value.projects);
  for (const { message, ...fields } of narrowKeysOf(context)) {
    context.telemetry.log.warn({ event: 'ebb.narrow_key', ...fields }, message);
  }
  await joinGroup(context);
  signal.throwIfAborted();
  await queue.work('crossings', withRightClock(context, createCrossings(context)), {
    concurrency: CONCURRENCY.crossings,
  });
  await queue.work('reconcile', withRightClock(context, createReconcile(context)), {
    concurrency: CONCURRENCY.reconcile,
  });
  await queue.work('operations', withRightClock(context, createFollowOperations(context)), {
    concurrency: CONCURRENCY.operations,
  });
  await queue.work('boundaries', withRightClock(context, createBoundaries(context)), {
    concurrency: CONCURRENCY.boundaries,
  });
  await queue.work('inventory', onlyAsLeader(context, createInventory(context)), {
    concurrency: CONCURRENCY.inventory,
  });
  for (const { project } of fleet.cachedProjects()) await requestReconcile(context, project.projectId);
  await ensureTriggers(context);
  const resync = startResync(context);
  const reloading = startReloading(context, rules);
  const sampling = startSampling(context);
  const watch = clock.every(rhythm.resyncMs, () =>
    context.runInBackground('watch of the store', () => context.storeWatch.check()),
  );
  const lease = clock.every(ATTEND_MS, () =>
    context.runInBackground('lease of the fleet', () => context.leaderLease.attend()),
  );
  const leaderRefresh = startLeaderRefresh(context);
  return {
    ok: true,
    daemon: {
      readiness: () => checkReadiness(context),
      reload: () => reloading.reload(),
      async stop() {
        const running = [resync, reloading, sampling, watch, lease, leaderRefresh];
        await Promise.all(running.map((one) => one.close()));
        // After a kill the others would wait for the lease to end; after a stop they need not.
        await context.runInBackground('lease of the fleet', () => context.leaderLease.release());
      },
    },
  };
}

/** What must be known of the others, and of the store, before anything is written. */
async function joinGroup(context: DaemonContext): Promise<void> {
  const { store, storeWatch, storeClock, overrides, clock } = context;
  await overrides.refresh(store, clock.now());
  await storeWatch.check();
  await storeClock.compare();
  await context.leaderLease.attend();
  const isNew = (await store.generation()) === undefined && (await store.projectIds()).length === 0;
  await beginWithRules(context);
  showSets(context);
  if (isNew) sayThatItIsEmpty(context);
}

function sayThatItIsEmpty({ telemetry: { log, metrics }, hasRunHere }: DaemonContext): void {
  const baseline = 'what computes have when they are first seen becomes their baseline';
  if (!hasRunHere) {
    log.info({ event: 'ebb.store_new' }, `the store is empty: ${baseline}`);
    return;
  }
  metrics.increment('ebb_store_lost_total', {});
  const kept = 'the holds and freezes that were known here are in force';
  log.warn(
    { event: 'ebb.store_lost' },
    `the store is empty, though a daemon has run here before: ${kept}; ${baseline}`,
  );
}

/**
 * Lists the projects and reads the first of them; an error if no account answers. The inventory reads the rest: for it they have
 * only just appeared.
 */
async function readFirstProjects(
  context: DaemonContext,
  signal: AbortSignal,
): Promise<ApiResult<{ projects: number }>> {
  const options = { deadlineMs: FIRST_ANSWER_MS, signal };
  const { projects, failures } = await readProjectList(context, options);
  const listed = new Set(projects.map(({ account }) => account));
  const silent = new Map([...failures].filter(([account]) => !listed.has(account)));
  const answering = new Set<string>();
  for (const project of projects) context.fleet.list(project);
  await mapConcurrently(projects.slice(0, READ_AT_START), READ_AT_START, async (project) => {
    const cachedProject = await readProjectQuietly(context, project, options);
    if (cachedProject.ok) answering.add(project.account);
    else if (FATAL_AT_START.has(cachedProject.error.code)) silent.set(project.account, cachedProject.error);
  });
  for (const account of answering) silent.delete(account);
  const [error] = silent.values();
  if (error !== undefined && silent.size === context.api.accountStatus().length) return { ok: false, error };
  return { ok: true, value: { projects: projects.length } };
}

function logStart(context: DaemonContext, surroundings: Surroundings, projects: number): void {
  const { mode, fleet, policies, telemetry } = context;
  const cachedProjects = [...fleet.cachedProjects()];
  const computes = cachedProjects.reduce((sum, cachedProject) => sum + cachedProject.computes.length, 0);
  const counted = cachedProjects.length === projects ? `${computes}` : `more than ${computes}`;
  const { apiUrl, accounts, queue } = surroundings;
  const names = policies.set.policies.map(({ name }) => name);
  const fields = { event: 'ebb.start', mode, api: apiUrl, accounts, queue, projects, computes, policies: names };
  const what = mode === 'observe' ? 'observe mode: nothing is written' : 'enforce mode: computes are changed';
  telemetry.log.info(
    { ...fields, hash: policies.set.hash },
    `${what}; API ${apiUrl}, account ${accounts.join(', ')}, ${projects} projects, ${counted} computes`,
  );
}
