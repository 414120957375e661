import { DateTime } from 'luxon';
import type { Span } from '../../domain/time/span.ts';
import { UserError } from '../fail.ts';

export interface SpanFlags {
  days?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const DEFAULT_DAYS = 7;
const MAX_DAYS = 366;
const INSTANT_FORM = 'write 2026-03-02, 2026-03-02T08:00 or 2026-03-02T08:00:00Z';

/** The span of the flags. It starts at `--from`, by default with this minute, and ends at `--to`, or `--days` later. */
export function readSpan({ days, from, to }: SpanFlags, { zone, nowMs }: { zone: string; nowMs: number }): Span {
  if (days !== undefined && to !== undefined) {
    throw new UserError('--days and --to both say where it ends; leave one of them out');
  }
  const start =
    from === undefined ? DateTime.fromMillis(nowMs, { zone }).startOf('minute') : readInstant('--from', from, zone);
  const end = to === undefined ? start.plus({ days: readDays(days) }) : readInstant('--to', to, zone);
  if (end <= start) throw new UserError(`--to: ${end.toISO()} is not after ${start.toISO()}, where it starts`);
  if (end > start.plus({ days: MAX_DAYS })) {
    throw new UserError(`--to: ${end.toISO()} is more than ${MAX_DAYS} days after ${start.toISO()}; ask for less`);
  }
  return { fromMs: start.toMillis(), toMs: end.toMillis() };
}

function readDays(text: string | undefined): number {
  if (text === undefined) return DEFAULT_DAYS;
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_DAYS) return days;
  throw new UserError(`--days: "${text}" is not a whole number from 1 to ${MAX_DAYS}`);
}

/** Parses an ISO instant. Without an offset, it is local time of the zone. A date alone is its midnight. */
function readInstant(flag: string, text: string, zone: string): DateTime {
  const instant = DateTime.fromISO(text, { zone });
  if (!/^\d{4}-\d\d-\d\d/.test(text) || !instant.isValid) {
    throw new UserError(`${flag}: "${text}" is not an ISO instant; ${INSTANT_FORM}`);
  }
  return instant.setZone(zone);
}

/** The instant of `--at`, milliseconds since the epoch; without an offset it is UTC. */
export function readAt(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  if (instant.isValid) return instant.toMillis();
  throw new UserError(`--at: ${text} is not an instant; write for example 2026-03-02T08:00:00+01:00`);
}
