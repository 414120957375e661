import type { Context } from 'hono';
import type { z } from 'zod';
import { type Answer, errorAnswer } from '../wire/answer.ts';
import { read } from '../wire/bodies.ts';

export function respond(answer: Answer): Response {
  return Response.json(answer.body, { status: answer.status });
}

/** Reads the JSON body by a schema and answers with what `handle` makes of it; an absent body is `{}`. */
export async function withBody<S extends z.ZodType>(
  context: Context,
  schema: S,
  handle: (body: z.output<S>) => Answer | Promise<Answer>,
): Promise<Response> {
  const text = await context.req.text();
  let data: unknown;
  try {
    data = text === '' ? {} : JSON.parse(text);
  } catch {
    return respond(errorAnswer(400, 'the body is not JSON'));
  }
  const body = read(schema, data);
  return respond(body.ok ? await handle(body.value) : errorAnswer(400, body.message));
}
