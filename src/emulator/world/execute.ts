import type { Consumption } from '../fleet.ts';
import type { Plan, Role } from './accounts.ts';
import { advance } from './advance.ts';
import { createBranch, deleteBranch, type NewBranch, renameBranch } from './branches.ts';
import { deleteCompute, restartCompute, startCompute, suspendCompute, updateCompute } from './compute-commands.ts';
import { admitWaiting, disconnect, removeGroup, setBusy } from './connections.ts';
import { createCompute, type NewComputeRequest } from './create-compute.ts';
import type { Compute, ComputeSettings, OperationFault, Project, WorldState } from './entities.ts';
import { createKey, type KeyOwner, type NewKey, revokeKey, setMembership, useKey } from './keys.ts';
import { endExternally, releaseHanging, wakeIfWanted } from './operations.ts';
import { type Execution, findCompute, findProject, LOCKED_MESSAGE, type Outcome, refuse } from './outcome.ts';
import { changePlan, createProject, deleteProject, moveProject, type NewProject, renameProject } from './projects.ts';

const DONE: Outcome = { ok: true, operations: [] };

function clearOperationFaults(world: WorldState, id: string | undefined): Outcome {
  world.operationFaults = world.operationFaults.filter((fault) => id !== undefined && fault.id !== id);
  if (id === undefined) releaseHanging(world);
  return DONE;
}

type Handlers = { [K in Command['kind']]: (world: WorldState, command: Extract<Command, { kind: K }>) => Outcome };

/** Passes the project of the command to its handler. */
function onProject<C extends { projectId: string }>(
  handle: (world: WorldState, project: Project, command: C) => Outcome,
) {
  return (world: WorldState, command: C): Outcome => {
    const project = findProject(world, command.projectId);
    return project.ok ? handle(world, project.value, command) : project;
  };
}

/** Passes the compute of the command to its handler, unless an operation of the project is open. */
function onUnlocked<C extends ComputeIds>(
  handle: (world: WorldState, project: Project, compute: Compute, command: C) => Outcome,
) {
  return onProject<C>((world, project, command) => {
    const compute = findCompute(world, project.id, command.computeId);
    if (!compute.ok) return compute;
    if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
    return handle(world, project, compute.value, command);
  });
}

/** Passes the compute of a command without a project to its handler. */
function onCompute<C extends { computeId: string }>(
  handle: (world: WorldState, compute: Compute, command: C) => Outcome,
) {
  return (world: WorldState, command: C): Outcome => {
    const compute = world.computes.get(command.computeId);
    return compute === undefined ? refuse('not_found', 'endpoint not found') : handle(world, compute, command);
  };
}

const HANDLERS: Handlers = {
  pass_time: () => DONE,
  create_project: (world, { wanted }) => createProject(world, wanted),
  delete_project: onProject(deleteProject),
  rename_project: onProject((world, project, { name }) => renameProject(world, project, name)),
  move_project: onProject((world, project, { orgId }) => moveProject(world, project, orgId)),
  create_branch: onProject((world, project, { wanted }) => createBranch(world, project, wanted)),
  rename_branch: onProject((world, project, { branchId, name }) => renameBranch(world, project, branchId, name)),
  delete_branch: onProject((world, project, { branchId }) => deleteBranch(world, project, branchId)),
  change_plan: (world, { plan, orgId }) => changePlan(world, plan, orgId),
  set_consumption: (world, { changes }) => {
    Object.assign(world.consumption, changes);
    return DONE;
  },
  create_compute: onProject((world, project, { wanted }) => createCompute(world, project, wanted)),
  update_compute: onUnlocked((world, project, compute, { changes }) => updateCompute(world, project, compute, changes)),
  delete_compute: onProject((world, project, { computeId }) => deleteCompute(world, project, computeId)),
  start_compute: onUnlocked(startCompute),
  suspend_compute: onUnlocked(suspendCompute),
  restart_compute: onUnlocked(restartCompute),
  connect: onCompute(connectClients),
  disconnect: onCompute((world, compute, { connections }) => {
    disconnect(world, compute, connections);
    return { ok: true, compute, operations: [] };
  }),
  change_clients: onCompute((world, compute, { groupId, doing }) => {
    if (doing === 'leave') removeGroup(world, compute, groupId);
    else setBusy(world, compute, groupId, doing === 'work');
    return { ok: true, compute, operations: [] };
  }),
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
 * The only function that changes the world. Advances it to `atMs`, or not at all if that is earlier, and executes the command. A refused command
 * changes at most the state of `random`.
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
  /** The size that serves all of these clients, in CU. */
  cu?: number | undefined;
  /** Names these clients in events and in `change_clients`. */
  groupId?: string;
}

/** New clients connect at once, or wake the compute and wait for it. Nothing wakes a disabled one. */
function connectClients(world: WorldState, compute: Compute, arrival: Arrival): Outcome {
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  const { connections, reconnects, forMs, cu, groupId: id } = arrival;
  compute.waiting.push({ connections, reconnects, isBusy: true, forMs, cu, id });
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
  return { ok: true, compute, operations: [...compute.queue] };
}
