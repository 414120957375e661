import type { Gate } from './gate.ts';

/** The control API refuses changes to a project while an operation runs in it (423), whoever started it. */
export const operationRunning: Gate = ({ compute, record, projectBusy }) => {
  const own =
    compute.pendingState !== undefined || compute.state === 'init' || (record?.openOperations.length ?? 0) > 0;
  if (own) return { code: 'operation_running', message: 'an operation of this compute is under way' };
  if (projectBusy) return { code: 'operation_running', message: 'an operation of this project is under way' };
  return undefined;
};
