import type { Consumption } from '../fleet.ts';
import type { Plan, Role } from './accounts.ts';
import { advance } from './advance.ts';
import { createBranch, deleteBranch, type NewBranch, renameBranch } from './branches.ts';
import { deleteCompute, restartCompute, startCompute, suspendCompute, updateCompute } from './compute-commands.ts';
import { admitWaiting, disconnect, leave, setBusy } from './connections.ts';
import { createCompute, type NewComputeRequest } from './create-compute.ts';
import type { ComputeSettings, ConnectionGroup, OperationFault, WorldState } from './entities.ts';
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

type ComputeCommand = Extract<Command, { computeId: string; projectId: string }>;
type OnCompute = (world: WorldState, projectId: string, computeId: string) => Outcome;

const onCompute =
  (handle: OnCompute) =>
  (world: WorldState, { projectId, computeId }: ComputeCommand): Outcome =>
    handle(world, projectId, computeId);

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
  delete_compute: onCompute(deleteCompute),
  start_compute: onCompute(startCompute),
  suspend_compute: onCompute(suspendCompute),
  restart_compute: onCompute(restartCompute),
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
 * The one way in which the world changes: lets time pass to `atMs` (an earlier instant counts as now), then carries the
 * command out. A refused command changes nothing.
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

interface OneCompute {
  projectId: string;
  computeId: string;
}

/** All that can be done to the world. Each has its own file or a line in `execute`. */
export type Command =
  | { kind: 'pass_time' }
  | { kind: 'create_project'; wanted: NewProject }
  | { kind: 'delete_project'; projectId: string }
  | { kind: 'rename_project'; projectId: string; name: string }
  | { kind: 'move_project'; projectId: string; orgId?: string }
  | { kind: 'rename_branch'; projectId: string; branchId: string; name: string }
  | { kind: 'delete_branch'; projectId: string; branchId: string }
  | { kind: 'change_plan'; plan: Plan; orgId?: string }
  | { kind: 'set_consumption'; changes: Partial<Consumption> }
  | { kind: 'create_branch'; projectId: string; wanted: NewBranch }
  | { kind: 'create_compute'; projectId: string; wanted: NewComputeRequest }
  | ({ kind: 'update_compute'; changes: Partial<ComputeSettings> } & OneCompute)
  | ({ kind: 'delete_compute' | 'start_compute' | 'suspend_compute' | 'restart_compute' } & OneCompute)
  | ({ kind: 'connect' } & Arrival)
  | { kind: 'disconnect'; computeId: string; connections?: number }
  | { kind: 'change_clients'; computeId: string; groupId: string; doing: 'work' | 'rest' | 'leave' }
  | { kind: 'end_operation'; operationId: string; projectId: string; error?: string }
  | { kind: 'use_key'; token: string; from: string }
  | { kind: 'create_key'; wanted: NewKey }
  | { kind: 'revoke_key'; keyId: number; owner: KeyOwner }
  | { kind: 'set_membership'; userId: string; orgId: string; role: Role | 'none' }
  | { kind: 'add_operation_fault'; fault: OperationFault }
  | { kind: 'clear_operation_faults'; id?: string };

/** Clients that arrive together. */
export interface Arrival {
  computeId: string;
  connections: number;
  forMs?: number;
  reconnects: boolean;
  /** The size that serves them all, in CU. */
  cu?: number;
  /** To name them in events, and to let them leave one by one. */
  groupId?: string;
}

/** Clients arrive: they are let in at once, or wake the compute and wait for it. Nothing wakes a disabled one. */
function connectClients(world: WorldState, arrival: Arrival): Outcome {
  const compute = world.computes.get(arrival.computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  const group: ConnectionGroup = { connections: arrival.connections, reconnects: arrival.reconnects, isBusy: true };
  if (arrival.forMs !== undefined) group.forMs = arrival.forMs;
  if (arrival.cu !== undefined) group.cu = arrival.cu;
  if (arrival.groupId !== undefined) group.id = arrival.groupId;
  compute.waiting.push(group);
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
  return { ok: true, compute, operations: [...compute.queue] };
}

/** Disconnects clients; without a number, all of them. */
function disconnectClients(world: WorldState, computeId: string, connections?: number): Outcome {
  const compute = world.computes.get(computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  disconnect(world, compute, connections);
  return { ok: true, compute, operations: [] };
}

/** Executes an action of one group of clients: work, rest, or leave. */
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
