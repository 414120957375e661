import { Agent } from 'undici';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { timerMs } from '../../ports/clock.ts';
import type { SourceAnswer } from '../../ports/connections.ts';
import type { SeriesRange } from '../../ports/guards.ts';
import { failed, isTlsError, type ReadSecret } from './outcomes.ts';

export interface PrometheusCallOptions {
  /** The base URL, without `/api/v1/…`. */
  url: string;
  readToken?: ReadSecret | undefined;
  timeoutMs?: number | undefined;
}

interface PrometheusReply {
  status: number;
  text: string;
}

/** Concurrent requests. */
export const AT_ONCE = 4;

const TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Ids are put into queries. Other characters could change the meaning of a query. */
const ID = /^[a-z0-9-]+$/;

/** Sends queries to a Prometheus, or to anything with its API. Follows no redirect, uses no proxy. */
export function createPrometheusCall({ url, readToken, timeoutMs = TIMEOUT_MS }: PrometheusCallOptions) {
  const base = new URL(url);
  const dispatcher = new Agent({
    connections: AT_ONCE,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: MAX_BODY_BYTES,
  });
  return {
    /** Posts a form; never throws. */
    async post(
      path: string,
      form: Readonly<Record<string, string>>,
      signal: AbortSignal,
    ): Promise<SourceAnswer<PrometheusReply>> {
      const token = await readToken?.().catch((error: unknown) => error);
      if (token !== undefined && typeof token !== 'string') {
        return failed('misconfigured', token instanceof Error ? token.message : 'no token');
      }
      const stopped = AbortSignal.any([signal, AbortSignal.timeout(timerMs(timeoutMs))]);
      try {
        const { statusCode, body } = await dispatcher.request({
          origin: base.origin,
          path: `${base.pathname.replace(/\/+$/, '')}/api/v1/${path}`,
          method: 'POST',
          headers: {
            accept: 'application/json',
            'content-type': 'application/x-www-form-urlencoded',
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: new URLSearchParams(form).toString(),
          signal: stopped,
        });
        return { ok: true, value: { status: statusCode, text: await body.text() } };
      } catch (error) {
        return failureOf(error, stopped);
      }
    },
    close: () => dispatcher.destroy(),
  };
}

export function hasSafeIds({ computeId, projectId, branchId }: Compute): boolean {
  return [computeId, projectId, branchId].every((id) => ID.test(id));
}

/** Fills a compute's ids into a query. */
export function filledIn(query: string, { computeId, projectId, branchId }: Compute): string {
  const ids: Record<string, string> = { compute: computeId, project: projectId, branch: branchId };
  return query.replaceAll(/\$(compute|project|branch)\b/g, (variable, name: string) => ids[name] ?? variable);
}

function failureOf(error: unknown, signal: AbortSignal): ReturnType<typeof failed> {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error && error.message !== '' ? error.message : code;
  if (signal.aborted || code.includes('TIMEOUT')) return failed('timeout', 'no answer in time');
  if (isTlsError(code)) return failed('tls', message);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return failed('malformed', 'the answer is too long');
  return failed('unavailable', message);
}

/** A series of an answer. Instants are seconds since the epoch; values are texts such as `12`, `NaN` or `+Inf`. An instant query has one point. */
export interface RawSeries {
  labels: Readonly<Record<string, string>>;
  points: readonly (readonly [seconds: number, value: string])[];
}

const Point = z.tuple([z.number(), z.string()]);
const Answer = z.discriminatedUnion('resultType', [
  z.object({
    resultType: z.literal('vector'),
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: Point })),
  }),
  z.object({ resultType: z.literal('scalar'), result: Point }),
]);
const RangeAnswer = z.object({
  resultType: z.literal('matrix'),
  result: z.array(z.object({ metric: z.record(z.string(), z.string()), values: z.array(Point) })),
});
const Success = z.object({ status: z.literal('success'), data: Answer });
const RangeSuccess = z.object({ status: z.literal('success'), data: RangeAnswer });
const Failure = z.object({ status: z.literal('error'), error: z.string() });

/** The series of an answer to an instant query. */
export function seriesIn(reply: SourceAnswer<PrometheusReply>): SourceAnswer<RawSeries[]> {
  const body = bodyOf(reply);
  if (!body.ok) return body;
  const answer = Success.safeParse(body.value);
  if (!answer.success) return failed('malformed', 'this is not the answer to an instant query');
  const { data } = answer.data;
  if (data.resultType === 'scalar') return { ok: true, value: [{ labels: {}, points: [data.result] }] };
  return { ok: true, value: data.result.map(({ metric, value }) => ({ labels: metric, points: [value] })) };
}

/** The series of an answer to a range query. */
export function rangesIn(reply: SourceAnswer<PrometheusReply>): SourceAnswer<RawSeries[]> {
  const body = bodyOf(reply);
  if (!body.ok) return body;
  const answer = RangeSuccess.safeParse(body.value);
  if (!answer.success) return failed('malformed', 'this is not the answer to a range query');
  return { ok: true, value: answer.data.data.result.map(({ metric, values }) => ({ labels: metric, points: values })) };
}

/** The error of a query about one compute that gives more than one number. */
export function tooManySeries(count: number): ReturnType<typeof failed> {
  return failed('malformed', `the query gives ${count} series for it, not one: sum them`);
}

const DECIMAL = /^\+?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** A larger value, such as `1e300`, is no number of connections. */
const MAX_CONNECTIONS = 1e9;

/** A number of connections, rounded up, since averages are not whole. */
export function connectionsIn(value: string): SourceAnswer<number> {
  const connections = DECIMAL.test(value) ? Number(value) : Number.NaN;
  if (connections <= MAX_CONNECTIONS) return { ok: true, value: Math.ceil(connections) };
  return failed('malformed', `the query gives ${value.slice(0, 40)} for it, which is not a number of connections`);
}

/** The instant of a point, milliseconds since the epoch. */
export function instantOf(seconds: number): number {
  return Math.round(seconds * 1000);
}

/** The form of a range query, whose answer includes `toMs`. */
export function rangeForm(query: string, { fromMs, toMs, stepMs }: SeriesRange): Record<string, string> {
  return { query, start: String(fromMs / 1000), end: String(toMs / 1000), step: String(stepMs / 1000) };
}

function bodyOf(reply: SourceAnswer<PrometheusReply>): SourceAnswer<unknown> {
  if (!reply.ok) return reply;
  const { status, text } = reply.value;
  if (status === 401 || status === 403) return failed('unauthorised', `it answers ${status}: check its token`);
  if (status >= 300 && status < 400) return failed('misconfigured', `it answers ${status}: redirects are not followed`);
  const body = parseJson(text);
  const failure = Failure.safeParse(body);
  if (failure.success) {
    return failed(status === 400 ? 'misconfigured' : 'unavailable', `${status}: ${failure.data.error.slice(0, 200)}`);
  }
  return status === 200 ? { ok: true, value: body } : failed('unavailable', `it answers ${status}`);
}
