import type { Consumption } from '../fleet.ts';
import type { Plan, Role } from './accounts.ts';
import { advance } from './advance.ts';
import { createBranch, deleteBranch, type NewBranch, renameBranch } from './branches.ts';
import { deleteCompute, restartCompute, startCompute, suspendCompute, updateCompute } from './compute-commands.ts';
import { admitWaiting, disconnect, leave, setBusy } from './connections.ts';
import { createCompute, type NewComputeRequest } from './create-compute.ts';
import type { ComputeSettings, OperationFault, WorldState } from './entities.ts';
import { createKey, type KeyOwner, type NewKey, revokeKey, setMembership, useKey } from './keys.ts';
import { endExternally, releaseHanging, wakeIfWanted } from './operations.ts';
import { type Execution, type Outcome, refuse } from './outcome.ts';
import { changePlan, createProject, deleteProject, moveProject, type NewProject, renameProject } from './projects.ts';

const DONE: Outcome = { ok: true, operations: [] };

function clearOperationFaults(world: WorldState, id: string | undefined): Outcome {
  world.operationFaults = world.operationFaults.filter((fault) => id !== undefined && fault.id !== id);
  if (id === undefined) releaseHanging(world);
  return DONE;
}

type Handlers = { [K in Command['kind']]: (world: WorldState, command: Extract<Command, { kind: K }>) => Outcome };

const HANDLERS: Handlers = {
  pass_time: () => DONE,
  create_project: (world, { wanted }) => createProject(world, wanted),
  delete_project: (world, { projectId }) => deleteProject(world, projectId),
  rename_project: (world, { projectId, name }) => renameProject(world, projectId, name),
  move_project: (world, { projectId, orgId }) => moveProject(world, projectId, orgId),
  create_branch: (world, { projectId, wanted }) => createBranch(world, projectId, wanted),
  rename_branch: (world, { projectId, branchId, name }) => renameBranch(world, projectId, branchId, name),
  delete_branch: (world, { projectId, branchId }) => deleteBranch(world, projectId, branchId),
  change_plan: (world, { plan, orgId }) => changePlan(world, plan, orgId),
  set_consumption: (world, { changes }) => {
    Object.assign(world.consumption, changes);
    return DONE;
  },
  create_compute: (world, { projectId, wanted }) => createCompute(world, projectId, wanted),
  update_compute: (world, { projectId, computeId, changes }) => updateCompute(world, projectId, computeId, changes),
  delete_compute: (world, { projectId, computeId }) => deleteCompute(world, projectId, computeId),
  start_compute: (world, { projectId, computeId }) => startCompute(world, projectId, computeId),
  suspend_compute: (world, { projectId, computeId }) => suspendCompute(world, projectId, computeId),
  restart_compute: (world, { projectId, computeId }) => restartCompute(world, projectId, computeId),
  connect: (world, arrival) => connectClients(world, arrival),
  disconnect: (world, { computeId, connections }) => disconnectClients(world, computeId, connections),
  change_clients: (world, { computeId, groupId, doing }) => changeClients(world, computeId, groupId, doing),
  end_operation: (world, { projectId, operationId, error }) => endExternally(world, projectId, operationId, error),
  use_key: (world, { token, from }) => useKey(world, token, from),
  create_key: (world, { wanted }) => createKey(world, wanted),
  revoke_key: (world, { keyId, owner }) => revokeKey(world, keyId, owner),
  set_membership: (world, { userId, orgId, role }) => setMembership(world, userId, orgId, role),
  add_operation_fault: (world, { fault }) => {
    world.operationFaults.push(fault);
    return DONE;
  },
  clear_operation_faults: (world, { id }) => clearOperationFaults(world, id),
};

/**
 * The only function that changes the world: advances it to `atMs` (an earlier instant counts as now), then executes the
 * command. A refused command changes nothing.
 */
export function execute<K extends Command['kind']>(
  world: WorldState,
  command: Extract<Command, { kind: K }> & { kind: K },
  atMs: number,
): Execution {
  advance(world, atMs);
  const handle: (world: WorldState, command: Extract<Command, { kind: K }>) => Outcome = HANDLERS[command.kind];
  const outcome = handle(world, command);
  const events = world.events;
  world.events = [];
  return { outcome, events };
}

interface ComputeIds {
  projectId: string;
  computeId: string;
}

export type Command =
  | { kind: 'pass_time' }
  | { kind: 'create_project'; wanted: NewProject }
  | { kind: 'delete_project'; projectId: string }
  | { kind: 'rename_project'; projectId: string; name: string }
  | { kind: 'move_project'; projectId: string; orgId?: string | undefined }
  | { kind: 'rename_branch'; projectId: string; branchId: string; name: string }
  | { kind: 'delete_branch'; projectId: string; branchId: string }
  | { kind: 'change_plan'; plan: Plan; orgId?: string | undefined }
  | { kind: 'set_consumption'; changes: Partial<Consumption> }
  | { kind: 'create_branch'; projectId: string; wanted: NewBranch }
  | { kind: 'create_compute'; projectId: string; wanted: NewComputeRequest }
  | ({ kind: 'update_compute'; changes: Partial<ComputeSettings> } & ComputeIds)
  | ({ kind: 'delete_compute' | 'start_compute' | 'suspend_compute' | 'restart_compute' } & ComputeIds)
  | ({ kind: 'connect' } & Arrival)
  | { kind: 'disconnect'; computeId: string; connections?: number | undefined }
  | { kind: 'change_clients'; computeId: string; groupId: string; doing: 'work' | 'rest' | 'leave' }
  | { kind: 'end_operation'; operationId: string; projectId: string; error?: string | undefined }
  | { kind: 'use_key'; token: string; from: string }
  | { kind: 'create_key'; wanted: NewKey }
  | { kind: 'revoke_key'; keyId: number; owner: KeyOwner }
  | { kind: 'set_membership'; userId: string; orgId: string; role: Role | 'none' }
  | { kind: 'add_operation_fault'; fault: OperationFault }
  | { kind: 'clear_operation_faults'; id?: string | undefined };

/** Clients that arrive together. */
export interface Arrival {
  computeId: string;
  connections: number;
  forMs?: number | undefined;
  reconnects: boolean;
  /** The size that serves them all, in CU. */
  cu?: number | undefined;
  /** Names them in events and in `change_clients`. */
  groupId?: string;
}

/** New clients connect at once, or wake the compute and wait for it. Nothing wakes a disabled one. */
function connectClients(world: WorldState, arrival: Arrival): Outcome {
  const compute = world.computes.get(arrival.computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  const { connections, reconnects, forMs, cu, groupId: id } = arrival;
  compute.waiting.push({ connections, reconnects, isBusy: true, forMs, cu, id });
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
  return { ok: true, compute, operations: [...compute.queue] };
}

/** Without a number, all clients. */
function disconnectClients(world: WorldState, computeId: string, connections?: number): Outcome {
  const compute = world.computes.get(computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  disconnect(world, compute, connections);
  return { ok: true, compute, operations: [] };
}

function changeClients(
  world: WorldState,
  computeId: string,
  groupId: string,
  doing: 'work' | 'rest' | 'leave',
): Outcome {
  const compute = world.computes.get(computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  if (doing === 'leave') leave(world, compute, groupId);
  else setBusy(world, compute, groupId, doing === 'work');
  return { ok: true, compute, operations: [] };
}
