import type { Operation } from '../world/entities.ts';
import { wireTime } from './times.ts';

export interface WireOperation {
  id: string;
  project_id: string;
  branch_id: string;
  endpoint_id?: string;
  action: string;
  status: string;
  [field: string]: unknown;
}

/** Creating a branch is no matter of the compute that waits for it. */
function concernsCompute(operation: Operation): boolean {
  return operation.computeId !== undefined && !operation.action.startsWith('create_');
}

export function renderOperation(operation: Operation, nowMs: number): WireOperation {
  const createdAtMs = Math.floor(operation.createdAtMicros / 1000);
  return {
    id: operation.id,
    project_id: operation.projectId,
    branch_id: operation.branchId,
    ...(concernsCompute(operation) ? { endpoint_id: operation.computeId } : {}),
    action: operation.action,
    status: operation.status,
    ...(operation.status === 'failed' ? { error: operation.error } : {}),
    failures_count: operation.status === 'failed' ? operation.failuresCount : 0,
    created_at: wireTime(createdAtMs),
    updated_at: wireTime(operation.updatedAtMs),
    total_duration_ms: Math.max(0, (operation.endedAtMs ?? nowMs) - createdAtMs),
  };
}
