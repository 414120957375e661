import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../domain/compute/compute-units.ts';
import type { Plan } from './accounts.ts';
import { planAvailabilityCheck } from './advance.ts';
import type {
  Compute,
  ComputeSettings,
  ComputeState,
  ComputeType,
  OperationAction,
  Project,
  WorldState,
} from './entities.ts';
import { enqueue } from './operations.ts';
import { LOCKED_MESSAGE, type Outcome, type Refused, refuse } from './outcome.ts';
import { nextName } from './random.ts';
import { branchLedger, noUsage } from './usage.ts';

/** The default size of a compute, in CU. */
const DEFAULT_CU = 0.25;

export const DEFAULT_SETTINGS = {
  suspendTimeoutSeconds: 0,
  disabled: false,
  poolerEnabled: false,
  name: undefined,
  pgSettings: {},
};

export interface NewComputeRequest {
  branchId: string;
  type: ComputeType;
  settings: Partial<ComputeSettings>;
}

/** If only one bound is given, the other follows from it. */
function completeSettings({ branchId, settings }: NewComputeRequest): ComputeSettings {
  const minCu = settings.minCu ?? Math.min(DEFAULT_CU, settings.maxCu ?? DEFAULT_CU);
  const maxCu = settings.maxCu ?? Math.max(DEFAULT_CU, minCu);
  return { ...DEFAULT_SETTINGS, ...settings, branchId, minCu, maxCu };
}

/** True if the branch has a read-write compute other than `except`. Invariant: a branch never has two of them. */
export function hasPrimary(project: Project, branchId: string, except?: Compute): boolean {
  return [...project.computes.values()].some(
    (other) => other.branchId === branchId && other.type === 'read_write' && other !== except,
  );
}

/** The reason why a compute can't be added; undefined if it can. */
export function additionRefusal(project: Project, wanted: NewComputeRequest): Refused | undefined {
  const problem = settingsProblem(completeSettings(wanted));
  if (problem !== undefined) return refuse('invalid', problem);
  const refused = planRefusal(project.plan, wanted.settings);
  if (refused) return refused;
  if (!project.branches.has(wanted.branchId)) return refuse('not_found', 'branch not found');
  if (wanted.type === 'read_write' && hasPrimary(project, wanted.branchId)) {
    return refuse('conflict', 'read-write endpoint already exists');
  }
  return undefined;
}

function newComputeId(world: WorldState): string {
  let id = `ep-${nextName(world.random)}`;
  while (world.computes.has(id)) id = `ep-${nextName(world.random)}`;
  return id;
}

/** Adds a compute to a branch. The compute starts after the operations `earlier`. The caller has checked {@link additionRefusal}. */
export function addCompute(
  world: WorldState,
  project: Project,
  wanted: NewComputeRequest,
  earlier: readonly OperationAction[],
): { compute: Compute; operations: ReturnType<typeof enqueue> } {
  const settings = completeSettings(wanted);
  const compute = computeRecord(world, project, {
    id: newComputeId(world),
    type: wanted.type,
    settings,
    state: settings.disabled ? 'idle' : 'init',
    createdAtMs: world.nowMs,
  });
  project.computes.set(compute.id, compute);
  world.computes.set(compute.id, compute);
  planAvailabilityCheck(world, compute);
  const actions = settings.disabled ? earlier : [...earlier, 'start_compute' as const];
  return { compute, operations: enqueue(world, compute, 'request', actions) };
}

/** Creates a compute, which is `init` until its start_compute has ended. A disabled compute is `idle`. */
export function createCompute(world: WorldState, project: Project, wanted: NewComputeRequest): Outcome {
  const refused = additionRefusal(project, wanted);
  if (refused) return refused;
  if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  return { ok: true, ...addCompute(world, project, wanted, []) };
}

/** A compute that was never used. */
export function computeRecord(
  world: WorldState,
  project: Project,
  wanted: { id: string; type: ComputeType; settings: ComputeSettings; state: ComputeState; createdAtMs: number },
): Compute {
  const { id, type, settings, state, createdAtMs } = wanted;
  return {
    id,
    projectId: project.id,
    type,
    ...settings,
    state,
    pendingState: undefined,
    createdAtMs,
    updatedAtMs: createdAtMs,
    lastActiveAtMs: undefined,
    activity: [],
    startedAtMs: undefined,
    suspendedAtMs: undefined,
    queue: [],
    connected: [],
    waiting: [],
    suspensionCheckAtMs: undefined,
    usage: noUsage(world.nowMs),
    ledger: branchLedger(world, project, settings.branchId),
    awake: [],
  };
}

const SHORTEST_TIMEOUT_SECONDS = 60;
const LONGEST_TIMEOUT_SECONDS = 604_800;

function sizeProblem(minCu: number, maxCu: number): string | undefined {
  const unknown = [minCu, maxCu].find((cu) => !COMPUTE_SIZES_CU.includes(cu));
  if (unknown !== undefined) return `compute size ${unknown} is not allowed`;
  if (minCu > maxCu) return 'autoscaling_limit_min_cu must not be greater than autoscaling_limit_max_cu';
  if (minCu === maxCu) return undefined;
  if (maxCu > MAX_AUTOSCALING_CU) return `autoscaling is limited to ${MAX_AUTOSCALING_CU} compute units`;
  if (maxCu - minCu > MAX_AUTOSCALING_SPAN_CU) {
    return `autoscaling range must not span more than ${MAX_AUTOSCALING_SPAN_CU} compute units`;
  }
  return undefined;
}

function timeoutProblem(seconds: number): string | undefined {
  if (seconds === 0 || seconds === -1) return undefined;
  const inRange =
    Number.isInteger(seconds) && seconds >= SHORTEST_TIMEOUT_SECONDS && seconds <= LONGEST_TIMEOUT_SECONDS;
  if (inRange) return undefined;
  return `suspend_timeout_seconds must be -1, 0 or from ${SHORTEST_TIMEOUT_SECONDS} to ${LONGEST_TIMEOUT_SECONDS}`;
}

/** The reason why the platform refuses these settings; undefined if it accepts them. */
export function settingsProblem(
  settings: Pick<ComputeSettings, 'minCu' | 'maxCu' | 'suspendTimeoutSeconds'>,
): string | undefined {
  return sizeProblem(settings.minCu, settings.maxCu) ?? timeoutProblem(settings.suspendTimeoutSeconds);
}

const LARGEST_CU: Record<Plan, number> = { free: 2, launch: 16, scale: 56 };
/** The timeouts that the Launch plan allows: 5 minutes, in both spellings, or never. */
const LAUNCH_TIMEOUTS_SECONDS = [0, 300, -1];

/** The reason why a plan forbids the changes; undefined if it allows them. The free plan refuses any timeout, even the present one. */
export function planRefusal(plan: Plan, changes: Partial<ComputeSettings>): Refused | undefined {
  const largestCu = Math.max(changes.minCu ?? 0, changes.maxCu ?? 0);
  if (largestCu > LARGEST_CU[plan]) {
    return refuse('forbidden', `compute size ${largestCu} is not available on the ${plan} plan`);
  }
  const timeout = changes.suspendTimeoutSeconds;
  const isAllowed = plan === 'scale' || (plan === 'launch' && LAUNCH_TIMEOUTS_SECONDS.includes(timeout ?? 0));
  if (timeout === undefined || isAllowed) return undefined;
  return refuse('precondition', 'modifying the suspend interval is not permitted on this account');
}
