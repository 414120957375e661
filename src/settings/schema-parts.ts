import { z } from 'zod';

/** Non-empty text. */
export function text(): z.ZodString {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be text') })
    .min(1, { error: 'must not be empty' });
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  const allowed = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return z.enum(values, { error: ({ input }) => `${JSON.stringify(input)} is not known; use ${allowed}` });
}

/** A path to a file with a key. A pasted key is refused without repeating it. */
export function keyPath(): z.ZodString {
  return text().refine((path) => !/(?:^|\/)napi_/i.test(path), {
    error: 'looks like a key: write the path of a file that holds it',
  });
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
const NAME_FORM = 'must be 1 to 40 letters, digits, "-", "_" or ".", the first a letter or digit';

/** A name that can be a label of metrics, and has no special characters of globs or paths. */
export function nameText(): z.ZodString {
  return text().regex(NAME, { error: NAME_FORM });
}

export function byName<S extends z.ZodType>(entry: S, error: string) {
  return z.record(z.string(), entry, { error }).superRefine((entries, context) => {
    for (const key of Object.keys(entries).filter((one) => !NAME.test(one)))
      context.addIssue({ code: 'custom', path: [key], message: NAME_FORM });
  });
}

/** A list in `ebb.yaml`, or one text with commas between the entries in a variable. */
export function listOrText<S extends z.ZodType>(entry: S, error: string) {
  const partsOf = (list: string) => list.split(',').map((part) => part.trim());
  const split = (value: unknown) => (typeof value === 'string' ? partsOf(value).filter((part) => part !== '') : value);
  return z.preprocess(split, z.array(entry, { error }));
}

/** The name of an environment variable. A settings file, which others may change, must not read other variables of the process. */
export function variableName(prefix: string): z.ZodString {
  return text().regex(new RegExp(`^${prefix}(_[A-Z0-9_]+)?$`), {
    error: `must be the name of a variable: ${prefix}, or ${prefix}_ and more capitals`,
  });
}
