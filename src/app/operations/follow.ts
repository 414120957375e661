import pLimit from 'p-limit';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord, OpenOperation } from '../../domain/records/compute-record.ts';
import { withFailure, withoutFailures } from '../../domain/records/failures.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeEvent, ReportEvent } from '../../ports/compute-events.ts';
import type { ControlApi, Operation, Project } from '../../ports/control-api.ts';
import type { JobHandler } from '../../ports/job-queue.ts';
import type { Lease } from '../../ports/store.ts';
import { type ReadProjectDeps, readProject } from '../fleet/cached-projects.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import type { SharedReadings } from '../fleet/stored-readings.ts';
import { type LeaseDeps, withProjectLease } from '../leases/locked-project.ts';
import { recordEntries } from '../notifications/notify.ts';
import type { CurrentRules } from '../rules.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';
import { requestFollowing, requestReconcile, type TriggerDeps } from '../triggers.ts';
import { degradedEvents } from './degraded.ts';
import { OPERATION_DEADLINE_MS, type Slots } from './restart-slots.ts';

/** How far Neon's clock may be behind ours, in milliseconds. It includes rounding to whole seconds. */
export const CLOCK_TOLERANCE_MS = 3_000;

/** Interval between checks of a project's operations, as recommended by the control API's documentation. */
const CHECK_INTERVAL_MS = 5_000;

/** How many projects' records are read concurrently at the daemon's start. */
const CONCURRENT_PROJECTS = 8;

interface ComputeId {
  projectId: string;
  computeId: string;
}

export interface FollowDeps extends LeaseDeps, OutageDeps {
  clock: Clock;
  api: ControlApi;
  fleet: Fleet;
  reportEvent: ReportEvent;
  rules: CurrentRules;
  slots: Pick<Slots, 'release' | 'refusedLately'>;
  durations: OperationDurations;
}

export interface FollowJobDeps extends FollowDeps, ReadProjectDeps, TriggerDeps {
  /** Absent for a daemon that is alone with its store. */
  sharedReadings?: Pick<SharedReadings, 'share'>;
}

/**
 * Follows the operations that ebb started in a project to their end. A check usually costs one list call; between checks the job occupies no
 * worker. Open operations are in the stored records, so that after a kill another daemon can continue.
 */
