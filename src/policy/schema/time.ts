import { z } from 'zod';
import { readTime } from '../time-text.ts';
import { expected } from './expected.ts';

const WHAT = 'a time such as "Mon-Fri 08:00-18:30", or a list of times';

/** One entry of `at:`, checked; its zone is still that of the text, if any. */
export const TimeText = z.string(expected(WHAT)).transform((text, context) => {
  const errors: string[] = [];
  const time = readTime(text, errors);
  if (time) return time;
  for (const message of errors) context.issues.push({ code: 'custom', message, input: text });
  return z.NEVER;
});
export type TimeText = z.infer<typeof TimeText>;

export const At = z
  .union([TimeText, z.array(TimeText, expected(WHAT)).min(1, 'expected at least one time').max(100)], expected(WHAT))
  .describe(
    'When: "Mon-Fri 08:00-18:30 [Zone]", "22:00-06:00", "Fri 20:00 - Mon 06:00", "2026-12-24/2026-12-27", "always", or a list of these.',
  )
  .transform((at) => (Array.isArray(at) ? at : [at]));
export type At = z.infer<typeof At>;
