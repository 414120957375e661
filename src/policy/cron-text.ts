import { CronExpressionParser } from 'cron-parser';
import { firingsOfDay, nearestLocalTime } from '../domain/time/windows/cron-times.ts';

const FIELDS = '5 fields: minute, hour, day of the month, month, day of the week';
/** Plain cron only: no seconds, no names such as @daily, and no "H", which would be random. */
const FIELD = /^(?:\d|[*,/#-]|L|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+$/i;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** A Thursday in the past: from here on expressions are tried, so that the answer does not depend on today. */
const TRIED_FROM_DAY = 20_454;
const DAYS_TRIED = 400;

/** The expression in its one form, single blanks between the fields; what is wrong with it is added to `errors`. */
export function readCron(text: string, errors: string[]): string {
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

/** True if openings of this length follow each other without a gap, day after day. */
export function neverCloses(cron: string, forMs: number): boolean {
  const { firstMinute, lastMinute, longestPauseMinutes } = firingsOfDay(cron);
  const overnightMinutes = firstMinute + 1440 - lastMinute;
  if (Math.max(longestPauseMinutes, overnightMinutes) * MINUTE_MS > forMs) return false;
  return Array.from({ length: DAYS_TRIED }, (_, index) => TRIED_FROM_DAY + index).every((day) => {
    const firstMs = nearestLocalTime({ cron }, day * DAY_MS, 'next');
    return firstMs !== undefined && firstMs < (day + 1) * DAY_MS;
  });
}

const knownErrors = new Map<string, string | undefined>();
const MOST_ERRORS_KEPT = 1000;

/** The same expressions stand in many policies, and reading one costs some 100 µs. */
function cronError(cron: string): string | undefined {
  if (knownErrors.has(cron)) return knownErrors.get(cron);
  if (knownErrors.size >= MOST_ERRORS_KEPT) knownErrors.clear();
  const error = findCronError(cron);
  knownErrors.set(cron, error);
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
