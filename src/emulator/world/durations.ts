import type { OperationAction, WorldState } from './entities.ts';
import { nextRandom } from './random.ts';

/** Shortest and longest duration in milliseconds, as seen on the real service (start_compute, apply_config) or near it. */
const RANGES_MS: Record<OperationAction, readonly [number, number]> = {
  start_compute: [900, 4800],
  suspend_compute: [200, 1200],
  apply_config: [49, 87],
  check_availability: [300, 900],
  create_branch: [200, 700],
  create_timeline: [200, 700],
};

/** How long an operation runs. Long ones are rare: the cube of a uniform number puts the median near the short end. */
export function operationDurationMs(world: WorldState, action: OperationAction): number {
  if (world.operationTimeMs !== undefined) return world.operationTimeMs;
  const [shortest, longest] = RANGES_MS[action];
  return Math.round(shortest + (longest - shortest) * nextRandom(world.random) ** 3);
}
