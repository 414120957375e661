import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { oneLine } from '../../common/safe-text.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, ControlApiError, ControlApiErrorCode } from '../../ports/control-api.ts';
import { type ApiCall, isWrite, routeOf } from './api-call.ts';
import type { Exchange } from './http-transport.ts';

const CODE_BY_STATUS: Readonly<Record<number, ControlApiErrorCode>> = {
  401: 'unauthorised',
  402: 'forbidden',
  403: 'forbidden',
  404: 'not_found',
  408: 'timeout',
  409: 'conflict',
  410: 'not_found',
  412: 'precondition',
  422: 'not_ready',
  423: 'locked',
  429: 'throttled',
};

/** The service's error body. Without it, the status alone decides. */
const ErrorBody = z.object({
  message: z.string().optional(),
  code: z.string().optional(),
  request_id: z.string().optional(),
});

interface ResultOptions {
  redactor: Redactor;
  clock: Pick<Clock, 'realDelayMs'>;
}

/** Turns an exchange into the parsed JSON, or an error of the port with every secret redacted. */
export function resultOf(call: ApiCall, exchange: Exchange, options: ResultOptions): ApiResult<unknown> {
  const { redactor } = options;
  if (exchange.kind === 'failure') {
    const { code, message, mayHaveArrived, requestId, noConnection } = exchange;
    const id = mayHaveArrived && requestId !== undefined ? { requestId } : {};
    const details = { code, message: redactor.clean(message), mayHaveTakenEffect: mayHaveArrived, ...id };
    return failed(call, noConnection ? { ...details, noConnection } : details);
  }
  const { status, text } = exchange;
  if (status < 200 || status > 299) return refused(call, exchange, options);
  if (text.trim() === '') return { ok: true, value: undefined };
  const value = parseJson(text);
  if (value !== undefined) return { ok: true, value };
  return failed(call, { code: 'malformed', message: 'the answer is not JSON', mayHaveTakenEffect: true, status });
}

/** The error for a 2xx answer that does not have the specified form. The call took effect, but its result is unknown. */
export function malformed(call: ApiCall, message: string): { ok: false; error: ControlApiError } {
  return failed(call, { code: 'malformed', message, mayHaveTakenEffect: true });
}

function refused(
  call: ApiCall,
  answer: Extract<Exchange, { kind: 'answer' }>,
  { redactor, clock }: ResultOptions,
): ApiResult<never> {
  const { status, text, retryAfter } = answer;
  const body = ErrorBody.safeParse(parseJson(text));
  const refusal = body.success ? (body.data.message ?? body.data.code ?? '') : '';
  const requestId = body.data?.request_id ?? answer.requestId;
  const retryAfterMs = parseRetryAfter(retryAfter, clock);
  const code = codeOf(status);
  return failed(call, {
    code,
    message: oneLine(redactor.clean(refusal === '' ? describe(status) : refusal)),
    // The service refuses a 4xx other than 408 and, by its own statement, a 503 before it does anything.
    mayHaveTakenEffect: code === 'timeout' || code === 'malformed' || (code === 'unavailable' && status !== 503),
    status,
    ...(requestId === undefined ? {} : { requestId: redactor.clean(requestId) }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function codeOf(status: number): ControlApiErrorCode {
  const known = CODE_BY_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 500) return 'unavailable';
  return status >= 400 ? 'invalid' : 'malformed';
}

function describe(status: number): string {
  if (status >= 300 && status < 400)
    return `HTTP ${status}: redirects are not followed; set the API URL to where it is`;
  return `HTTP ${status}`;
}

function failed(
  call: ApiCall,
  details: Omit<ControlApiError, 'route' | 'account' | 'outcomeUnknown'> & { mayHaveTakenEffect: boolean },
): { ok: false; error: ControlApiError } {
  const { mayHaveTakenEffect, ...rest } = details;
  const outcome = mayHaveTakenEffect && isWrite(call) ? { outcomeUnknown: true as const } : {};
  return { ok: false, error: { ...rest, route: routeOf(call), account: call.account, ...outcome } };
}

/** Real milliseconds from now of a `Retry-After` header: seconds, or an HTTP date. Undefined if it is neither. */
export function parseRetryAfter(value: string | undefined, clock: Pick<Clock, 'realDelayMs'>): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(value.trim())) return Number(value) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : clock.realDelayMs(atMs);
}

const REDACTED = '[redacted]';

/** Text from a server enters logs and pages. */
const MAX_MESSAGE_LENGTH = 500;

/** Also hides API keys that are not ours. */
const KEY_LIKE = /\b(?:napi_[a-z0-9]{8,}|bearer\s+[^\s"',;]+)/gi;

type Redactor = ReturnType<typeof createRedactor>;

/** Removes secrets from foreign text, in the forms in which a server may echo them: as is, percent-encoded, JSON, base64. */
export function createRedactor() {
  const forms = new Set<string>();
  return {
    hide(secret: string): void {
      if (secret === '') return;
      forms.add(secret);
      forms.add(encodeURIComponent(secret));
      forms.add(JSON.stringify(secret).slice(1, -1));
      forms.add(Buffer.from(secret).toString('base64'));
    },
    /** The text in one line, without secrets, cut to a bounded length. */
    clean(text: string): string {
      // Cut after replacing: a cut in the middle of a key would leave its first half.
      let cleaned = text;
      for (const form of [...forms].sort((a, b) => b.length - a.length)) cleaned = cleaned.replaceAll(form, REDACTED);
      cleaned = cleaned.replace(KEY_LIKE, REDACTED);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal or a log line.
      return cleaned.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, MAX_MESSAGE_LENGTH);
    },
  };
}
