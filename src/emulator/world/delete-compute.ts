import { dropConnections } from './connections.ts';
import type { Compute, Project, WorldState } from './entities.ts';
import { findProject } from './find.ts';
import { touch } from './operations.ts';
import { LOCKED_MESSAGE, type Outcome, refuse } from './outcome.ts';
import { settleUsage } from './usage.ts';

/** Takes a compute out of the world; what it had used stays with its project. */
export function removeCompute(world: WorldState, project: Project, compute: Compute): void {
  settleUsage(compute, world.nowMs);
  dropConnections(world, compute);
  project.computes.delete(compute.id);
  world.computes.delete(compute.id);
  project.deletedUsage.activeMs += compute.usage.activeMs;
  project.deletedUsage.cuMs += compute.usage.cuMs;
  const lastActiveAtMs = Math.max(compute.lastActiveAtMs ?? 0, project.deletedUsage.lastActiveAtMs ?? 0);
  if (lastActiveAtMs > 0) project.deletedUsage.lastActiveAtMs = lastActiveAtMs;
  world.events.push({ type: 'deleted', atMs: world.nowMs, computeId: compute.id });
}

/** Deletes a compute at once, without operations. One that is not there is no error: the answer has no compute. */
export function deleteCompute(world: WorldState, projectId: string, computeId: string): Outcome {
  const project = findProject(world, projectId);
  if (!project.ok) return project;
  const compute = project.value.computes.get(computeId);
  if (compute === undefined) return { ok: true, operations: [] };
  if (project.value.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  removeCompute(world, project.value, compute);
  touch(world, project.value);
  return { ok: true, compute, operations: [] };
}
