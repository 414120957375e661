import type { Consumption } from '../fleet.ts';
import type { Plan, Role } from './accounts.ts';
import type { NewBranch } from './branches.ts';
import type { NewComputeRequest } from './create-compute.ts';
import type { ComputeSettings, OperationFault } from './entities.ts';
import type { KeyOwner, NewKey } from './keys.ts';
import type { NewProject } from './projects.ts';

interface OnCompute {
  projectId: string;
  computeId: string;
}

/** All that can be done to the world. Each has its own file or a line in `execute`. */
export type Command =
  | { kind: 'pass_time' }
  | { kind: 'create_project'; wanted: NewProject }
  | { kind: 'delete_project'; projectId: string }
  | { kind: 'move_project'; projectId: string; orgId?: string }
  | { kind: 'delete_branch'; projectId: string; branchId: string }
  | { kind: 'change_plan'; plan: Plan; orgId?: string }
  | { kind: 'set_consumption'; changes: Partial<Consumption> }
  | { kind: 'create_branch'; projectId: string; wanted: NewBranch }
  | { kind: 'create_compute'; projectId: string; wanted: NewComputeRequest }
  | ({ kind: 'update_compute'; changes: Partial<ComputeSettings> } & OnCompute)
  | ({ kind: 'delete_compute' | 'start_compute' | 'suspend_compute' | 'restart_compute' } & OnCompute)
  | { kind: 'connect'; computeId: string; connections: number; forMs?: number; reconnects: boolean; groupId?: string }
  | { kind: 'disconnect'; computeId: string; connections?: number }
  | { kind: 'change_clients'; computeId: string; groupId: string; doing: 'work' | 'rest' | 'leave' }
  | { kind: 'end_operation'; operationId: string; projectId: string; error?: string }
  | { kind: 'use_key'; token: string; from: string }
  | { kind: 'create_key'; wanted: NewKey }
  | { kind: 'revoke_key'; keyId: number; owner: KeyOwner }
  | { kind: 'set_membership'; userId: string; orgId: string; role: Role | 'none' }
  | { kind: 'add_operation_fault'; fault: OperationFault }
  | { kind: 'clear_operation_faults'; id?: string };
