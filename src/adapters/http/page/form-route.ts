import type { Context, Hono } from 'hono';
import { z } from 'zod';
import { type Caller, type DaemonOperator, MAX_CHARACTERS, type OperatorResult } from '../../../ports/operator.ts';
import type { TokenHolder } from '../../../ports/roles.ts';
import type { Log } from '../../../ports/telemetry.ts';
import { STATUS } from '../api/answer.ts';
import { problemOf } from '../api/bodies.ts';
import type { Guarded } from '../guards.ts';
import { callerOf, noteForbidden, type Tokens, whyForbidden } from '../tokens.ts';
import type { TokenNeed, Written } from './hold-form.tsx';
import { errorAnswer, type Html, type PageStatus, pageAnswer } from './small-views.tsx';

const NO_TOKEN = 'This is no token of the daemon: check it, and send the form again';

interface Subject {
  compute_id: string;
}

export interface FormOptions {
  tokens: Tokens;
  log: Pick<Log, 'warn'>;
  operator: Pick<DaemonOperator, 'teamsOf' | 'refused'>;
}

type FormSchema = z.ZodType<{ owner: string; token: string }>;

/** A form about a compute, or about one of its holds. */
interface FormRoute<S extends Subject, Schema extends FormSchema, Shown> {
  /** The path, with `:id` for the subject's id. */
  path: string;
  schema: Schema;
  /** Loads the form's subject. Must be cheap, since it is called for every submission. */
  find(id: string): Promise<OperatorResult<S>>;
  /** `owner` of the fields is the name of the token, else the typed one. */
  submit(subject: S, fields: z.output<Schema>, caller: Caller): Promise<OperatorResult<unknown>>;
  /** Loads the page around the form, to show it again. */
  read(subject: S): Promise<OperatorResult<Shown>>;
  view(shown: Shown, again: { written: Written; problem: string; token: TokenNeed }): Html;
  /** The value of `done` in the address of the compute's page after a success. */
  done: string;
}

/**
 * Handles a form that needs a token. After a failure the form is shown again with its fields. After a success the browser is redirected to
 * the page of the compute.
 */
export function addForm<S extends Subject, Schema extends FormSchema, Shown>(
  app: Hono<Guarded>,
  { tokens, log, operator }: FormOptions,
  { path, schema, find, submit, read, view, done }: FormRoute<S, Schema, Shown>,
): void {
  app.post(path, async (context) => {
    const id = context.req.param('id') ?? '';
    const found = await find(id);
    if (!found.ok) return errorAnswer(context, found.error);
    const fields = parseFields(schema, await formOf(context));
    const { written } = fields;
    const token = await tokenNeed(context, tokens);
    const again = async (problem: string, status: PageStatus) =>
      pageAnswer(context, await read(found.value), (shown) => view(shown, { written, problem, token }), status);
    if (!fields.ok) return again(fields.problem, 400);
    const { token: given } = fields.value;
    const holder = given === '' ? await loggedIn(context, tokens) : await tokens.holderOf(given);
    if (!holder) return again(NO_TOKEN, 401);
    const owner = holder.name ?? fields.value.owner;
    const caller = callerOf(holder, context, owner);
    const forbidden = await whyForbidden(holder, 'operate', [id], (...asked) => operator.teamsOf(...asked));
    if (forbidden !== undefined) {
      const refusal = { role: 'operate', what: `POST ${path}`, targets: [id], message: forbidden } as const;
      await noteForbidden({ operator, log }, caller, refusal);
      return again(forbidden, 403);
    }
    const result = await submit(found.value, { ...fields.value, owner }, caller);
    if (!result.ok) return again(result.error.message, STATUS[result.error.code]);
    return context.redirect(`/computes/${found.value.compute_id}?done=${done}`, 303);
  });
}

export async function tokenNeed(context: Context<Guarded>, tokens: Tokens): Promise<TokenNeed> {
  const holder = await loggedIn(context, tokens);
  return holder ? { login: { name: holder.name } } : {};
}

/**
 * The holder of the token that a proxy adds, or that the browser sends as a password. Both also come with forms of other web pages, so
 * `ownFormGuard` accepts forms of this daemon's pages only.
 */
async function loggedIn(context: Context<Guarded>, tokens: Tokens): Promise<TokenHolder | undefined> {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(context.req.header('authorization') ?? '') ?? [];
  return (
    (context.get('caller') as TokenHolder | undefined) ?? ((bearer && (await tokens.holderOf(bearer))) || undefined)
  );
}

/** The fields of the body; none if it is no form. Validation then names the missing ones. */
async function formOf({ req }: Context): Promise<Record<string, unknown>> {
  return req.parseBody().catch(() => ({}));
}

// Every field of a form is text.

const text = (most: number) => z.string().trim().max(most, `at most ${most} characters`);
const number = z.string().transform(Number);
const optionalNumber = z
  .string()
  .transform((value) => (value === '' ? undefined : Number(value)))
  .optional();

export const HoldFields = z.strictObject({
  min_cu: optionalNumber,
  max_cu: optionalNumber,
  suspend_timeout_seconds: optionalNumber,
  freeze: z.literal('on').optional(),
  for_seconds: number,
  reason: text(MAX_CHARACTERS.reason),
  owner: text(MAX_CHARACTERS.owner).default(''),
  token: z.string().default(''),
});

export const ReleaseFields = z.strictObject({
  owner: text(MAX_CHARACTERS.owner).default(''),
  token: z.string().default(''),
});

type Parsed<T> = { ok: true; value: T; written: Written } | { ok: false; problem: string; written: Written };

/** `written`: the fields to show again, without the token. */
function parseFields<Schema extends z.ZodType>(
  schema: Schema,
  body: Readonly<Record<string, unknown>>,
): Parsed<z.output<Schema>> {
  const texts = Object.entries(body).filter(([name, value]) => typeof value === 'string' && name !== 'token');
  const written = Object.fromEntries(texts.map(([name, value]) => [name, String(value)]));
  const parsed = schema.safeParse(body);
  if (!parsed.success) return { ok: false, problem: problemOf(parsed.error), written };
  return { ok: true, value: parsed.data, written };
}
