import { z } from 'zod';
import type { CountError } from '../../ports/connections.ts';
import { failed } from './outcomes.ts';

export interface Series {
  labels: Readonly<Record<string, string>>;
  /** As it is written: `12`, `NaN`, `+Inf`. */
  value: string;
}

const Point = z.tuple([z.number(), z.string()]);
const Answer = z.discriminatedUnion('resultType', [
  z.object({
    resultType: z.literal('vector'),
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: Point })),
  }),
  z.object({ resultType: z.literal('scalar'), result: Point }),
]);
const Success = z.object({ status: z.literal('success'), data: Answer });
const Failure = z.object({ status: z.literal('error'), error: z.string() });

/** The series of an answer to an instant query, or what is wrong with it. */
export function seriesIn(
  status: number,
  text: string,
): { ok: true; value: Series[] } | { ok: false; error: CountError } {
  if (status === 401 || status === 403) return failed('unauthorised', `it answers ${status}: check its token`);
  if (status >= 300 && status < 400) return failed('misconfigured', `it answers ${status}: redirects are not followed`);
  const body = parsed(text);
  const failure = Failure.safeParse(body);
  if (failure.success) {
    return failed(status === 400 ? 'misconfigured' : 'unavailable', `${status}: ${failure.data.error.slice(0, 200)}`);
  }
  if (status !== 200) return failed('unavailable', `it answers ${status}`);
  const answer = Success.safeParse(body);
  if (!answer.success) return failed('malformed', 'the answer is none of an instant query');
  const { data } = answer.data;
  if (data.resultType === 'scalar') return { ok: true, value: [{ labels: {}, value: data.result[1] }] };
  return { ok: true, value: data.result.map(({ metric, value }) => ({ labels: metric, value: value[1] })) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
