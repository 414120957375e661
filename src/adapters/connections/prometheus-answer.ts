import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { failed, type Read } from './outcomes.ts';

export interface Series {
  labels: Readonly<Record<string, string>>;
  /** The instant of the value, in seconds since the epoch. */
  atSeconds: number;
  /** As it is written: `12`, `NaN`, `+Inf`. */
  value: string;
}

/** Instants in seconds, and values as they are written. */
export type Points = readonly (readonly [seconds: number, value: string])[];

/** One series of a range query. */
export interface RangeSeries {
  labels: Readonly<Record<string, string>>;
  points: Points;
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

/** The series of an answer to an instant query, or its error. */
export function seriesIn(status: number, text: string): Read<Series[]> {
  const body = bodyOf(status, text);
  if (!body.ok) return body;
  const answer = Success.safeParse(body.value);
  if (!answer.success) return failed('malformed', 'the answer is none of an instant query');
  const { data } = answer.data;
  if (data.resultType === 'scalar')
    return { ok: true, value: [{ labels: {}, atSeconds: data.result[0], value: data.result[1] }] };
  const series = data.result.map(({ metric, value: [atSeconds, value] }) => ({ labels: metric, atSeconds, value }));
  return { ok: true, value: series };
}

/** The series of an answer to a range query, or its error. */
export function rangesIn(status: number, text: string): Read<RangeSeries[]> {
  const body = bodyOf(status, text);
  if (!body.ok) return body;
  const answer = RangeSuccess.safeParse(body.value);
  if (!answer.success) return failed('malformed', 'the answer is none of a range query');
  return { ok: true, value: answer.data.data.result.map(({ metric, values }) => ({ labels: metric, points: values })) };
}

/** A query about one compute must give one number. */
export function tooManySeries(count: number): ReturnType<typeof failed> {
  return failed('malformed', `the query gives ${count} series for it, not one: sum them`);
}

const DECIMAL = /^\+?\d+(\.\d+)?(e[+-]?\d+)?$/i;

const MOST_CONNECTIONS = 1e9;

/** Averages and sums of rates are not whole; a need is never rounded down. */
export function connectionsIn(value: string): Read<number> {
  const connections = DECIMAL.test(value) ? Number(value) : Number.NaN;
  if (connections <= MOST_CONNECTIONS) return { ok: true, value: Math.ceil(connections) };
  return failed('malformed', `the query gives ${value.slice(0, 40)} for it, which is no number of connections`);
}

function bodyOf(status: number, text: string): Read<unknown> {
  if (status === 401 || status === 403) return failed('unauthorised', `it answers ${status}: check its token`);
  if (status >= 300 && status < 400) return failed('misconfigured', `it answers ${status}: redirects are not followed`);
  const body = parseJson(text);
  const failure = Failure.safeParse(body);
  if (failure.success) {
    return failed(status === 400 ? 'misconfigured' : 'unavailable', `${status}: ${failure.data.error.slice(0, 200)}`);
  }
  return status === 200 ? { ok: true, value: body } : failed('unavailable', `it answers ${status}`);
}
