import type { Platform } from '../platform.ts';
import type { Answer } from '../wire/render.ts';
import type { ApiKey } from '../world/accounts.ts';
import type { Need } from '../world/permissions.ts';

/** A request before its key is checked. */
export interface ApiRequest {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** The parsed JSON body; undefined if there is none. */
  body: unknown;
}

export interface AuthorisedRequest extends ApiRequest {
  /** Already checked against the route's needs. */
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

/** A path parameter; the router only calls a route whose template has it. */
export function param(request: ApiRequest, name: string): string {
  return request.params[name] ?? '';
}

/** The need of most routes: to see the project of the path. */
export function needsProject(request: ApiRequest): Need {
  return { kind: 'project', projectId: param(request, 'project_id') };
}

type PageLimit = { ok: true; limit: number } | { ok: false; message: string };

/** The `limit` of a page; `max` of the specification, `fallback` if none was sent. */
export function readLimit(text: string | undefined, bounds: { fallback: number; max: number }): PageLimit {
  if (text === undefined) return { ok: true, limit: bounds.fallback };
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= bounds.max) return { ok: true, limit };
  return { ok: false, message: `limit must be an integer from 1 to ${bounds.max}` };
}
