import type { Dispatcher } from 'undici';
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
  | { kind: 'answer'; status: number; text: string; retryAfter?: string; requestId?: string }
  | {
      kind: 'failure';
      code: ControlApiErrorCode;
      /** False if nothing can have reached the service. */
      mayHaveArrived: boolean;
      message: string;
      requestId?: string;
    };

/** Sends one request once. Never throws; an abort of the signal is a failure `timeout`. */
export type Transport = (request: WireRequest, signal: AbortSignal) => Promise<Exchange>;

/** No connection was made, so nothing was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_PRX_TLS',
  'UND_ERR_INVALID_ARG',
]);
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED']);
const MALFORMED = new Set(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_INVALID_ARG']);

/**
 * The wire: one request to one origin, without redirects (undici follows none) and with the limits of its dispatcher. The
 * base URL's path is put before each request's path.
 */
export function createHttpTransport(options: { baseUrl: URL; dispatcher: Dispatcher; userAgent: string }): Transport {
  const { baseUrl, dispatcher, userAgent } = options;
  const basePath = baseUrl.pathname === '/' ? '' : baseUrl.pathname;

  async function exchange(request: WireRequest, signal: AbortSignal): Promise<Exchange> {
    const { statusCode, headers, body } = await dispatcher.request({
      origin: baseUrl.origin,
      path: `${basePath}${request.path}`,
      method: request.method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${request.key}`,
        'user-agent': userAgent,
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
 * Rejects as soon as the signal aborts. undici alone would not while it still waits for a connection; such a request is not sent
 * any more, it only ends late.
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

function answerHeaders(headers: Record<string, string | string[] | undefined>) {
  const retryAfter = headers['retry-after'];
  const requestId = headers['x-request-id'];
  return {
    ...(typeof retryAfter === 'string' ? { retryAfter } : {}),
    ...(typeof requestId === 'string' ? { requestId } : {}),
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
  return { kind: 'failure', code: 'unavailable', mayHaveArrived, message: text };
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
