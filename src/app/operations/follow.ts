import pLimit from 'p-limit';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord, OpenOperation } from '../../domain/records/compute-record.ts';
import type { ReportEvent } from '../../ports/compute-events.ts';
import type { ControlApi, Operation } from '../../ports/control-api.ts';
import type { JobHandler } from '../../ports/job-queue.ts';
import type { Lease } from '../../ports/store.ts';
import { type ReadProjectDeps, readProject } from '../fleet/cached-projects.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import { type LockDeps, withProjectLease } from '../leases/locked-project.ts';
import { recordEntries } from '../notifications/notify.ts';
import type { CurrentRules } from '../rules.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';
import { requestFollowing, requestReconcile, type TriggerDeps } from '../triggers.ts';
import { recordOperations } from './record.ts';
import type { Slots } from './restart-slots.ts';

/** How far Neon's clock may be behind ours, in milliseconds. It includes rounding to whole seconds. */
export const CLOCK_TOLERANCE_MS = 3_000;

/** Interval between checks of a project's operations, as recommended by the control API's documentation. */
const CHECK_INTERVAL_MS = 5_000;

/** How many projects' records are read concurrently at the start. */
const CONCURRENT_PROJECTS = 8;

export interface FollowDeps extends LockDeps, OutageDeps {
  api: ControlApi;
  fleet: Fleet;
  reportEvent: ReportEvent;
  rules: CurrentRules;
  slots: Pick<Slots, 'release'>;
  durations: OperationDurations;
}

export interface FollowJobDeps extends FollowDeps, ReadProjectDeps, TriggerDeps {}

/**
 * Follows the operations that ebb started in a project to their end. Each check is one list call; between checks the job occupies no
 * worker. Open operations are in the records, so that another daemon can go on after a kill.
 */
