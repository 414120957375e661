import { advance } from './advance.ts';
import type { Command, Execution, Outcome } from './commands.ts';
import { connectClients, disconnectClients } from './connect.ts';
import type { WorldState } from './entities.ts';
import { releaseHanging } from './operations.ts';
import { restartCompute, startCompute, suspendCompute } from './power-compute.ts';
import { updateCompute } from './update-compute.ts';

const DONE: Outcome = { ok: true, operations: [] };

function clearOperationFaults(world: WorldState, id: string | undefined): Outcome {
  world.operationFaults = world.operationFaults.filter((fault) => id !== undefined && fault.id !== id);
  if (id === undefined) releaseHanging(world);
  return DONE;
}

function carryOut(world: WorldState, command: Command): Outcome {
  switch (command.kind) {
    case 'pass_time':
      return DONE;
    case 'update_compute':
      return updateCompute(world, command.projectId, command.computeId, command.changes);
    case 'start_compute':
      return startCompute(world, command.projectId, command.computeId);
    case 'suspend_compute':
      return suspendCompute(world, command.projectId, command.computeId);
    case 'restart_compute':
      return restartCompute(world, command.projectId, command.computeId);
    case 'connect':
      return connectClients(world, command);
    case 'disconnect':
      return disconnectClients(world, command.computeId, command.connections);
    case 'add_operation_fault':
      world.operationFaults.push(command.fault);
      return DONE;
    case 'clear_operation_faults':
      return clearOperationFaults(world, command.id);
  }
}

/**
 * The one way in which the world changes: lets time pass to `atMs` (an earlier instant counts as now), then carries the
 * command out. A refused command changes nothing.
 */
export function execute(world: WorldState, command: Command, atMs: number): Execution {
  advance(world, atMs);
  const outcome = carryOut(world, command);
  const events = world.events;
  world.events = [];
  return { outcome, events };
}
