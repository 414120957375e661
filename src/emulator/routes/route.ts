import type { Platform } from '../platform.ts';
import { type Answer, errorAnswer, refusalAnswer } from '../wire/render.ts';
import type { ApiKey } from '../world/accounts.ts';
import type { Project, WorldState } from '../world/entities.ts';
import { type Done, findProject, type Outcome } from '../world/outcome.ts';
import type { Need } from '../world/permissions.ts';

/** A request before its key is checked. */
export interface ApiRequest {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** Parsed JSON. */
  body: unknown;
}

export interface AuthorisedRequest extends ApiRequest {
  /** The key has the permission that the route needs. */
  key: ApiKey;
}

export interface Route {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path below `/api/v2`, as the specification writes it: `/projects/{project_id}`. */
  template: string;
  /** The permission that the key needs. */
  needs(request: ApiRequest): Need;
  answer(request: AuthorisedRequest, platform: Platform): Answer;
}

export function param(request: ApiRequest, name: string): string {
  return request.params[name] ?? '';
}

/** The need of most routes: to see the project of the path. */
export function needsProject(request: ApiRequest): Need {
  return { kind: 'project', projectId: param(request, 'project_id') };
}

/** A route that reads from the project of the path. */
export function readRoute(
  template: string,
  answer: (project: Project, request: AuthorisedRequest, world: WorldState) => Answer,
): Route {
  return {
    method: 'GET',
    template,
    needs: needsProject,
    answer(request, platform) {
      const world = platform.world();
      const project = findProject(world, param(request, 'project_id'));
      return project.ok ? answer(project.value, request, world) : refusalAnswer(project.refusal);
    },
  };
}

/** Shows the subject of an executed command. */
export function outcomeAnswer<F extends 'project' | 'branch' | 'key'>(
  outcome: Outcome,
  field: F,
  show: (subject: NonNullable<Done[F]>) => unknown,
): Answer {
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const subject = outcome[field];
  return subject ? { status: 200, body: show(subject) } : errorAnswer(500, `incomplete ${field}`);
}

/** Parses the `limit` of a page. `fallback` is the limit of a request without one. */
export function readLimit(
  text: string | undefined,
  bounds: { fallback: number; max: number },
): { ok: true; limit: number } | { ok: false; message: string } {
  if (text === undefined) return { ok: true, limit: bounds.fallback };
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= bounds.max) return { ok: true, limit };
  return { ok: false, message: `limit must be an integer from 1 to ${bounds.max}` };
}
