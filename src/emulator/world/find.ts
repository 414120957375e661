import type { Compute, Project, WorldState } from './entities.ts';
import { LOCKED_MESSAGE, type Refusal, refuse } from './outcome.ts';

type Found<T> = { ok: true; value: T } | { ok: false; refusal: Refusal };

export function findProject(world: WorldState, projectId: string): Found<Project> {
  const value = world.projects.get(projectId);
  return value === undefined ? refuse('not_found', 'project not found') : { ok: true, value };
}

export function findCompute(world: WorldState, projectId: string, computeId: string): Found<Compute> {
  const project = findProject(world, projectId);
  if (!project.ok) return project;
  const value = project.value.computes.get(computeId);
  return value === undefined ? refuse('not_found', 'endpoint not found') : { ok: true, value };
}

/** A compute that may be changed now: while any operation of its project is open, none may. */
export function findUnlockedCompute(
  world: WorldState,
  projectId: string,
  computeId: string,
): Found<{ project: Project; compute: Compute }> {
  const project = findProject(world, projectId);
  if (!project.ok) return project;
  const compute = findCompute(world, projectId, computeId);
  if (!compute.ok) return compute;
  if (project.value.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  return { ok: true, value: { project: project.value, compute: compute.value } };
}
