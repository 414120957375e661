import { z } from 'zod';
import { POLICY_LIMITS } from '../limits.ts';
import { didYouMean } from '../suggest.ts';

/** Says what a schema wants, in the words of the language: the rest of a sentence that begins with "expected". */
export function expected(what: string): { error: (issue: { code?: string | undefined }) => string | undefined } {
  return { error: (issue) => (issue.code === 'unrecognized_keys' ? undefined : `expected ${what}`) };
}

/** A mapping that refuses unknown keys. The message has one line for each of them, in the order of the issue's keys. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape, what = 'a mapping') {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return `expected ${what}`;
      return (issue.keys as string[])
        .slice(0, POLICY_LIMITS.problemsPerFile)
        .map((key) => unknownKey(key, known))
        .join('\n');
    },
  });
}

function unknownKey(key: string, known: readonly string[]): string {
  const suggestion = didYouMean(key, known) || `; expected ${known.map((name) => `"${name}"`).join(', ')}`;
  return `unknown key ${JSON.stringify(key.slice(0, 60))}${suggestion}`;
}
