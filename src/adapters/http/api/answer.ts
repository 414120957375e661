import { setImmediate } from 'node:timers/promises';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import { jsonInTurns } from '../../../common/in-turns.ts';
import { ID, type OperatorError, type OperatorResult } from '../../../ports/operator.ts';
import type { Guarded } from '../guards.ts';
import { problemOf } from './bodies.ts';

/** Turns of the event loop. Answers are sent over sockets, which no simulated clock drives. */
export const TURNS = { nextTurn: (): Promise<void> => setImmediate() };

export const STATUS = {
  invalid: 400,
  forbidden: 403,
  not_found: 404,
  full: 409,
  busy: 409,
  unconfirmed: 409,
  unavailable: 503,
} as const satisfies Record<OperatorError['code'], number>;

/** Adds the age to an answer from memory, which is given while the store is unavailable. */
function withAge(context: Context<Guarded>, document: object): object {
  const stale = context.get('staleness')?.();
  if (!stale) return document;
  context.header('age', String(stale.seconds));
  return { ...document, stale };
}

/** Sends the value, or the error with its status. */
export async function answer(
  context: Context<Guarded>,
  result: OperatorResult<object>,
  { status = 200, omitsAge = false }: { status?: 200 | 201 | undefined; omitsAge?: boolean | undefined },
): Promise<Response> {
  if (!result.ok) return context.json(result.error, STATUS[result.error.code]);
  const json = await jsonInTurns(omitsAge ? result.value : withAge(context, result.value), TURNS);
  return context.body(json, status, { 'content-type': 'application/json' });
}

/** The validated body. Throws the answer to an invalid one. */
export async function bodyOf<Schema extends z.ZodType>(context: Context, schema: Schema): Promise<z.output<Schema>> {
  const body: unknown = await context.req.json().catch(() => undefined);
  if (body === undefined) throw refused('the body is not JSON');
  return checked(schema, body);
}

/** The validated query; of a repeated key the first value counts. Throws the answer to an invalid one. */
export function queryOf<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  return checked(schema, context.req.query());
}

/** The id in the path. Throws the answer to an invalid one. */
export function idOf(context: Context): string {
  const id = context.req.param('id') ?? '';
  if (!ID.test(id)) throw refused('an id has small letters, digits and "-" only, and does not begin with "-"');
  return id;
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refused(problemOf(parsed.error));
  return parsed.data;
}

function refused(message: string): HTTPException {
  return new HTTPException(400, { res: Response.json({ code: 'invalid', message }, { status: 400 }) });
}
