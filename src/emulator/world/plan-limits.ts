import type { Plan } from './accounts.ts';
import type { ComputeSettings } from './entities.ts';
import { type Refusal, refuse } from './outcome.ts';

const LARGEST_CU: Record<Plan, number> = { free: 2, launch: 16, scale: 56 };
/** The timeouts that the Launch plan allows: 5 minutes, in both spellings, or never. */
const LAUNCH_TIMEOUTS_SECONDS = [0, 300, -1];

/** What a plan forbids of the given changes; a plan that fixes the timeout refuses to be sent one at all. */
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
