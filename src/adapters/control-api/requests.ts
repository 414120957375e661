import type { z } from 'zod';
import type { ApiResult, CallOptions } from '../../ports/control-api.ts';
import { malformed } from './answers.ts';
import { type ApiCall, type Caller, type Method, routeOf } from './api-call.ts';
import { describeMismatch, isSafeId } from './wire.ts';

/** A call by its path template, whose `{parameters}` only {@link apiCall} fills in. */
export interface Request {
  account: string;
  method: Method;
  template: string;
  /** Ids by the name of their parameter. */
  ids?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | undefined>>;
  body?: Readonly<Record<string, unknown>>;
  /** The project whose key is used; absent if the path names a project. */
  keyOfProject?: string;
}

const DEFAULT_DEADLINE_MS = 30_000;

/** Sends a request and parses the answer by `schema`. An unsafe id is refused as `invalid` before anything is sent. */
export async function ask<S extends z.ZodType>(
  call: Caller,
  request: Request,
  schema: S,
  options: CallOptions = {},
): Promise<ApiResult<z.output<S>>> {
  const apiRequest = apiCall(request, options);
  const unsafe = Object.entries(request.ids ?? {}).find(([, id]) => !isSafeId(id));
  if (unsafe !== undefined) return invalidId(apiRequest, unsafe[0]);
  const result = await call(apiRequest);
  if (!result.ok) return result;
  const parsed = schema.safeParse(result.value);
  return parsed.success ? { ok: true, value: parsed.data } : malformed(apiRequest, describeMismatch(parsed.error));
}

export function apiCall(request: Request, options: CallOptions): ApiCall {
  const { account, method, template, ids = {}, query = {}, body, keyOfProject } = request;
  const projectId = ids.project_id ?? keyOfProject;
  return {
    account,
    method,
    template,
    path: template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? '')) + queryText(query),
    ...(body === undefined ? {} : { body }),
    ...(projectId === undefined ? {} : { projectId }),
    repeatLocked: options.repeatLocked ?? false,
    deadlineMs: options.deadlineMs ?? DEFAULT_DEADLINE_MS,
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    ...(options.permit === undefined ? {} : { permit: options.permit }),
    ...(options.requestId === undefined ? {} : { requestId: options.requestId }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
}

function queryText(query: NonNullable<Request['query']>): string {
  const defined = Object.entries(query).filter((entry): entry is [string, string | number] => entry[1] !== undefined);
  const text = defined.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  return text === '' ? '' : `?${text}`;
}

function invalidId(call: ApiCall, name: string): ApiResult<never> {
  const message = `not sent: the ${name} holds a character that no id has`;
  return { ok: false, error: { code: 'invalid', route: routeOf(call), account: call.account, message } };
}
