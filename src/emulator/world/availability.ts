import type { Compute, WorldState } from './entities.ts';
import { enqueue } from './operations.ts';
import { nextRandom } from './random.ts';

/** Plans the next check of a compute, half an interval to one and a half from now. */
export function planAvailabilityCheck(world: WorldState, compute: Compute): void {
  if (world.availabilityCheckMs === undefined) return;
  const afterMs = world.availabilityCheckMs * (0.5 + nextRandom(world.random));
  world.due.add(world.nowMs + Math.ceil(afterMs), { kind: 'availability', compute });
}

/** The platform looks whether the compute can be reached. It leaves one alone that is busy, and changes nothing, unless
 * `checksWake` says that it starts one that sleeps. */
export function checkAvailability(world: WorldState, compute: Compute): void {
  if (world.computes.get(compute.id) !== compute) return;
  const project = world.projects.get(compute.projectId);
  const isWoken = world.checksWake && compute.state === 'idle' && !compute.disabled;
  const actions = isWoken ? (['start_compute', 'check_availability'] as const) : (['check_availability'] as const);
  if (project?.openOperations === 0) {
    enqueue(
      world,
      compute,
      'platform',
      actions.map((action) => ({ action })),
    );
  }
  planAvailabilityCheck(world, compute);
}
