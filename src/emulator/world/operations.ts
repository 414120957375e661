import { admitWaiting, dropConnections, markActive, rejectWaiting } from './connections.ts';
import type {
  Compute,
  ComputeSettings,
  ComputeState,
  FaultOutcome,
  Operation,
  OperationAction,
  OperationFault,
  OperationStatus,
  Project,
  WorldState,
} from './entities.ts';
import { type Outcome, refuse } from './outcome.ts';
import { nextRandom, nextUuid } from './random.ts';
import { planSuspension } from './suspension.ts';
import { addUsage, branchLedger } from './usage.ts';

/** Shortest and longest duration in milliseconds: measured for start_compute and apply_config, estimated for the others. */
const DURATIONS_MS: Record<OperationAction, readonly [number, number]> = {
  start_compute: [900, 4800],
  suspend_compute: [200, 1200],
  apply_config: [49, 87],
  check_availability: [300, 900],
  create_branch: [200, 700],
  create_timeline: [200, 700],
};

/** Long durations are rare: the cube of a uniform number puts the median near the short end. */
function operationDurationMs(world: WorldState, action: OperationAction): number {
  if (world.operationTimeMs !== undefined) return world.operationTimeMs;
  const [shortest, longest] = DURATIONS_MS[action];
  return Math.round(shortest + (longest - shortest) * nextRandom(world.random) ** 3);
}

/** How long an operation of the platform is in `scheduling`, and a cancelled one in `cancelling`, in milliseconds. */
const SCHEDULING_MS = 50;
/** At least this many of a project's newest operations are kept, and at most twice as many. */
const OPERATIONS_KEPT = 50_000;

export interface NewOperation {
  action: OperationAction;
  restarts?: true;
  rollback?: ComputeSettings;
}

/** The state of a compute after such an operation. */
const PENDING_STATE: Partial<Record<OperationAction, ComputeState>> = {
  start_compute: 'active',
  suspend_compute: 'idle',
};

/** Updates `updated_at` of the project and the compute after a change, as `projectUpdatedAt` and `computeUpdatedAt` say. */
export function touch(world: WorldState, project: Project, compute?: Compute): void {
  if (compute === undefined || world.projectUpdatedAt === 'moves') project.updatedAtMs = world.nowMs;
  if (compute !== undefined && world.projectUpdatedAt === 'late') touchLate(project, world.nowMs);
  if (compute !== undefined && world.behaviours.computeUpdatedAt === 'moves') compute.updatedAtMs = world.nowMs;
}

/** Notes a change whose delay begins now. If the delay of the change before is over, that change stays visible. */
function touchLate(project: Project, nowMs: number): void {
  project.updatedAtMs = shownUpdatedAtMs(project, nowMs);
  project.lateUpdateMs = nowMs;
}

/** The delay of a project's `updated_at` with `projectUpdatedAt: late`. */
const LATE_MS = 30_000;

/** The project's `updated_at` as the API shows it at `nowMs`. */
export function shownUpdatedAtMs({ updatedAtMs, lateUpdateMs }: Project, nowMs: number): number {
  return lateUpdateMs !== undefined && nowMs - lateUpdateMs >= LATE_MS ? lateUpdateMs : updatedAtMs;
}

/** Unique, since the cursors of operation pages are these numbers. */
function nextMicros(world: WorldState): number {
  world.lastMicros = Math.max(world.nowMs * 1000, world.lastMicros + 1);
  return world.lastMicros;
}

function setStatus(world: WorldState, operation: Operation, status: OperationStatus): void {
  operation.status = status;
  operation.updatedAtMs = world.nowMs;
  const { id: operationId, projectId, computeId, action } = operation;
  world.events.push({ type: 'operation', atMs: world.nowMs, projectId, computeId, operationId, action, status });
}

function createOperation(world: WorldState, project: Project, branchId: string, wanted: NewOperation): Operation {
  const operation: Operation = {
    id: nextUuid(world.random),
    projectId: project.id,
    branchId,
    status: 'scheduling',
    failuresCount: 0,
    createdAtMicros: nextMicros(world),
    updatedAtMs: world.nowMs,
    ...wanted,
  };
  project.operations.push(operation);
  if (project.operations.length > 2 * OPERATIONS_KEPT) {
    project.operations.splice(0, project.operations.length - OPERATIONS_KEPT);
  }
  project.openOperations += 1;
  return operation;
}

