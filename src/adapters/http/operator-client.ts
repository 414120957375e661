import { isoInstant } from '../../domain/time/units.ts';
import { timerMs } from '../../ports/clock.ts';
import type { DecisionDocument } from '../../ports/documents.ts';
import {
  LONGEST_ANSWER_MS,
  type Operator,
  type OperatorError,
  type OperatorResult,
  type Page,
} from '../../ports/operator.ts';
import { API_PATHS, type RouteName } from './api/route-table.ts';

export interface OperatorClientOptions {
  /** The daemon's URL, without a path. */
  url: string;
  /** May be absent for reads, if the daemon allows that. */
  token?: string | undefined;
  /** The caller, as `ann@laptop`; used if the token has no name. */
  from?: string;
  /** {@link LONGEST_ANSWER_MS} by default. */
  answerMs?: number;
}

/** The latest instant of a `Date`. */
const LATEST_MS = 8.64e15;

interface Call {
  id?: string;
  query?: Record<string, string | number | undefined>;
  body?: object;
}

/** The operator of a running daemon, over its HTTP API. Never rejects: a daemon that does not answer is `unavailable`. */
export function createOperatorClient(options: OperatorClientOptions): Operator {
  const ask = <T>(name: RouteName, call: Call = {}) => askDaemon<T>(options, name, call);
  const page = async <T>(name: RouteName, query: Call['query'] = {}): Promise<OperatorResult<Page<T>>> => {
    const result = await ask<{ next: string | null } & Record<string, T[]>>(name, { query });
    return result.ok ? { ok: true, value: { items: result.value[name] ?? [], next: result.value.next } } : result;
  };
  return {
    status: ({ owner, select } = {}) => ask('status', { query: { owner, select: select && JSON.stringify(select) } }),
    computes: (query) => page('computes', { ...query }),
    async decisions({ compute, limit }) {
      const result = await ask<{ decisions: DecisionDocument[] }>('decisions', { query: { compute, limit } });
      return result.ok ? { ok: true, value: result.value.decisions } : result;
    },
    audit({ sinceMs, untilMs, ...query }) {
      const until = untilMs < LATEST_MS ? isoInstant(untilMs) : undefined;
      return page('audit', { ...query, since: isoInstant(sinceMs), until });
    },
    holds: (query) => page('holds', { ...query }),
    hold: ({ size, suspendTimeoutSeconds, forSeconds, ...body }) =>
      ask('hold', {
        body: {
          ...body,
          for_seconds: forSeconds,
          ...(size && { size: { min_cu: size.minCu, max_cu: size.maxCu } }),
          ...(suspendTimeoutSeconds !== undefined && { suspend_timeout_seconds: suspendTimeoutSeconds }),
        },
      }),
    release: (body) => ask('release', { body }),
    freezes: (query) => page('freezes', { ...query }),
    freeze: ({ forSeconds, allowRaise, ...body }) =>
      ask('freeze', { body: { ...body, for_seconds: forSeconds, allow_raise: allowRaise } }),
    unfreeze({ id, owner, confirm, preview }) {
      const query = { owner, confirm, ...(preview && { preview: 'true' }) };
      return id === 'all' ? ask('unfreezeAll', { query }) : ask('unfreeze', { id, query });
    },
    approve: (body) => ask('approve', { body }),
    restore: (body) => ask('restore', { body }),
    records: (query) => page('records', { ...query }),
    readings: (query) => page('readings', { ...query }),
    usage: (query) => page('usage', { ...query }),
    costs: () => ask('costs'),
    waste: (query) => ask('waste', { query: { ...query } }),
    notifications: () => ask('notifications'),
    retryOrDropNotifications: (body) => ask('retryOrDropNotifications', { body }),
  };
}

const METHODS = { get: 'GET', post: 'POST', delete: 'DELETE' } as const;

async function askDaemon<T>(
  { url, token, from, answerMs = LONGEST_ANSWER_MS }: OperatorClientOptions,
  name: RouteName,
  { id = '', query = {}, body }: Call,
): Promise<OperatorResult<T>> {
  const [method, path] = API_PATHS[name];
  const defined = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(defined.map(([key, value]): [string, string] => [key, String(value)]));
  const target = `${url}/api/v1${path.replace('{id}', encodeURIComponent(id))}?${search}`;
  const headers = {
    accept: 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(from !== undefined && /^[\x21-\x7e]+$/.test(from) && { from }),
    ...(body && { 'content-type': 'application/json' }),
  };
  try {
    // biome-ignore lint/style/noRestrictedGlobals: this is the own daemon, and undici takes a tenth of a command to load.
    const answer = await fetch(target, {
      method: METHODS[method],
      headers,
      // A redirect would give the token to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(timerMs(answerMs)),
      body: body ? JSON.stringify(body) : null,
    });
    const text = await answer.text();
    return answer.ok ? { ok: true, value: JSON.parse(text) } : errorOf(answer.status, text, url);
  } catch (error) {
    const { cause = error } = error as Error;
    const { code = 'no answer' } = cause as NodeJS.ErrnoException;
    return { ok: false, error: { code: 'unavailable', message: `the daemon at ${url} can't be asked (${code})` } };
  }
}

const CODES: ReadonlySet<string> = new Set<OperatorError['code']>([
  'invalid',
  'forbidden',
  'not_found',
  'full',
  'busy',
  'unconfirmed',
]);

function errorOf(status: number, text: string, url: string): { ok: false; error: OperatorError } {
  const { code, message } = parse(text);
  if (CODES.has(code)) return { ok: false, error: { code: code as OperatorError['code'], message } };
  return { ok: false, error: { code: 'unavailable', message: `the daemon at ${url} answers ${status}: ${message}` } };
}

function parse(text: string): { code: string; message: string } {
  try {
    const { code, message } = JSON.parse(text);
    return { code: String(code), message: String(message).slice(0, 300) };
  } catch {
    return { code: '', message: 'this is not JSON: does ebb run there?' };
  }
}
