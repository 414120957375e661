import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ApiResult, Permit } from '../../ports/control-api.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** One call, without key, rate budget or HTTP. */
export interface ApiCall {
  account: string;
  method: Method;
  /** Path template, e.g. `/projects/{project_id}/endpoints`. There are few, so errors and metrics show them instead of the path. */
  template: string;
  /** Percent-encoded, relative to the base URL, with the query. */
  path: string;
  body?: Readonly<Record<string, unknown>>;
  /** Selects the key where an account has one key for each project. */
  projectId?: string;
  repeatLocked: boolean;
  deadlineMs: number;
  /** By default `lowering` for writes, otherwise `read`. */
  priority?: Priority;
  permit?: Permit;
  requestId?: string;
  signal?: AbortSignal;
}

/** Sends a call once; a successful value is the parsed JSON, undefined for an empty body. */
export type SendOnce = (call: ApiCall, signal: AbortSignal) => Promise<ApiResult<unknown>>;

/** Sends a call, again where that is safe, until it succeeds or its deadline has passed. */
export type Caller = (call: ApiCall) => Promise<ApiResult<unknown>>;

/** The route's name in errors and metrics. */
export function routeOf(call: Pick<ApiCall, 'method' | 'template'>): string {
  return `${call.method} ${call.template}`;
}

/** True if a call without a clear answer may have changed something. */
export function isWrite(call: Pick<ApiCall, 'method'>): boolean {
  return call.method !== 'GET';
}
