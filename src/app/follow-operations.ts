import type { ComputeRecord, OpenOperation } from '../domain/compute-record.ts';
import type { ControlApiError, Operation } from '../ports/control-api.ts';
import type { JobHandler } from '../ports/job-queue.ts';
import { LEASE_MS } from './apply.ts';
import type { Context } from './context.ts';
import { forgetProject } from './forget-project.ts';
import { reportApiError } from './outages.ts';
import { readPicture } from './pictures.ts';
import { CLOCK_TOLERANCE_MS } from './settle-intents.ts';
import { settleOperations } from './settle-operations.ts';
import { requestReconcile } from './triggers.ts';

/** Between two looks at the operations of a project: the interval that the control API's documentation names. */
const LOOK_AGAIN_MS = 5_000;

/**
 * Follows the operations that ebb started in a project to their end: one list call for all of them, then again later; between
 * two looks the job holds no slot. What must be followed stands in the records, so that a killed daemon's successor goes on.
 */
export function createFollowOperations(context: Context): JobHandler {
  return async ({ data: { projectId } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const nextLookMs = await lookAtOperations(context, projectId, signal);
    signal.throwIfAborted();
    if (nextLookMs !== undefined) return { kind: 'again', atMs: nextLookMs };
    const project = context.fleet.listed(projectId);
    if (project) await readPicture(context, project, { signal });
    await requestReconcile(context, projectId);
    return { kind: 'done' };
  };
}

/** When to look next, milliseconds since the epoch; undefined when there is nothing left to follow. */
async function lookAtOperations(context: Context, projectId: string, signal: AbortSignal): Promise<number | undefined> {
  const changes = [...(await context.store.records(projectId)).values()].map(({ openOperations }) => openOperations);
  const open = changes.flat();
  if (open.length === 0) return undefined;
  const underWay = changes.filter((operations) => operations.length > 0);
  const firstLookMs = Math.min(...underWay.map(context.durations.expectedEndMs));
  if (context.clock.now() < firstLookMs) return firstLookMs;
  const found = await findOperations(context, projectId, open, signal);
  if (found === 'gone') {
    await forgetProject(context, projectId);
    return undefined;
  }
  for (const operation of found?.values() ?? []) context.durations.learn(operation);
  const left = found && (await settleProject(context, projectId, found));
  return left === 0 ? undefined : context.clock.now() + LOOK_AGAIN_MS;
}

/**
 * Pages are newest first: it stops as soon as all are found, or at those that are older than any that is looked for.
 * Undefined if a page can't be had.
 */
async function findOperations(
  context: Context,
  projectId: string,
  wanted: readonly OpenOperation[],
  signal: AbortSignal,
): Promise<Map<string, Operation> | 'gone' | undefined> {
  const ids = new Set(wanted.map(({ operationId }) => operationId));
  const oldestMs = Math.min(...wanted.map(({ startedAtMs }) => startedAtMs)) - CLOCK_TOLERANCE_MS;
  const found = new Map<string, Operation>();
  for await (const page of context.api.listOperations(projectId, { signal })) {
    if (!page.ok) return whatItMeans(context, projectId, page.error, signal);
    context.outages.up('control API');
    for (const operation of page.value.filter(({ operationId }) => ids.has(operationId))) {
      found.set(operation.operationId, operation);
    }
    if (found.size === ids.size || page.value.some(({ createdAtMs }) => createdAtMs < oldestMs)) break;
  }
  return found;
}

function whatItMeans(
  context: Context,
  projectId: string,
  error: ControlApiError,
  signal: AbortSignal,
): 'gone' | undefined {
  if (error.code === 'not_found') return 'gone';
  if (!signal.aborted) reportApiError(context, projectId, error);
  return undefined;
}

/** Others may be disturbed now. */
async function releaseSlots(context: Context, computeId: string, before: ComputeRecord): Promise<void> {
  const policies = new Set(before.openOperations.flatMap(({ policy }) => policy ?? []));
  for (const policy of policies) await context.slots.release(context, computeId, policy);
}

/** Settles what was found under the project's lease; how many operations are left, or undefined if somebody holds it. */
async function settleProject(
  context: Context,
  projectId: string,
  found: ReadonlyMap<string, Operation>,
): Promise<number | undefined> {
  const { store } = context;
  const lease = await store.acquireLease(`project-${projectId}`, context.holder, LEASE_MS);
  if (!lease) return undefined;
  try {
    const records = await store.records(projectId);
    let left = 0;
    for (const [computeId, record] of records) {
      const { record: after, news } = settleOperations({ projectId, computeId }, record, found, context.clock.now());
      if (after !== record && !(await store.putRecord(projectId, computeId, after, lease))) return undefined;
      for (const event of news) context.notify(event);
      if (after !== record && after.openOperations.length === 0) await releaseSlots(context, computeId, record);
      const known = context.fleet.conclusion(computeId);
      if (known) context.fleet.conclude({ ...known, record: after });
      left += after.openOperations.length;
    }
    return left;
  } finally {
    await store.releaseLease(lease);
  }
}
