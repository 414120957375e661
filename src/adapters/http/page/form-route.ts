import type { Context, Hono } from 'hono';
import type { z } from 'zod';
import type { OperatorResult } from '../../../ports/operator.ts';
import { STATUS } from '../api/answer.ts';
import type { Tokens } from '../tokens.ts';
import { parseFields } from './form-bodies.ts';
import type { Written } from './hold-form.tsx';
import { errorAnswer, type Html, type PageStatus, pageAnswer } from './page-answer.ts';

const NO_TOKEN = 'This is no token of the daemon: check it, and send the form again';

interface Subject {
  compute_id: string;
}
type FormSchema = z.ZodType<{ owner: string; token: string }>;

/** What somebody tells ebb by a form about a compute, or about something that it has. */
interface FormRoute<S extends Subject, Schema extends FormSchema, Shown> {
  /** With the id of what it is about as `:id`. */
  path: string;
  schema: Schema;
  /** What the form is about; asked for whenever one is sent, so at little cost. */
  find(id: string): Promise<OperatorResult<S>>;
  /** `owner` is the name of the token, else the one that was written. */
  tell(subject: S, fields: z.output<Schema>): Promise<OperatorResult<unknown>>;
  /** What the page with the form shows; asked for only where the form is shown again. */
  read(subject: S): Promise<OperatorResult<Shown>>;
  view(shown: Shown, again: { written: Written; problem: string }): Html;
  /** The word that the address of the compute's page has afterwards. */
  done: string;
}

/**
 * Takes a form that must hold a token. What can't be done shows the form again, with what was written; what is done leads to the page
 * of the compute. Nothing is told, and nobody led anywhere, about what is not there.
 */
export function addForm<S extends Subject, Schema extends FormSchema, Shown>(
  app: Hono,
  tokens: Tokens,
  { path, schema, find, tell, read, view, done }: FormRoute<S, Schema, Shown>,
): void {
  app.post(path, async (context) => {
    const found = await find(context.req.param('id') ?? '');
    if (!found.ok) return errorAnswer(context, found.error);
    const fields = parseFields(schema, await formOf(context));
    const { written } = fields;
    const again = async (problem: string, status: PageStatus) =>
      pageAnswer(context, await read(found.value), (shown) => view(shown, { written, problem }), status);
    if (!fields.ok) return again(fields.problem, 400);
    const holder = tokens.holderOf(fields.value.token);
    if (!holder) return again(NO_TOKEN, 401);
    const told = await tell(found.value, { ...fields.value, owner: holder.name ?? fields.value.owner });
    if (!told.ok) return again(told.error.message, STATUS[told.error.code]);
    return context.redirect(`/computes/${found.value.compute_id}?done=${done}`, 303);
  });
}

/** What is no form has no fields: what is missing is then said. */
async function formOf({ req }: Context): Promise<Record<string, unknown>> {
  return req.parseBody().catch(() => ({}));
}
