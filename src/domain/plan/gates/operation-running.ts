import type { Compute } from '../../compute/compute.ts';
import type { ComputeRecord } from '../../records/compute-record.ts';
import type { Gate } from './gate.ts';

/**
 * True if an operation of the compute is under way, as far as the compute itself or ebb's record shows it. A compute that never
 * got beyond `init`, with nothing pending, must not block its project for ever.
 */
export function hasOperationRunning(compute: Compute, record: ComputeRecord | undefined): boolean {
  return compute.pendingState !== undefined || (record?.openOperations.length ?? 0) > 0;
}

/** The control API refuses changes to a project while an operation runs in it (423), whoever started it. */
export const operationRunning: Gate = ({ compute, record, projectBusy }) => {
  if (hasOperationRunning(compute, record)) {
    return { code: 'operation_running', message: 'an operation of this compute is under way' };
  }
  if (projectBusy) return { code: 'operation_running', message: 'an operation of this project is under way' };
  return undefined;
};
