import type { ComputeRecord } from '../domain/compute-record.ts';
import type { Operation } from '../ports/control-api.ts';
import type { JobHandler } from '../ports/job-queue.ts';
import type { Lease } from '../ports/store.ts';
import { LEASE_MS } from './apply.ts';
import type { Context } from './context.ts';
import { readPicture, reportApiError } from './pictures.ts';
import { settleOperations } from './settle-operations.ts';
import { requestReconcile } from './triggers.ts';

/** Between two looks at the operations of a project: the interval that the control API's documentation names. */
const LOOK_AGAIN_MS = 5_000;

/** What operations take until more is known, in milliseconds: the first look comes after it. */
const EXPECTED_OPERATION_MS = 2_000;

/**
 * Follows the operations that ebb started in a project to their end: one list call for all of them, then again later; between
 * two looks the job holds no slot. What must be followed stands in the records, so that a killed daemon's successor goes on.
 */
export function createFollowOperations(context: Context): JobHandler {
  return async ({ data: { projectId } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const lease = await context.store.acquireLease(`project-${projectId}`, context.holder, LEASE_MS);
    if (!lease) return { kind: 'again', atMs: context.clock.now() + LOOK_AGAIN_MS };
    try {
      const nextLookMs = await lookAtOperations(context, lease, projectId, signal);
      if (nextLookMs !== undefined) return { kind: 'again', atMs: nextLookMs };
    } finally {
      await context.store.releaseLease(lease);
    }
    const project = context.fleet.listed(projectId);
    if (project && !signal.aborted) await readPicture(context, project, signal);
    await requestReconcile(context, projectId);
    return { kind: 'done' };
  };
}

/** When to look next, milliseconds since the epoch; undefined when every operation has ended. */
async function lookAtOperations(
  context: Context,
  lease: Lease,
  projectId: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const records = await context.store.records(projectId);
  const open = [...records.values()].flatMap(({ openOperations }) => openOperations);
  if (open.length === 0) return undefined;
  const firstLookMs = Math.min(...open.map(({ startedAtMs }) => startedAtMs)) + EXPECTED_OPERATION_MS;
  if (context.clock.now() < firstLookMs) return firstLookMs;
  const wanted = new Set(open.map(({ operationId }) => operationId));
  const found = await findOperations(context, projectId, wanted, signal);
  const nextLookMs = context.clock.now() + LOOK_AGAIN_MS;
  if (!found) return nextLookMs;
  let pending = false;
  for (const [computeId, record] of records) {
    if (record.openOperations.length === 0) continue;
    const after = settleOperations(context, { projectId, computeId }, record, found);
    if (after !== record) await context.store.putRecord(projectId, computeId, after, lease);
    refreshConclusion(context, computeId, after);
    pending ||= after.openOperations.length > 0;
  }
  return pending ? nextLookMs : undefined;
}

/** Pages are newest first: it stops as soon as all are found. Undefined if a page can't be had. */
async function findOperations(
  context: Context,
  projectId: string,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Map<string, Operation> | undefined> {
  const found = new Map<string, Operation>();
  for await (const page of context.api.listOperations(projectId, { signal })) {
    if (!page.ok) {
      if (!signal.aborted) reportApiError(context, page.error);
      return undefined;
    }
    context.outages.up('control API');
    for (const operation of page.value)
      if (wanted.has(operation.operationId)) found.set(operation.operationId, operation);
    if (found.size === wanted.size) break;
  }
  return found;
}

function refreshConclusion({ fleet }: Context, computeId: string, record: ComputeRecord): void {
  const known = fleet.conclusion(computeId);
  if (known) fleet.conclude({ ...known, record });
}
