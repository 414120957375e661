import type { Operation } from '../world/entities.ts';
import { wireTime } from './times.ts';

/** Creating a branch is no matter of the compute that waits for it. */
function concernsCompute(operation: Operation): boolean {
  return operation.computeId !== undefined && !operation.action.startsWith('create_');
}

export function renderOperation(operation: Operation, nowMs: number): Record<string, unknown> {
  const createdAtMs = Math.floor(operation.createdAtMicros / 1000);
  return {
    id: operation.id,
    project_id: operation.projectId,
    branch_id: operation.branchId,
    endpoint_id: concernsCompute(operation) ? operation.computeId : undefined,
    action: operation.action,
    status: operation.status,
    error: operation.error,
    failures_count: operation.failuresCount,
    created_at: wireTime(createdAtMs),
    updated_at: wireTime(operation.updatedAtMs),
    total_duration_ms: Math.max(0, (operation.endedAtMs ?? nowMs) - createdAtMs),
  };
}
