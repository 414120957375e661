import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../domain/compute/compute-units.ts';
import type { ComputeSettings } from './entities.ts';

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
