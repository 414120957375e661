import type { Platform } from '../platform.ts';
import type { Answer } from '../wire/answer.ts';

export interface ApiRequest {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** The parsed JSON body; undefined if there is none. */
  body: unknown;
}

export interface Route {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path below `/api/v2`, as the specification writes it: `/projects/{project_id}`. */
  template: string;
  answer(request: ApiRequest, platform: Platform): Answer;
}

/** A path parameter; the router only calls a route whose template has it. */
export function param(request: ApiRequest, name: string): string {
  return request.params[name] ?? '';
}
