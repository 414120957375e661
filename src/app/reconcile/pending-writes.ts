import { type Compute, hasSettings } from '../../domain/compute/compute.ts';

import type { ComputeRecord, Intent, OpenOperation } from '../../domain/records/compute-record.ts';
import { confirmWrite } from '../../domain/records/failures.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CallOptions, ControlApi, Operation } from '../../ports/control-api.ts';
import { CLOCK_TOLERANCE_MS } from '../operations/follow.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';

export interface PendingWriteDeps extends OutageDeps {
  api: ControlApi;
  clock: Clock;
}

/**
 * Confirms a change whose answer never arrived, as after a kill between the call and the record. If it took effect, the operations that it
 * started are found in Neon's list and followed like any others. While that is unknown, the pending write stays in the record. `readAtMs`:
 * when the reading of the compute began.
 */
export async function confirmPendingWrites(
  deps: PendingWriteDeps,
  record: ComputeRecord,
  compute: Compute,
  { readAtMs, ...options }: CallOptions & { readAtMs: number },
): Promise<ComputeRecord> {
  const { intent } = record;
  const nowMs = deps.clock.now();
  const confirm = () => confirmWrite(record, compute, nowMs, readAtMs);
  const mayBeDone = intent?.restart === true || (intent?.fields && hasSettings(compute, intent.fields));
  if (!intent || !mayBeDone) return confirm();
  const started = await operationsSinceIntent(deps, compute, intent, options);
  if (!started) return record;
  const confirmed = intent.restart && started.length > 0 ? withoutIntent(record) : confirm();
  const known = new Set(confirmed.openOperations.map(({ operationId }) => operationId));
  const adopted = started.filter(({ operationId }) => !known.has(operationId));
  return { ...confirmed, openOperations: [...confirmed.openOperations, ...adopted] };
}

/** Returns the record without its pending write: its operations show that the restart took effect. */
function withoutIntent(record: ComputeRecord): ComputeRecord {
  const { intent: _done, ...rest } = record;
  return rest;
}

/** Lists the compute's operations since the pending write, newest first; undefined if they can't be listed. */
async function operationsSinceIntent(
  deps: PendingWriteDeps,
  compute: Compute,
  intent: Intent,
  options: CallOptions,
): Promise<OpenOperation[] | undefined> {
  const sinceMs = intent.atMs - CLOCK_TOLERANCE_MS;
  const found: OpenOperation[] = [];
  for await (const page of deps.api.listOperations(compute.projectId, options)) {
    if (!page.ok) {
      if (!options.signal?.aborted) reportApiError(deps, compute.projectId, page.error);
      return undefined;
    }
    for (const operation of page.value) {
      if (operation.createdAtMs < sinceMs) return found;
      if (operation.computeId === compute.computeId) found.push(openOperationOf(operation, intent));
    }
  }
  return found;
}

function openOperationOf({ operationId, action }: Operation, { atMs, policy, fields }: Intent): OpenOperation {
  return {
    operationId,
    action,
    startedAtMs: atMs,
    ...(policy !== undefined && { policy }),
    ...(fields && { fields }),
  };
}
