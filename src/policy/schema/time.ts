import { CronExpressionParser } from 'cron-parser';
import { z } from 'zod';
import { DAY_MINUTES, DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { firingsOfDay, nearestLocalTime } from '../../domain/time/windows/cron-times.ts';
import { readTime, type WrittenTime } from '../time-text.ts';
import { CRON_PATTERN, TIME_PATTERN } from './patterns.ts';
import { duration, expected, mapping, Zone } from './scalars.ts';

const TIME = 'a time such as "Mon-Fri 08:00-18:30", or a list of times';
const CRON = 'a cron expression such as "0 4 * * 0"';

/** One entry of `at:` as text. */
const TimeText = z
  .string(expected(TIME))
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
  const count = [cron, forMs, start, end].filter((part) => part !== undefined).length;
  if (count === 2 && cron !== undefined && forMs !== undefined) {
    if (neverCloses(cron, forMs)) return refuse('never closes; write "always"');
    return { kind: 'cron', cron, forMs, zone };
  }
  if (count === 2 && start !== undefined && end !== undefined) {
    if (start === end) return refuse('starts whenever it ends, so it never closes; write "always"');
    return { kind: 'cron-switch', startCron: start, endCron: end, zone };
  }
  return refuse('expected {cron, for}, or {start, end}');
});

const Time = z.union([TimeText, CronTime], expected(TIME));

export const At = z
  .union([Time, z.array(Time, expected(TIME)).min(1, 'expected at least one time').max(100)], expected(TIME))
  .meta({ title: 'a time, or a list of times' })
  .describe(
    'When: "Mon-Fri 08:00-18:30 [Zone]", "22:00-06:00", "Fri 20:00 - Mon 06:00", "2026-12-24/2026-12-27", "always", {cron: "0 4 * * 0", for: 2h}, {start: cron, end: cron}, or a list of these.',
  )
  .transform((at): WrittenTime[] => (Array.isArray(at) ? at : [at]));

const FIELDS = '5 fields: minute, hour, day of the month, month, day of the week';
/** Plain cron only: no seconds, no names such as @daily, and no "H", which would be random. */
const FIELD = /^(?:\d|[*,/#-]|L|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+$/i;
/** 2026-01-01, in days since 1970-01-01: expressions are tried from there on, whatever the current date is. */
const TRIED_FROM_DAY = 20_454;
const DAYS_TRIED = 400;

/** Normalises the expression to capitals, with single spaces between the fields; adds problems to `errors`. */
function readCron(text: string, errors: string[]): string {
  const fields = text.trim().split(/\s+/);
  const cron = fields.join(' ').toUpperCase();
  const odd = fields.find((field) => !FIELD.test(field));
  if (fields.length !== 5) errors.push(`a cron expression has ${FIELDS}; this one has ${fields.length}`);
  else if (text.length > 200) errors.push('a cron expression has at most 200 characters');
  else if (odd !== undefined) errors.push(`"${odd.slice(0, 40)}" is not a field of a cron expression`);
  else {
    const error = cronError(cron);
    if (error !== undefined) errors.push(error);
  }
  return cron;
}

/** True if openings of this length follow each other without a gap. */
function neverCloses(cron: string, forMs: number): boolean {
  const { firstMinute, lastMinute, longestPauseMinutes } = firingsOfDay(cron);
  const overnightMinutes = firstMinute + DAY_MINUTES - lastMinute;
  if (Math.max(longestPauseMinutes, overnightMinutes) * MINUTE_MS > forMs) return false;
  return Array.from({ length: DAYS_TRIED }, (_, index) => TRIED_FROM_DAY + index).every((day) => {
    const firstMs = nearestLocalTime({ cron }, day * DAY_MS, 'next');
    return firstMs !== undefined && firstMs < (day + 1) * DAY_MS;
  });
}

const cachedErrors = new Map<string, string | undefined>();
const CACHE_SIZE = 1000;

/** Cached, since many policies have the same expressions, and parsing one takes about 100 µs. */
function cronError(cron: string): string | undefined {
  if (cachedErrors.has(cron)) return cachedErrors.get(cron);
  if (cachedErrors.size >= CACHE_SIZE) cachedErrors.clear();
  const error = findCronError(cron);
  cachedErrors.set(cron, error);
  return error;
}

function findCronError(cron: string): string | undefined {
  try {
    CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: 0 });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^Constraint error, /, '') : String(error);
    return `not a cron expression: ${reason}`;
  }
  const fires = nearestLocalTime({ cron }, TRIED_FROM_DAY * DAY_MS, 'next') !== undefined;
  return fires ? undefined : 'this cron expression never fires';
}
