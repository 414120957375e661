import type { Dispatcher } from 'undici';
import { CERTIFICATE_ERROR } from '../../common/certificate-errors.ts';
import type { ControlApiErrorCode } from '../../ports/control-api.ts';
import type { Method } from './api-call.ts';
import { whyAborted } from './deadline.ts';

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
export type Exchange = {
  /** When the request was sent, after its waits; absent where nothing was. */
  sentAtMonotonicMs?: number;
} & (
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
    }
);

/** Sends one request once. Never throws; an abort of the signal is a failure `timeout`. */
export type Transport = (request: WireRequest, signal: AbortSignal) => Promise<Exchange>;

/** The system knows no way to the API, or nothing listens there. */
const NO_CONNECTION = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];
/** With these codes nothing was sent. */
const NOT_SENT = new Set([...NO_CONNECTION, 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_PRX_TLS', 'UND_ERR_INVALID_ARG']);
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED']);
/** Answers beyond the limits, and requests that undici refuses to send. A repeat would fail in the same way. */
const MALFORMED = new Set(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_INVALID_ARG']);

/** Sends requests to one origin, each once, below the base URL's path. Redirects are not followed. The dispatcher has the limits. */
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
  // Certificate errors come from the first handshake, before anything is sent. Codes `ERR_SSL…` are none of them: they may come after a request.
  const mayHaveArrived = !NOT_SENT.has(code) && !CERTIFICATE_ERROR.test(code);
  const message = error instanceof Error ? error.message : 'unknown failure';
  const text = code === '' || message.includes(code) ? message : `${message} (${code})`;
  if (TIMEOUTS.has(code)) return { kind: 'failure', code: 'timeout', mayHaveArrived, message: text };
  if (MALFORMED.has(code) || code.startsWith('HPE_'))
    return { kind: 'failure', code: 'malformed', mayHaveArrived, message: text };
  const failure = { kind: 'failure', code: 'unavailable', mayHaveArrived, message: text } as const;
  return NO_CONNECTION.includes(code) ? { ...failure, noConnection: true } : failure;
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // A connection to several addresses fails with one error for each.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return 'cause' in error ? codeOf(error.cause) : '';
}
