import { z } from 'zod';

/** Non-empty text. */
export function text(): z.ZodString {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be text') })
    .min(1, { error: 'must not be empty' });
}

/** One of a few words. */
export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  const allowed = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return z.enum(values, { error: ({ input }) => `${JSON.stringify(input)} is not known; use ${allowed}` });
}

/** A path to a file with a key. A key that was pasted in its place must not come back in a message about the path. */
export function keyPath(): z.ZodString {
  return text().refine((path) => !/(?:^|\/)napi_/i.test(path), {
    error: 'looks like a key: write the path of a file that holds it',
  });
}

/** A list in `ebb.yaml`; one text with commas between the entries in a variable. */
export function listOrText<S extends z.ZodType>(entry: S, error: string) {
  const split = (value: unknown) =>
    typeof value === 'string' ? value.split(',').flatMap((part) => part.trim() || []) : value;
  return z.preprocess(split, z.array(entry, { error }));
}
