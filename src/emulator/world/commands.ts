import type { Compute, ComputeSettings, Operation, OperationFault, WorldEvent } from './entities.ts';

interface OnCompute {
  projectId: string;
  computeId: string;
}

/** All that can be done to the world. Each has its own file or a line in `execute`. */
export type Command =
  | { kind: 'pass_time' }
  | ({ kind: 'update_compute'; changes: Partial<ComputeSettings> } & OnCompute)
  | ({ kind: 'start_compute' | 'suspend_compute' | 'restart_compute' } & OnCompute)
  | { kind: 'connect'; computeId: string; connections: number; forMs?: number; reconnects: boolean }
  | { kind: 'disconnect'; computeId: string; connections?: number }
  | { kind: 'add_operation_fault'; fault: OperationFault }
  | { kind: 'clear_operation_faults'; id?: string };

export type RefusalCode = 'invalid' | 'not_found' | 'conflict' | 'precondition' | 'locked';

/** Why a command was not carried out; the world is as before. */
export interface Refusal {
  code: RefusalCode;
  message: string;
}

export type Outcome = { ok: true; compute?: Compute; operations: Operation[] } | { ok: false; refusal: Refusal };

export interface Execution {
  outcome: Outcome;
  /** What happened since the last command, this one included. */
  events: WorldEvent[];
}

export function refuse(code: RefusalCode, message: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code, message } };
}

export const LOCKED_MESSAGE =
  'project already has running conflicting operations, scheduling of new ones is prohibited';