/** Sets the pending state: the state after the last operation in the queue that changes the state. */
function updatePendingState(compute: Compute): void {
  compute.pendingState = compute.queue
    .map(({ action }) => PENDING_STATE[action])
    .findLast((state) => state !== undefined);
}

/**
 * Appends operations to a compute's queue. If the queue was empty, the first operation begins: at once for a request, and after a time in
 * `scheduling` for the platform.
 */
export function enqueue(
  world: WorldState,
  compute: Compute,
  by: 'request' | 'platform',
  wanted: readonly (OperationAction | NewOperation)[],
): Operation[] {
  const project = world.projects.get(compute.projectId);
  if (project === undefined) return [];
  const wasQuiet = compute.queue.length === 0;
  const added = wanted.map((next) => {
    const newOperation = typeof next === 'string' ? { action: next } : next;
    const operation = createOperation(world, project, compute.branchId, newOperation);
    operation.computeId = compute.id;
    compute.queue.push(operation);
    return operation;
  });
  const [first] = added;
  if (wasQuiet && first !== undefined) {
    if (by === 'request') begin(world, first);
    else world.due.add(world.nowMs + SCHEDULING_MS, { kind: 'operation', operation: first });
  }
  updatePendingState(compute);
  touch(world, project, compute);
  return added;
}

/** Starts an operation that belongs to no compute. */
export function startProjectOperation(
  world: WorldState,
  project: Project,
  branchId: string,
  action: OperationAction,
): Operation {
  const operation = createOperation(world, project, branchId, { action });
  begin(world, operation);
  touch(world, project);
  return operation;
}

function matches(fault: OperationFault, operation: Operation): boolean {
  return (
    fault.remaining !== 0 &&
    (fault.action ?? operation.action) === operation.action &&
    (fault.computeId ?? operation.computeId) === operation.computeId &&
    (fault.projectId ?? operation.projectId) === operation.projectId
  );
}

function takeFault(world: WorldState, operation: Operation): FaultOutcome | undefined {
  const fault = world.operationFaults.find(
    (candidate) => matches(candidate, operation) && nextRandom(candidate.random) < candidate.share,
  );
  if (fault?.remaining !== undefined) fault.remaining -= 1;
  return fault?.outcome;
}

const END_STATUS: Record<Exclude<FaultOutcome, 'hang'>, OperationStatus> = {
  fail: 'failed',
  error: 'error',
  cancel: 'cancelled',
  skip: 'skipped',
};

function begin(world: WorldState, operation: Operation): void {
  setStatus(world, operation, 'running');
  const outcome = takeFault(world, operation);
  if (outcome === 'hang') {
    operation.hangs = true;
    return;
  }
  if (outcome !== undefined) operation.endsAs = END_STATUS[outcome];
  else if (world.hasRealServers && PENDING_STATE[operation.action] !== undefined) return;
  world.due.add(world.nowMs + operationDurationMs(world, operation.action), { kind: 'operation', operation });
}

function close(world: WorldState, project: Project, operation: Operation, status: OperationStatus): void {
  operation.endedAtMs = world.nowMs;
  project.openOperations -= 1;
  setStatus(world, operation, status);
}

/** Takes an ended operation off its compute's queue. If the operation failed or was cancelled, the rest of the queue is cancelled, too. */
function finishCompute(world: WorldState, project: Project, compute: Compute, operation: Operation): void {
  compute.queue = compute.queue.filter((other) => other !== operation);
  if (operation.status !== 'finished' && operation.status !== 'skipped') {
    failEffect(world, compute, operation);
    for (const waiting of compute.queue.splice(0)) close(world, project, waiting, 'cancelled');
  } else if (operation.status === 'finished') {
    if (operation.action === 'start_compute') finishStart(world, compute);
    if (operation.action === 'suspend_compute') finishSuspend(world, compute, operation);
  }
  const next = compute.queue[0];
  if (next !== undefined) begin(world, next);
  updatePendingState(compute);
  touch(world, project, compute);
  wakeIfWanted(world, compute);
  planSuspension(world, compute);
}

