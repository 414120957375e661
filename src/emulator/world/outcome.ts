import type { ApiKey } from './accounts.ts';
import type { Branch, Compute, Operation, Project, WorldEvent, WorldState } from './entities.ts';

export type RefusalCode =
  | 'invalid'
  | 'unauthorised'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'precondition'
  | 'not_ready'
  | 'locked';

/** The reason why a command had no effect. The world is as before. */
export interface Refusal {
  code: RefusalCode;
  message: string;
}

/** The subject of a command, and the operations that it started. */
export interface Done {
  ok: true;
  project?: Project;
  branch?: Branch;
  compute?: Compute;
  key?: ApiKey;
  operations: Operation[];
}

export interface Refused {
  ok: false;
  refusal: Refusal;
}

export type Outcome = Done | Refused;

export interface Execution {
  outcome: Outcome;
  /** The events since the end of the command before this one. */
  events: WorldEvent[];
}

export function refuse(code: RefusalCode, message: string): Refused {
  return { ok: false, refusal: { code, message } };
}

export const LOCKED_MESSAGE =
  'project already has running conflicting operations, scheduling of new ones is prohibited';

type Found<T> = { ok: true; value: T } | Refused;

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