export function createFollowOperations(deps: FollowJobDeps): JobHandler {
  const beganAtMs = deps.clock.now();
  return async ({ data: { projectId } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const { nextCheckMs, priority, isFollowed } = await followOperations(deps, projectId, signal, beganAtMs);
    signal.throwIfAborted();
    if (nextCheckMs !== undefined) return { kind: 'again', atMs: nextCheckMs };
    const project = deps.fleet.listed(projectId);
    // If no operation was open, another daemon has followed them, and has read the project for the group.
    if (project && isFollowed) await readForGroup(deps, project, { signal, priority });
    await requestReconcile(deps, projectId);
    return { kind: 'done' };
  };
}

/** Reads a project whose operations have ended, and shares the reading: the reconcile that follows may be another daemon's. */
async function readForGroup(
  deps: FollowJobDeps,
  project: Project,
  options: { signal: AbortSignal; priority: Priority },
): Promise<void> {
  const { projectId } = project;
  const records = await deps.store.records(projectId);
  if (await readProject(deps, project, { ...options, records })) await deps.sharedReadings?.share(projectId);
}

/** Requests that all open operations in the store are followed. A daemon that starts needs to read no project for this. */
export async function followStored(deps: TriggerDeps & Pick<FollowDeps, 'store'>): Promise<void> {
  await pLimit(CONCURRENT_PROJECTS).map(await deps.store.projectIds(), async (projectId) => {
    const records = [...(await deps.store.records(projectId)).values()];
    if (records.some(({ openOperations }) => openOperations.length > 0)) await requestFollowing(deps, projectId);
  });
}

/**
 * Checks the operations of a project once, and records those that have ended. Returns the time of the next check (milliseconds since the
 * epoch; undefined if no operation is left), the priority of a reading after the last check, and whether any operation was open.
 *
 * Operations from before `beganAtMs`, the start of this daemon, have probably ended, and restarts may wait for that. They are checked with the
 * priority of reads, since otherwise they would wait behind all reads. If restarts are known to wait for slots, the priority is theirs.
 */
export async function followOperations(
  deps: FollowDeps,
  projectId: string,
  signal: AbortSignal,
  beganAtMs = 0,
): Promise<{ nextCheckMs: number | undefined; priority: Priority; isFollowed: boolean }> {
  const openByCompute = [...(await deps.store.records(projectId)).values()].map((record) => record.openOperations);
  const open = openByCompute.flat();
  const priority = open.some(({ startedAtMs }) => startedAtMs < beganAtMs) ? 'read' : 'operations';
  const nextCheckMs = await check(deps, { projectId, openByCompute, priority }, signal);
  return { nextCheckMs, priority, isFollowed: open.length > 0 };
}

async function check(
  deps: FollowDeps,
  { projectId, openByCompute, priority }: { projectId: string; openByCompute: OpenOperation[][]; priority: Priority },
  signal: AbortSignal,
): Promise<number | undefined> {
  const open = openByCompute.flat();
  if (open.length === 0) return undefined;
  const withOpen = openByCompute.filter((operations) => operations.length > 0);
  const firstCheckMs = Math.min(...withOpen.map(deps.durations.expectedEndMs));
  if (deps.clock.now() < firstCheckMs) return firstCheckMs;
  const refused = new Set(open.map(({ policy }) => policy !== undefined && deps.slots.refusedLately(policy)));
  const urgent = (['raise', 'lowering'] as const).find((kind) => refused.has(kind));
  const found = await findOperations(deps, projectId, open, { signal, priority: urgent ?? priority });
  // The inventory deletes the records of a deleted project that this daemon has seen.
  if (found === 'gone') return undefined;
  for (const operation of found?.values() ?? []) deps.durations.learn(operation);
  const remaining = found && (await recordProject(deps, projectId, found));
  return remaining === 0 ? undefined : deps.clock.now() + CHECK_INTERVAL_MS;
}

/** Finds operations in the list, newest first. Stops once all are found or only older ones follow. Undefined if a page can't be read. */
async function findOperations(
  deps: FollowDeps,
  projectId: string,
  wanted: readonly OpenOperation[],
  options: { signal: AbortSignal; priority: Priority },
): Promise<Map<string, Operation> | 'gone' | undefined> {
  const ids = new Set(wanted.map(({ operationId }) => operationId));
  const oldestMs = Math.min(...wanted.map(({ startedAtMs }) => startedAtMs)) - CLOCK_TOLERANCE_MS;
  const foundById = new Map<string, Operation>();
  const project = deps.fleet.listed(projectId) ?? { projectId };
  for await (const page of deps.api.listOperations(projectId, options)) {
    if (!page.ok && page.error.code === 'not_found') return 'gone';
    if (!page.ok) {
      if (!options.signal.aborted) reportApiError(deps, project, page.error, 'operations');
      return undefined;
    }
    deps.outages.projectAnswers(project, 'operations');
    for (const operation of page.value.filter(({ operationId }) => ids.has(operationId))) {
      foundById.set(operation.operationId, operation);
    }
    if (foundById.size === ids.size || page.value.some(({ createdAtMs }) => createdAtMs < oldestMs)) break;
  }
  return foundById;
}

async function releaseSlots(deps: FollowDeps, computeId: string, before: ComputeRecord): Promise<void> {
  const policies = new Set(before.openOperations.flatMap(({ policy }) => policy ?? []));
  for (const policy of policies) await deps.slots.release(computeId, policy);
}

/** Records the ended operations under the project's lease; returns the number of open ones, or undefined without the lease. */
async function recordProject(
  deps: FollowDeps,
  projectId: string,
  found: ReadonlyMap<string, Operation>,
): Promise<number | undefined> {
  return withProjectLease(deps, projectId, async (lease) => {
    let remaining = 0;
    for (const [computeId, record] of await deps.store.records(projectId)) {
      const after = await recordCompute(deps, lease, { projectId, computeId }, record, found);
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
  id: ComputeId,
  record: ComputeRecord,
  found: ReadonlyMap<string, Operation>,
): Promise<ComputeRecord | undefined> {
  const { projectId, computeId } = id;
  const nowMs = deps.clock.now();
  const { record: after, events } = withoutEnded(id, record, found, nowMs);
  const latest = deps.fleet.latestEvaluation(computeId);
  // The notification of a degraded change needs an evaluation. If there is none yet, the failure is recorded at a later check.
  if (!latest && mayBeEvaluated(deps.fleet, id) && events.some(({ kind }) => kind === 'degraded')) return record;
  if (after !== record) {
    const change = latest && { ...latest, before: record, after, nowMs };
    const outbox = change ? recordEntries(deps.rules.current, change, ownerByCurrentRules(deps)) : [];
    if (!(await deps.store.putRecord(projectId, computeId, after, lease, { outbox }))) return undefined;
  }
  for (const event of events) deps.reportEvent(event);
  if (after !== record && after.openOperations.length === 0) await releaseSlots(deps, computeId, record);
  const own = deps.fleet.ownEvaluation(computeId);
  if (own) deps.fleet.putEvaluated({ ...own, record: after });
  else if (latest && after !== record) deps.fleet.adopt({ ...latest, record: after });
  return after;
}

/** Returns false for a compute that is not in the cached reading of its project. */
function mayBeEvaluated(fleet: Fleet, { projectId, computeId }: ComputeId): boolean {
  const project = fleet.cachedProject(projectId);
  return !project || project.computes.some((one) => one.computeId === computeId);
}

interface EndedOperation {
  open: OpenOperation;
  /** Undefined if the operation was never listed. */
  operation: Operation | undefined;
}

/**
 * Removes ended operations from a record, and counts failures. An operation that is not listed yet is still open. Returns the record (the
 * same object if no operation has ended), and the events to report once it is stored.
 */
function withoutEnded(
  compute: ComputeId,
  record: ComputeRecord,
  found: ReadonlyMap<string, Operation>,
  nowMs: number,
): { record: ComputeRecord; events: ComputeEvent[] } {
  const ended: EndedOperation[] = [];
  const stillOpen: OpenOperation[] = [];
  for (const open of record.openOperations) {
    const operation = found.get(open.operationId);
    const isOverdue = nowMs - open.startedAtMs > OPERATION_DEADLINE_MS;
    if ((operation?.outcome ?? 'pending') === 'pending' && !isOverdue) stillOpen.push(open);
    else ended.push({ open, operation });
  }
  if (ended.length === 0) return { record, events: [] };
  const after = countFailures({ ...record, openOperations: stillOpen, ...lastEnd(record, ended) }, ended, nowMs);
  const events: ComputeEvent[] = [];
  for (const { open, operation } of ended) {
    const policy = open.policy === undefined ? {} : { policy: open.policy };
    if (operation) events.push({ kind: 'operation_ended', compute, operation, ...policy });
  }
  return { record: after, events: [...events, ...degradedEvents(compute, record, after)] };
}

function lastEnd(
  { operationEndedAtMs = 0 }: ComputeRecord,
  ended: readonly EndedOperation[],
): Pick<ComputeRecord, 'operationEndedAtMs'> {
  const lastMs = Math.max(operationEndedAtMs, ...ended.flatMap(({ operation }) => operation?.updatedAtMs ?? []));
  return lastMs > 0 ? { operationEndedAtMs: lastMs } : {};
}

/**
 * Counts failed operations. One change starts several operations. If one fails, Neon cancels the others, and all count as one failure. Failures
 * are forgotten once all operations of a change have succeeded.
 */
function countFailures(record: ComputeRecord, ended: readonly EndedOperation[], nowMs: number): ComputeRecord {
  const failed = ended.filter(({ operation }) => operation?.outcome !== 'succeeded');
  if (failed.length === 0) {
    if (record.openOperations.length > 0) return record;
    return ended.reduce((after, { open }) => withoutFailures(after, open.fields ?? {}), record);
  }
  const uncounted = failed.find(({ open }) => !open.failureCounted);
  if (!uncounted) return record;
  const openOperations = record.openOperations.map((open) =>
    open.startedAtMs === uncounted.open.startedAtMs ? { ...open, failureCounted: true as const } : open,
  );
  const { fields: desired = {} } = uncounted.open;
  const failure = { desired, message: describeFailure(uncounted), atMs: nowMs, isPermanent: false };
  // A restart that failed needs no cooldown: retries have their own delay.
  const { lastDisruption: _notHappened, ...rest } = record;
  return withFailure({ ...rest, openOperations }, failure);
}

function describeFailure({ open, operation }: EndedOperation): string {
  const minutes = OPERATION_DEADLINE_MS / 60_000;
  if (!operation) return `${open.action} is not in the list of operations after ${minutes} minutes`;
  const { action, status, outcome, error } = operation;
  if (outcome === 'pending') return `${action} has not ended after ${minutes} minutes`;
  return `${action} ${status}${error ? `: ${error}` : ''}`;
}

/** The assumed duration of an operation before any was measured, in milliseconds. */
const DEFAULT_DURATION_MS = 2_000;
/** Added to the expected duration, in milliseconds: Neon's instants may be in whole seconds, and a check that is too early must be repeated. */
const MARGIN_MS = 250;
/** The longest expected duration, in milliseconds: a few slow operations must not delay later checks for long. */
const MAX_EXPECTED_MS = 10_000;
/** How many durations are kept for each action. */
const DURATIONS_KEPT = 5;

/** Recent durations of operations by action, by which the next check is scheduled. Kept in memory only. */
export interface OperationDurations {
  learn(ended: Operation): void;
  /** The likely end of these operations, milliseconds since the epoch. */
  expectedEndMs(open: readonly OpenOperation[]): number;
}

export function createOperationDurations(): OperationDurations {
  const recent = new Map<string, number[]>();

  function expectedMs(action: string): number {
    const ascending = recent.get(action)?.toSorted((a, b) => a - b) ?? [];
    const usualMs = ascending[Math.floor(ascending.length / 2)];
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