function end(world: WorldState, operation: Operation): void {
  const project = world.projects.get(operation.projectId);
  if (project === undefined) return;
  const status = operation.endsAs ?? 'finished';
  if (status === 'failed' || status === 'error') {
    operation.failuresCount = 1;
    operation.error ??= `${operation.action} failed: injected by a fault`;
  }
  close(world, project, operation, status);
  const compute = operation.computeId === undefined ? undefined : project.computes.get(operation.computeId);
  if (compute === undefined) touch(world, project);
  else finishCompute(world, project, compute, operation);
}

/** Takes the next step of an operation. A scheduled operation begins. A running one ends; if a fault cancels it, it is first `cancelling`. */
export function proceed(world: WorldState, operation: Operation): void {
  if (operation.status === 'scheduling') begin(world, operation);
  else if (operation.status === 'running' && operation.endsAs === 'cancelled') {
    setStatus(world, operation, 'cancelling');
    world.due.add(world.nowMs + SCHEDULING_MS, { kind: 'operation', operation });
  } else end(world, operation);
}

/** Clients that wait for a sleeping compute start it; nothing starts a disabled one. */
export function wakeIfWanted(world: WorldState, compute: Compute): void {
  const isAsleep = compute.state !== 'active' && compute.queue.length === 0;
  if (isAsleep && compute.waiting.length > 0 && !compute.disabled) {
    enqueue(world, compute, 'platform', ['start_compute']);
  }
}

/** Ends every operation that hangs by a fault. */
export function releaseHanging(world: WorldState): void {
  for (const project of world.projects.values()) {
    for (const operation of project.operations) {
      if (operation.hangs !== true) continue;
      delete operation.hangs;
      if (operation.status === 'running') end(world, operation);
    }
  }
}

/** Ends an operation that a real server has carried out; `error` says why it failed. */
export function endExternally(
  world: WorldState,
  projectId: string,
  operationId: string,
  error: string | undefined,
): Outcome {
  const project = world.projects.get(projectId);
  const operation = project?.operations.findLast(({ id }) => id === operationId);
  if (operation?.status !== 'running') return refuse('not_found', 'no such operation runs');
  if (error !== undefined) {
    operation.endsAs = 'failed';
    operation.error = error;
  }
  end(world, operation);
  return { ok: true, operations: [operation] };
}

/** At most this many awake spans of a compute are kept. */
const MAX_AWAKE_SPANS = 20_000;

/** Changes the state, and first adds up the usage of the old state. Every change of state must go through this function. */
function enterState(world: WorldState, compute: Compute, state: ComputeState): void {
  addUsage(compute, world.nowMs);
  const last = compute.awake.at(-1);
  if (state === 'active' && compute.state !== 'active') compute.awake.push({ fromMs: world.nowMs });
  if (state !== 'active' && last !== undefined && compute.state === 'active') last.toMs = world.nowMs;
  if (compute.awake.length > MAX_AWAKE_SPANS) compute.awake.shift();
  compute.state = state;
  world.events.push({ type: 'state', atMs: world.nowMs, computeId: compute.id, state });
}

function finishStart(world: WorldState, compute: Compute): void {
  enterState(world, compute, 'active');
  compute.startedAtMs = world.nowMs;
  markActive(world, compute);
  admitWaiting(world, compute);
}

/** Invariant: connections end exactly when the compute leaves `active`, unless `restartDrops` keeps them. */
function finishSuspend(world: WorldState, compute: Compute, operation: Operation): void {
  if (compute.state !== 'active') return;
  if (operation.restarts) compute.usage.restarts += 1;
  dropConnections(world, compute, operation.restarts ? world.behaviours.restartDrops : 'all');
  enterState(world, compute, 'idle');
  compute.suspendedAtMs = world.nowMs;
}

/**
 * Rolls the settings back after a failed or cancelled operation; the compute keeps its state. Clients that wait for the start that failed get an
 * error, since they would otherwise start the compute again and again.
 */
function failEffect(world: WorldState, compute: Compute, operation: Operation): void {
  if (operation.action === 'start_compute') rejectWaiting(world, compute);
  if (operation.rollback === undefined) return;
  addUsage(compute, world.nowMs);
  Object.assign(compute, operation.rollback);
  const project = world.projects.get(compute.projectId);
  if (project !== undefined) compute.ledger = branchLedger(world, project, compute.branchId);
}
