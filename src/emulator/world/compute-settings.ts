import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../domain/compute/compute-units.ts';
import type { Plan } from './accounts.ts';
import type { ComputeSettings } from './entities.ts';
import { type Refusal, refuse } from './outcome.ts';

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

/** Why the platform doesn't accept these settings together; undefined if it does. */
export function settingsProblem(
  settings: Pick<ComputeSettings, 'minCu' | 'maxCu' | 'suspendTimeoutSeconds'>,
): string | undefined {
  return sizeProblem(settings.minCu, settings.maxCu) ?? timeoutProblem(settings.suspendTimeoutSeconds);
}

const LARGEST_CU: Record<Plan, number> = { free: 2, launch: 16, scale: 56 };
/** The timeouts that the Launch plan allows: 5 minutes, in both spellings, or never. */
const LAUNCH_TIMEOUTS_SECONDS = [0, 300, -1];

/** Says what a plan forbids of the given changes; a plan that fixes the timeout refuses any value. */
export function planRefusal(plan: Plan, changes: Partial<ComputeSettings>): Refusal | undefined {
  const largestCu = Math.max(changes.minCu ?? 0, changes.maxCu ?? 0);
  if (largestCu > LARGEST_CU[plan]) {
    return refuse('forbidden', `compute size ${largestCu} is not available on the ${plan} plan`).refusal;
  }
  const timeout = changes.suspendTimeoutSeconds;
  const isGated = plan === 'free' || (plan === 'launch' && !LAUNCH_TIMEOUTS_SECONDS.includes(timeout ?? 0));
  if (timeout === undefined || !isGated) return undefined;
  return refuse('precondition', 'modifying the suspend interval is not permitted on this account').refusal;
}
