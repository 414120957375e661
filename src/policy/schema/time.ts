import { z } from 'zod';
import { neverCloses, readCron } from '../cron-text.ts';
import { readTime, type WrittenTime } from '../time-text.ts';
import { CRON_PATTERN, TIME_PATTERN } from './patterns.ts';
import { DAY_MS, duration, expected, MINUTE_MS, mapping, Zone } from './scalars.ts';

const WHAT = 'a time such as "Mon-Fri 08:00-18:30", or a list of times';
const CRON = 'a cron expression such as "0 4 * * 0"';

/** One entry of `at:` as text, checked; its zone is still that of the text, if any. */
const TimeText = z
  .string(expected(WHAT))
  .meta({ pattern: TIME_PATTERN })
  .transform((text, context): WrittenTime => {
    const errors: string[] = [];
    const time = readTime(text, errors);
    if (time) return time;
    for (const message of errors) context.issues.push({ code: 'custom', message, input: text });
    return z.NEVER;
  });

const Cron = z
  .string(expected(CRON))
  .meta({ title: 'a cron expression of five fields', pattern: CRON_PATTERN })
  .transform((text, context) => {
    const errors: string[] = [];
    const cron = readCron(text, errors);
    for (const message of errors) context.issues.push({ code: 'custom', message, input: text });
    return cron;
  });

/** `{cron, for}` or `{start, end}`. */
const CronTime = mapping({
  cron: Cron.optional().describe('Opens whenever this fires; goes with for.'),
  for: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' })
    .describe('How long it stays open after that, in elapsed time.')
    .optional(),
  start: Cron.optional().describe('Opens when this fires; goes with end.'),
  end: Cron.optional().describe('Closes when this fires.'),
  zone: Zone.optional(),
}).transform((written, context): WrittenTime => {
  const { cron, start, end, zone } = written;
  const refuse = (message: string) => {
    context.issues.push({ code: 'custom', message, input: written });
    return z.NEVER;
  };
  const forMs = written.for;
  const given = [cron, forMs, start, end].filter((part) => part !== undefined).length;
  if (given === 2 && cron !== undefined && forMs !== undefined) {
    if (neverCloses(cron, forMs)) return refuse('never closes; write "always"');
    return { kind: 'cron', cron, forMs, zone };
  }
  if (given === 2 && start !== undefined && end !== undefined) {
    if (start === end) return refuse('starts whenever it ends, so it never closes; write "always"');
    return { kind: 'cron-switch', startCron: start, endCron: end, zone };
  }
  return refuse('expected {cron, for}, or {start, end}');
});

const Time = z.union([TimeText, CronTime], expected(WHAT));

export const At = z
  .union([Time, z.array(Time, expected(WHAT)).min(1, 'expected at least one time').max(100)], expected(WHAT))
  .meta({ title: 'a time, or a list of times' })
  .describe(
    'When: "Mon-Fri 08:00-18:30 [Zone]", "22:00-06:00", "Fri 20:00 - Mon 06:00", "2026-12-24/2026-12-27", "always", {cron: "0 4 * * 0", for: 2h}, {start: cron, end: cron}, or a list of these.',
  )
  .transform((at): WrittenTime[] => (Array.isArray(at) ? at : [at]));
export type At = z.infer<typeof At>;
