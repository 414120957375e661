import { DateTime } from 'luxon';
import { zoneError } from './schema/scalars.ts';

/** An absolute interval as it was written. */
export interface WrittenInterval {
  kind: 'interval';
  /** True: both ends are local times, as the milliseconds since the epoch that they would be in UTC. False: instants. */
  areLocal: boolean;
  startMs: number;
  endMs: number;
  zone: string | undefined;
}

interface End {
  ms: number;
  hasOffset: boolean;
}

const INTERVAL = /^(?<start>[^/\s]+)\/(?<end>[^/\s]+)(?:\s+(?<zone>[A-Za-z][\w/+-]*))?$/;
const END =
  /^(?<date>\d{4}-\d{2}-\d{2})(?:T(?<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(?<offset>Z|[+-]\d{2}:\d{2})?)?$/;

/** Reads `START/END`, each a date or a date and time, both with an offset or both without. */
export function readInterval(text: string, errors: string[]): WrittenInterval | undefined {
  const groups = INTERVAL.exec(text)?.groups;
  if (!groups) {
    errors.push('expected an interval "START/END", such as "2026-12-24/2026-12-27"');
    return undefined;
  }
  const start = readEnd(groups.start ?? '', errors);
  const end = readEnd(groups.end ?? '', errors);
  if (!start || !end) return undefined;
  checkTogether(start, end, groups.zone, errors);
  return { kind: 'interval', areLocal: !start.hasOffset, startMs: start.ms, endMs: end.ms, zone: groups.zone };
}

function checkTogether(start: End, end: End, zone: string | undefined, errors: string[]): void {
  if (start.hasOffset !== end.hasOffset) errors.push('an offset on one end only; write it on both, or on neither');
  else if (start.ms >= end.ms) errors.push('the interval ends before it has begun; write START/END');
  if (zone === undefined) return;
  const error = zoneError(zone);
  if (error !== undefined) errors.push(error);
  else if (start.hasOffset && end.hasOffset) errors.push('the offsets already fix the interval; remove the zone');
}

function readEnd(text: string, errors: string[]): End | undefined {
  const { date, time = '00:00', offset } = END.exec(text)?.groups ?? {};
  const local = DateTime.fromISO(`${date}T${time}`, { zone: 'utc' });
  if (date === undefined || !local.isValid || time.startsWith('24')) {
    errors.push(`"${text}" is not a date or a date and time; expected "2026-12-24" or "2026-12-24T08:00:00+01:00"`);
    return undefined;
  }
  if (offset === undefined) return { ms: local.toMillis(), hasOffset: false };
  const offsetMinutes = minutesOfOffset(offset);
  if (offsetMinutes === undefined) errors.push(`"${offset}" is not an offset; expected "Z" or -12:00 to +14:00`);
  return { ms: local.toMillis() - (offsetMinutes ?? 0) * 60_000, hasOffset: true };
}

function minutesOfOffset(offset: string): number | undefined {
  if (offset === 'Z') return 0;
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4));
  const signed = offset.startsWith('-') ? -minutes : minutes;
  return Number(offset.slice(4)) < 60 && signed >= -12 * 60 && signed <= 14 * 60 ? signed : undefined;
}
