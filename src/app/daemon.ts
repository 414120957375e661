import type { ApiResult, ControlApiError, ControlApiErrorCode } from '../ports/control-api.ts';
import type { Readiness } from '../ports/operator.ts';
import type { RulesSource } from '../ports/rules.ts';
import { createBoundaries } from './boundaries.ts';
import type { DaemonContext } from './context.ts';
import { createCrossings } from './crossings.ts';
import { beginWithRules } from './exchange-rules.ts';
import { ATTEND_MS } from './fleet-lease.ts';
import { createFollowOperations } from './follow-operations.ts';
import { withFleetLease, withRightClock } from './hand-over.ts';
import { createInventory } from './inventory.ts';
import { ensureTriggers, startKeeper } from './keeper.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { startOversight } from './oversight.ts';
import { readPictureQuietly, readProjectList } from './pictures.ts';
import { showSets } from './policy-sets.ts';
import { checkReadiness } from './readiness.ts';
import { createReconcile } from './reconcile.ts';
import { startReloading } from './reload.ts';
import { startSampling } from './sampling.ts';
import { requestReconcile } from './triggers.ts';
import { untilItWorks } from './until-it-works.ts';

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
 * is an error of the start; later it is an outage that is lived through.
 */
export async function startDaemon(
  context: DaemonContext,
  surroundings: Surroundings,
  rules?: RulesSource,
): Promise<{ ok: true; daemon: Daemon } | { ok: false; error: ControlApiError }> {
  const { queue, fleet, clock, rhythm } = context;
  const first = await readFirstPictures(context);
  if (!first.ok) return first;
  sayWhereItRuns(context, surroundings, first.value.projects);
  await meetTheGroup(context);
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
  await queue.work('inventory', withFleetLease(context, createInventory(context)), {
    concurrency: CONCURRENCY.inventory,
  });
  for (const { project } of fleet.pictures()) await requestReconcile(context, project.projectId);
  await ensureTriggers(context);
  const keeper = startKeeper(context);
  const reloading = startReloading(context, rules);
  const sampling = startSampling(context, context.counters);
  const watch = clock.every(rhythm.keeperMs, () => untilItWorks(context, () => context.storeWatch.check(context)));
  const lease = clock.every(ATTEND_MS, () => untilItWorks(context, () => context.fleetLease.attend(context)));
  const oversight = startOversight(context);
  return {
    ok: true,
    daemon: {
      readiness: () => checkReadiness(context),
      reload: () => reloading.reload(),
      async stop() {
        const running = [keeper, reloading, sampling, watch, lease, oversight];
        await Promise.all(running.map((one) => one.close()));
        // After a kill the others would wait for the lease to end; after a stop they need not.
        await untilItWorks(context, () => context.fleetLease.release(context));
      },
    },
  };
}

/** What must be known of the others, and of the store, before anything is written. */
async function meetTheGroup(context: DaemonContext): Promise<void> {
  const { store, storeWatch, groupTime, telemetry } = context;
  await storeWatch.check(context);
  await groupTime.compare();
  await context.fleetLease.attend(context);
  const isNew = (await store.generation()) === undefined && (await store.projectIds()).length === 0;
  await beginWithRules(context);
  showSets(context);
  if (!isNew) return;
  const message = 'the store is empty: what computes have when they are first seen becomes their baseline';
  telemetry.log.info({ event: 'ebb.store_new' }, message);
}

/**
 * Lists the projects and reads the first of them; an error if no account answers. The inventory reads the rest: for it they have
 * only just appeared.
 */
async function readFirstPictures(context: DaemonContext): Promise<ApiResult<{ projects: number }>> {
  const { projects, failures } = await readProjectList(context, { deadlineMs: FIRST_ANSWER_MS });
  const listed = new Set(projects.map(({ account }) => account));
  const silent = new Map([...failures].filter(([account]) => !listed.has(account)));
  for (const project of projects) context.fleet.list(project);
  await mapConcurrently(projects.slice(0, READ_AT_START), READ_AT_START, async (project) => {
    const picture = await readPictureQuietly(context, project, { deadlineMs: FIRST_ANSWER_MS });
    if (!picture.ok && FATAL_AT_START.has(picture.error.code)) silent.set(project.account, picture.error);
  });
  const [error] = silent.values();
  if (error !== undefined && silent.size === context.api.accountStatus().length) return { ok: false, error };
  return { ok: true, value: { projects: projects.length } };
}

function sayWhereItRuns(context: DaemonContext, surroundings: Surroundings, projects: number): void {
  const { mode, fleet, policies, telemetry } = context;
  const pictures = [...fleet.pictures()];
  const computes = pictures.reduce((sum, picture) => sum + picture.computes.length, 0);
  const counted = pictures.length === projects ? `${computes}` : `more than ${computes}`;
  const { apiUrl, accounts, queue } = surroundings;
  const names = policies.set.policies.map(({ name }) => name);
  const fields = { event: 'ebb.start', mode, api: apiUrl, accounts, queue, projects, computes, policies: names };
  const what = mode === 'observe' ? 'observe mode: nothing is written' : 'enforce mode: computes are changed';
  telemetry.log.info(
    { ...fields, hash: policies.set.hash },
    `${what}; API ${apiUrl}, account ${accounts.join(', ')}, ${projects} projects, ${counted} computes`,
  );
}
