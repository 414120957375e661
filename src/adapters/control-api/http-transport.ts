import type { Dispatcher } from 'undici';
import { isLoopbackHost } from '../../common/loopback.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApiErrorCode } from '../../ports/control-api.ts';
import type { Method } from './api-call.ts';

/** One HTTP request as it will be on the wire. */
export interface WireRequest {
  method: Method;
  /** Percent-encoded, relative to the base URL. */
  path: string;
  /** JSON text; absent for a request without a body. */
  body?: string;
  requestId: string;
  key: string;
}

/** The answer to a request, of any status, or the failure to get one. */
export type Exchange =
  | {
      kind: 'answer';
      status: number;
      text: string;
      retryAfter?: string;
      requestId?: string;
      /** The value of the first rate limit header. */
      rateLimit?: string;
    }
  | {
      kind: 'failure';
      code: ControlApiErrorCode;
      /** False if nothing can have reached the service. */
      mayHaveArrived: boolean;
      message: string;
      requestId?: string;
      /** No connection could be made, and the attempt has not taken long. */
      noConnection?: true;
    };

/** Sends one request once. Never throws; an abort of the signal is a failure `timeout`. */
export type Transport = (request: WireRequest, signal: AbortSignal) => Promise<Exchange>;

/** The system knows no way to the API, or nothing listens there. */
const NO_CONNECTION = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];
/** No connection was made, so nothing was sent. */
const NOT_SENT = new Set([...NO_CONNECTION, 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_PRX_TLS', 'UND_ERR_INVALID_ARG']);
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED']);
const MALFORMED = new Set(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_INVALID_ARG']);

/**
 * Sends one request to one origin, without redirects (undici follows none) and with the limits of its dispatcher. The
 * base URL's path is put before each request's path.
 */
export function createHttpTransport({
  baseUrl,
  dispatcher,
}: {
  baseUrl: URL;
  dispatcher: () => Promise<Pick<Dispatcher, 'request'>>;
}): Transport {
  const basePath = baseUrl.pathname === '/' ? '' : baseUrl.pathname;

  async function exchange(request: WireRequest, signal: AbortSignal): Promise<Exchange> {
    const { statusCode, headers, body } = await (await dispatcher()).request({
      origin: baseUrl.origin,
      path: `${basePath}${request.path}`,
      method: request.method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${request.key}`,
        'user-agent': 'ebb',
        'x-request-id': request.requestId,
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: request.body ?? null,
      signal,
    });
    const text = await body.text();
    return { kind: 'answer', status: statusCode, text, requestId: request.requestId, ...answerHeaders(headers) };
  }

  return async (request, signal) => {
    try {
      return await orAborted(exchange(request, signal), signal);
    } catch (error) {
      return { ...failureOf(error, signal), requestId: request.requestId };
    }
  };
}

/**
 * Rejects as soon as the signal aborts. While undici waits for a connection, its own promise would reject only later, although the request
 * is no longer sent.
 */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** `RateLimit-Limit` and its older forms; `RateLimit` and `RateLimit-Policy` of the IETF drafts. */
const RATE_LIMIT = /^(x-)?rate-?limit(-limit|-policy)?$/;

function answerHeaders(headers: Record<string, string | string[] | undefined>) {
  const retryAfter = headers['retry-after'];
  const requestId = headers['x-request-id'];
  const rateLimit = Object.entries(headers).find(([name]) => RATE_LIMIT.test(name))?.[1];
  return {
    ...(typeof retryAfter === 'string' ? { retryAfter } : {}),
    ...(typeof requestId === 'string' ? { requestId } : {}),
    ...(rateLimit === undefined ? {} : { rateLimit: String(rateLimit).slice(0, 100) }),
  };
}

function failureOf(error: unknown, signal: AbortSignal): Exchange {
  if (signal.aborted)
    return { kind: 'failure', code: 'timeout', mayHaveArrived: true, message: `no answer: ${whyAborted(signal)}` };
  const code = codeOf(error);
  const mayHaveArrived = !NOT_SENT.has(code) && !code.startsWith('ERR_TLS') && !code.startsWith('CERT_');
  const message = error instanceof Error ? error.message : 'unknown failure';
  const text = code === '' || message.includes(code) ? message : `${message} (${code})`;
  if (TIMEOUTS.has(code)) return { kind: 'failure', code: 'timeout', mayHaveArrived, message: text };
  if (MALFORMED.has(code) || code.startsWith('HPE_'))
    return { kind: 'failure', code: 'malformed', mayHaveArrived, message: text };
  const failure = { kind: 'failure', code: 'unavailable', mayHaveArrived, message: text } as const;
  return NO_CONNECTION.includes(code) ? { ...failure, noConnection: true } : failure;
}

export function whyAborted(signal: AbortSignal): string {
  return signal.reason instanceof Error ? signal.reason.message : 'aborted';
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // A connection to several addresses fails with one error for each.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return 'cause' in error ? codeOf(error.cause) : '';
}

/** The abort reason of a signal whose deadline has passed. */
export class DeadlinePassed extends Error {
  override name = 'DeadlinePassed';
}

const expiries = new WeakMap<AbortSignal, () => void>();

/**
 * Aborts a signal of {@link underDeadline} whose deadline has passed although its timer has not run yet, as after the machine slept. To be
 * called right before something is sent.
 */
export function expireIfLate(signal: AbortSignal): void {
  expiries.get(signal)?.();
}

const ENDED = 'the work has ended';

/**
 * Runs `work` under a signal that aborts when `deadlineMs` have passed or one of `parents` aborts, whichever is first. AbortSignal.any is
 * not used, since each call would leave an entry on a long-lived parent; nor the clock's `timeout`, since the process could end before it.
 */
export async function underDeadline<T>(
  options: { deadlineMs: number; parents: readonly AbortSignal[]; clock: Pick<Clock, 'monotonicMs' | 'wait'> },
  work: (signal: AbortSignal, remainingMs: () => number) => Promise<T>,
): Promise<T> {
  const { deadlineMs, parents, clock } = options;
  const controller = new AbortController();
  const endMs = clock.monotonicMs() + deadlineMs;
  const expire = () => controller.abort(new DeadlinePassed('the deadline has passed'));
  const ended = new AbortController();
  clock.wait(deadlineMs, ended.signal).then(expire, () => {});
  expiries.set(controller.signal, () => clock.monotonicMs() >= endMs && expire());
  const follow = () => controller.abort(parents.find((parent) => parent.aborted)?.reason);
  for (const parent of parents) parent.addEventListener('abort', follow, { once: true });
  if (parents.some((parent) => parent.aborted)) follow();
  try {
    return await work(controller.signal, () => endMs - clock.monotonicMs());
  } finally {
    // Without a reason, `abort` would create an error with a stack for each call.
    ended.abort(ENDED);
    for (const parent of parents) parent.removeEventListener('abort', follow);
  }
}

/** Limits for the parts of an exchange, milliseconds; the call's deadline applies as well. */
export interface Timeouts {
  connectMs: number;
  /** From the request to the answer's headers. */
  headersMs: number;
  /** Between two pieces of the body. */
  bodyMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, headersMs: 10_000, bodyMs: 10_000 };

/** A page of 400 projects is about half a megabyte. */
export const DEFAULT_MAX_BODY_BYTES = 8 * 1024 * 1024;

/** The way to the API through a proxy. */
export interface ViaProxy {
  /** `http://[USER:PASSWORD@]HOST:PORT`, or https. */
  url: string;
  /** Hosts that are reached directly, as in NO_PROXY. */
  except: string;
}

/**
 * More than are ever needed, since a request that waits for a connection is sent later than the rate budget granted. A service that takes
 * 3 s for each of 40 requests a second needs 120.
 */
const MAX_CONNECTIONS = 128;

/**
 * Loads undici, which takes a tenth of the time of a command: most commands send nothing. A daemon does so at its start, since the first
 * request's deadline includes it. It is the default export, since a bundled CommonJS package has no other when it is imported dynamically.
 */
export const loadHttpClient = async () => (await import('undici')).default;

/** A keep-alive pool. It ignores environment variables, and never uses a proxy for loopback. */
export async function createDispatcher(options: {
  baseUrl: URL;
  timeouts: Timeouts;
  maxBodyBytes: number;
  proxy?: ViaProxy | undefined;
}): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await loadHttpClient();
  const { baseUrl, timeouts, maxBodyBytes, proxy } = options;
  const limits = {
    connections: MAX_CONNECTIONS,
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    maxResponseSize: maxBodyBytes,
  };
  if (proxy === undefined || isLoopbackHost(baseUrl.hostname)) return new Agent(limits);
  return new EnvHttpProxyAgent({ ...limits, httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except });
}