export function createFollowOperations(deps: FollowJobDeps): JobHandler {
  const beganAtMs = deps.clock.now();
  return async ({ data: { projectId } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const { nextCheckMs, priority } = await followOperations(deps, projectId, signal, beganAtMs);
    signal.throwIfAborted();
    if (nextCheckMs !== undefined) return { kind: 'again', atMs: nextCheckMs };
    const project = deps.fleet.listed(projectId);
    if (project) await readProject(deps, project, { signal, priority });
    await requestReconcile(deps, projectId);
    return { kind: 'done' };
  };
}

/** Requests following of all operations that are stored: after a restart, projects are read one after the other, and this does not wait. */
export async function followStored(deps: TriggerDeps & Pick<FollowDeps, 'store'>): Promise<void> {
  await pLimit(CONCURRENT_PROJECTS).map(await deps.store.projectIds(), async (projectId) => {
    const records = [...(await deps.store.records(projectId)).values()];
    if (records.some(({ openOperations }) => openOperations.length > 0)) await requestFollowing(deps, projectId);
  });
}

/**
 * Checks the operations of a project once, and records those that have ended. Returns the time of the next check, milliseconds since the
 * epoch; undefined if no operation is left. Operations that were started before `beganAtMs` have probably ended while no daemon ran, and
 * restarts of other computes may wait for them: their priority is that of reads, which would be sent before them otherwise.
 */
export async function followOperations(
  deps: FollowDeps,
  projectId: string,
  signal: AbortSignal,
  beganAtMs = 0,
): Promise<{ nextCheckMs: number | undefined; priority: Priority }> {
  const changes = [...(await deps.store.records(projectId)).values()].map(({ openOperations }) => openOperations);
  const open = changes.flat();
  const priority = open.some(({ startedAtMs }) => startedAtMs < beganAtMs) ? 'read' : 'operations';
  const nextCheckMs = await check(deps, { projectId, changes, priority }, signal);
  return { nextCheckMs, priority };
}

async function check(
  deps: FollowDeps,
  { projectId, changes, priority }: { projectId: string; changes: OpenOperation[][]; priority: Priority },
  signal: AbortSignal,
): Promise<number | undefined> {
  const open = changes.flat();
  if (open.length === 0) return undefined;
  const underWay = changes.filter((operations) => operations.length > 0);
  const firstCheckMs = Math.min(...underWay.map(deps.durations.expectedEndMs));
  if (deps.clock.now() < firstCheckMs) return firstCheckMs;
  const found = await findOperations(deps, projectId, open, { signal, priority });
  if (found === 'gone') {
    // The inventory will forget the records; it knows whether the project was ever visible with this key.
    return undefined;
  }
  for (const operation of found?.values() ?? []) deps.durations.learn(operation);
  const remaining = found && (await recordProject(deps, projectId, found));
  return remaining === 0 ? undefined : deps.clock.now() + CHECK_INTERVAL_MS;
}

/** Finds operations in the list, which is newest first. Stops when all are found, or at older ones. Undefined if a page can't be read. */
async function findOperations(
  deps: FollowDeps,
  projectId: string,
  wanted: readonly OpenOperation[],
  options: { signal: AbortSignal; priority: Priority },
): Promise<Map<string, Operation> | 'gone' | undefined> {
  const ids = new Set(wanted.map(({ operationId }) => operationId));
  const oldestMs = Math.min(...wanted.map(({ startedAtMs }) => startedAtMs)) - CLOCK_TOLERANCE_MS;
  const found = new Map<string, Operation>();
  for await (const page of deps.api.listOperations(projectId, options)) {
    if (!page.ok && page.error.code === 'not_found') return 'gone';
    if (!page.ok) {
      if (!options.signal.aborted) reportApiError(deps, projectId, page.error);
      return undefined;
    }
    deps.outages.up('control API');
    for (const operation of page.value.filter(({ operationId }) => ids.has(operationId))) {
      found.set(operation.operationId, operation);
    }
    if (found.size === ids.size || page.value.some(({ createdAtMs }) => createdAtMs < oldestMs)) break;
  }
  return found;
}

/** Releases the compute's slots, so that other computes may be restarted. */
async function releaseSlots(deps: FollowDeps, computeId: string, before: ComputeRecord): Promise<void> {
  const policies = new Set(before.openOperations.flatMap(({ policy }) => policy ?? []));
  for (const policy of policies) await deps.slots.release(computeId, policy);
}

/** Records the result under the project's lease; returns the number of open operations, or undefined if another process holds it. */
async function recordProject(
  deps: FollowDeps,
  projectId: string,
  found: ReadonlyMap<string, Operation>,
): Promise<number | undefined> {
  return withProjectLease(deps, projectId, async (lease) => {
    let remaining = 0;
    for (const [computeId, record] of await deps.store.records(projectId)) {
      const after = await recordCompute(deps, lease, { projectId, computeId, record }, found);
      if (!after) return undefined;
      remaining += after.openOperations.length;
    }
    return remaining;
  });
}

/** Stores the record without the operations that have ended. Undefined if the lease was lost. */
async function recordCompute(
  deps: FollowDeps,
  lease: Lease,
  { record, ...place }: { projectId: string; computeId: string; record: ComputeRecord },
  found: ReadonlyMap<string, Operation>,
): Promise<ComputeRecord | undefined> {
  const { projectId, computeId } = place;
  const nowMs = deps.clock.now();
  const { record: after, events: news } = recordOperations(place, record, found, nowMs);
  const known = deps.fleet.known(computeId)?.evaluatedCompute;
  // The message about it names what an evaluation knows: after a restart it is recorded once there is one.
  if (!known && mayBeEvaluated(deps.fleet, place) && news.some(({ kind }) => kind === 'degraded')) return record;
  const outbox = known
    ? recordEntries(deps.rules.current, { ...known, before: record, after, nowMs }, ownerByCurrentRules(deps))
    : [];
  if (after !== record && !(await deps.store.putRecord(projectId, computeId, after, lease, { outbox })))
    return undefined;
  for (const event of news) deps.reportEvent(event);
  if (after !== record && after.openOperations.length === 0) await releaseSlots(deps, computeId, record);
  const own = deps.fleet.evaluatedCompute(computeId);
  if (own) deps.fleet.putEvaluated({ ...own, record: after });
  return after;
}

/** False for a compute that its project no longer has. */
function mayBeEvaluated(fleet: Fleet, { projectId, computeId }: { projectId: string; computeId: string }): boolean {
  const project = fleet.cachedProject(projectId);
  return !project || project.computes.some((one) => one.computeId === computeId);
}

/** The assumed duration of an operation until one was measured, in milliseconds. */
const DEFAULT_DURATION_MS = 2_000;
/** Added to the expected duration, since Neon's instants may be in whole seconds, and a check that is a little early costs another one. */
const MARGIN_MS = 250;
/** The longest expected duration, in milliseconds, so that one slow operation does not delay checks for long. */
const MAX_EXPECTED_MS = 10_000;
/** How many durations are kept for each action. */
const DURATIONS_KEPT = 5;

/** Recent durations of operations by action, from which the time of the next check follows. Kept in memory only. */
export interface OperationDurations {
  learn(ended: Operation): void;
  /** The likely end of these operations, milliseconds since the epoch. */
  expectedEndMs(open: readonly OpenOperation[]): number;
}

export function createOperationDurations(): OperationDurations {
  const recent = new Map<string, number[]>();

  function expectedMs(action: string): number {
    const known = recent.get(action)?.toSorted((a, b) => a - b) ?? [];
    const usualMs = known[Math.floor(known.length / 2)];
    return usualMs === undefined ? DEFAULT_DURATION_MS : Math.min(MAX_EXPECTED_MS, usualMs + MARGIN_MS);
  }

  return {
    learn({ action, createdAtMs, updatedAtMs, totalDurationMs, outcome }) {
      if (outcome !== 'succeeded') return;
      const durationMs = Math.max(totalDurationMs ?? 0, updatedAtMs - createdAtMs);
      recent.set(action, [durationMs, ...(recent.get(action) ?? [])].slice(0, DURATIONS_KEPT));
    },
    expectedEndMs: (open) => Math.max(...open.map(({ action, startedAtMs }) => startedAtMs + expectedMs(action))),
  };
}
