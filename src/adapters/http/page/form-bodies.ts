/** What the forms of the pages send: all of it text. */
import { z } from 'zod';
import { MOST_CHARACTERS } from '../../../ports/operator.ts';
import { problemOf } from '../api/bodies.ts';
import type { Written } from './hold-form.tsx';

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
  reason: text(MOST_CHARACTERS.reason),
  owner: text(MOST_CHARACTERS.owner).default(''),
  token: z.string(),
});

export const ReleaseFields = z.strictObject({ owner: text(MOST_CHARACTERS.owner).default(''), token: z.string() });

type Parsed<T> = { ok: true; value: T; written: Written } | { ok: false; problem: string; written: Written };

/** The fields, checked, and what to show again of them: not the token. */
export function parseFields<Schema extends z.ZodType>(
  schema: Schema,
  body: Readonly<Record<string, unknown>>,
): Parsed<z.output<Schema>> {
  const texts = Object.entries(body).filter(([name, value]) => typeof value === 'string' && name !== 'token');
  const written = Object.fromEntries(texts.map(([name, value]) => [name, String(value)]));
  const parsed = schema.safeParse(body);
  if (!parsed.success) return { ok: false, problem: problemOf(parsed.error), written };
  return { ok: true, value: parsed.data, written };
}
