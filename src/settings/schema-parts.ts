import { z } from 'zod';

/** Text that says something. */
export function text(): z.ZodString {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be text') })
    .min(1, { error: 'must not be empty' });
}

/** A path to a file with a key. A key that was pasted in its place must not come back in a message about the path. */
export function keyPath(): z.ZodString {
  return text().refine((path) => !/(?:^|\/)napi_/i.test(path), {
    error: 'looks like a key: write the path of a file that holds it',
  });
}
