import { DateTime } from 'luxon';
import { didYouMean } from '../common/names.ts';
import type {
  Always,
  CronSwitch,
  CronWindow,
  DateFilter,
  TimeSpec,
  Weekday,
  WeeklyWindow,
} from '../domain/time/time-spec.ts';
import { DAY_MINUTES, MINUTE_MS } from '../domain/time/units.ts';
import { instantOfLocal } from '../domain/time/windows/local-time.ts';
import { zoneError } from './schema/scalars.ts';

type WithoutZone<T> = Omit<T, 'zone' | 'dates'> & { zone: string | undefined };
type WrittenWeekly = WithoutZone<WeeklyWindow>;

/** A parsed time, before the zone of its file is known. */
export type WrittenTime = WrittenWeekly | WithoutZone<CronWindow> | WithoutZone<CronSwitch> | WrittenInterval | Always;

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const EVERY_DAY = {
  kind: 'weekly',
  days: [1, 2, 3, 4, 5, 6, 7],
  startMinute: 0,
  endMinute: DAY_MINUTES,
  endDayOffset: 0,
} as const;
const CLOCK = String.raw`\d{1,2}:\d{2}`;
const RANGE = String.raw`(?<start>${CLOCK})\s*-\s*(?<end>${CLOCK})`;
const DAY_LIST = String.raw`(?<days>[A-Za-z]+(?:-[A-Za-z]+)?(?:\s*,\s*[A-Za-z]+(?:-[A-Za-z]+)?)*)`;
const ZONE = String.raw`(?:\s+(?<zone>[A-Za-z][\w/+-]*))?`;
const SPAN = new RegExp(
  String.raw`^(?<startDay>[A-Za-z]+)\s+(?<start>${CLOCK})\s*-\s*(?<endDay>[A-Za-z]+)\s+(?<end>${CLOCK})${ZONE}$`,
);
const RECURRING = new RegExp(String.raw`^(?:${DAY_LIST}\s+)?${RANGE}${ZONE}$`);
const WHOLE_DAYS = new RegExp(`^${DAY_LIST}${ZONE}$`);
/** Longer than any valid time; bounds the cost of the patterns above. */
const MAX_LENGTH = 200;
const FORMS = '"Mon-Fri 08:00-18:30", "22:00-06:00", "Fri 20:00 - Mon 06:00", "2026-12-24/2026-12-27" or "always"';

/** Parses one entry of `at:`. If it is invalid, adds to `errors` and returns undefined. */
export function readTime(written: string, errors: string[]): WrittenTime | undefined {
  const text = written.trim();
  const time = text.length > MAX_LENGTH ? undefined : readForm(text, errors);
  if (!time && errors.length === 0) errors.push(notATime(text));
  return errors.length === 0 ? time : undefined;
}

function notATime(text: string): string {
  const meant = text.length > MAX_LENGTH ? text : timeMeant(text);
  const errors: string[] = [];
  const isTime = meant !== text && readForm(meant, errors) !== undefined && errors.length === 0;
  return isTime
    ? `${JSON.stringify(text)} is not a time; write ${JSON.stringify(meant)}`
    : `expected a time such as ${FORMS}`;
}

/** Adds the zone, unless the time names one, and the dates of calendars, for which `always` becomes daily. */
export function resolveTime(time: WrittenTime, defaultZone: string, dates?: DateFilter): TimeSpec {
  if (time.kind === 'always') return dates ? { ...EVERY_DAY, zone: defaultZone, dates } : time;
  const zone = time.zone ?? defaultZone;
  if (time.kind !== 'interval') return { ...time, zone, ...(dates && { dates }) };
  const [startMs, endMs] = time.areLocal
    ? [instantOfLocal(zone, time.startMs), instantOfLocal(zone, time.endMs)]
    : [time.startMs, time.endMs];
  return { kind: 'interval', startMs, endMs };
}

function readForm(text: string, errors: string[]): WrittenTime | undefined {
  if (text === 'always') return { kind: 'always' };
  if (/^\d{4}-/.test(text)) return readInterval(text, errors);
  const span = SPAN.exec(text)?.groups;
  if (span) return readSpan(span, errors);
  const recurring = RECURRING.exec(text)?.groups;
  if (recurring) return readRecurring(recurring, errors);
  const wholeDays = WHOLE_DAYS.exec(text)?.groups;
  if (!wholeDays || !DAYS.some((day) => beginsLike(text, day))) return undefined;
  return readRecurring({ ...wholeDays, start: '00:00', end: '24:00' }, errors);
}

type Groups = Record<string, string | undefined>;

function readRecurring({ days, start = '', end = '', zone }: Groups, errors: string[]): WrittenWeekly {
  const startMinute = readStart(start, errors);
  const endMinute = readClock(end, errors);
  return {
    kind: 'weekly',
    days: days === undefined ? EVERY_DAY.days : readDays(days, errors),
    startMinute,
    endMinute,
    endDayOffset: endMinute <= startMinute ? 1 : 0,
    zone: readZone(zone, errors),
  };
}

function readSpan({ startDay = '', start = '', endDay = '', end = '', zone }: Groups, errors: string[]): WrittenWeekly {
  const from = readDay(startDay, errors);
  const to = readDay(endDay, errors);
  const startMinute = readStart(start, errors);
  const endMinute = readClock(end, errors);
  const days = (to - from + 7) % 7;
  if (days === 0 && endMinute === startMinute && errors.length === 0) {
    errors.push(`a span that ends where it starts is a day or a week; write "${startDay} ${start}-${end}" or "always"`);
  }
  return {
    kind: 'weekly',
    days: [from],
    startMinute,
    endMinute,
    endDayOffset: days === 0 && endMinute < startMinute ? 7 : days,
    zone: readZone(zone, errors),
  };
}

function readDays(list: string, errors: string[]): Weekday[] {
  const days = list.split(',').flatMap((entry) => {
    const [first = '', last] = entry.trim().split('-');
    const from = readDay(first, errors);
    if (last === undefined) return [from];
    const to = readDay(last, errors);
    if (from === to && errors.length === 0)
      errors.push(`"${entry.trim()}" is one day or all of them; write "${first}"`);
    return Array.from({ length: ((to - from + 7) % 7) + 1 }, (_, index) => (((from - 1 + index) % 7) + 1) as Weekday);
  });
  return [...new Set(days)].sort((a, b) => a - b);
}

function readDay(name: string, errors: string[]): Weekday {
  const index = DAYS.indexOf(name);
  if (index >= 0) return (index + 1) as Weekday;
  const byStart = DAYS.find((day) => beginsLike(name, day));
  const suggestion = byStart ? `; did you mean "${byStart}"?` : didYouMean(name, DAYS);
  errors.push(`"${name}" is not a day${suggestion || `; expected one of ${DAYS.join(', ')}`}`);
  return 1;
}

function beginsLike(text: string, day: string): boolean {
  return text.toLowerCase().startsWith(day.toLowerCase());
}

function readStart(text: string, errors: string[]): number {
  const minute = readClock(text, errors);
  if (minute === DAY_MINUTES)
    errors.push('24:00 can only be an end; a window that starts there starts at 00:00 of the next day');
  return minute;
}

function readClock(text: string, errors: string[]): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number);
  const minute = hours * 60 + minutes;
  if (text.length < 5) errors.push(`"${text}" needs two digits for the hour; write "0${text}"`);
  else if (minutes > 59 || minute > DAY_MINUTES) errors.push(`"${text}" is not a time of day; expected 00:00 to 24:00`);
  return minute;
}

function readZone(zone: string | undefined, errors: string[]): string | undefined {
  const error = zone === undefined ? undefined : zoneError(zone);
  if (error !== undefined) errors.push(error);
  return zone;
}

const FULL_DAY_NAMES = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const LOOSE_CLOCK = /(?<![\w:])(\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?![\w:])/gi;

/** Guesses the intended text: `09:00-17:00` for `9am-5pm`. The result may be no valid time. */
function timeMeant(text: string): string {
  return text
    .replaceAll(/[A-Za-z]+/g, (word) => dayOf(word) ?? word)
    .replaceAll(
      LOOSE_CLOCK,
      (all, hours: string, minutes = '00', half = '') => clockOf(Number(hours), minutes, half) ?? all,
    )
    .replaceAll(/\s+to\s+|\s*–\s*/gi, '-')
    .replaceAll(/,\s+(?=\d)/g, ' ');
}

function dayOf(word: string): string | undefined {
  const lower = word.toLowerCase().replace(/s$/, '');
  const day = lower.length < 3 ? undefined : FULL_DAY_NAMES.find((name) => name.startsWith(lower));
  return day && `${day.charAt(0).toUpperCase()}${day.slice(1, 3)}`;
}

function clockOf(hours: number, minutes: string, half: string): string | undefined {
  if (half !== '' && (hours < 1 || hours > 12)) return undefined;
  const shown = half === '' ? hours : (hours % 12) + (half.toLowerCase() === 'pm' ? 12 : 0);
  return `${String(shown).padStart(2, '0')}:${minutes}`;
}

interface WrittenInterval {
  kind: 'interval';
  /** True: both ends are local times, in milliseconds as if they were UTC. False: instants. */
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

/** Parses `START/END`, each a date or a date and time, both with an offset or both without. */
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
  return { ms: local.toMillis() - (offsetMinutes ?? 0) * MINUTE_MS, hasOffset: true };
}

function minutesOfOffset(offset: string): number | undefined {
  if (offset === 'Z') return 0;
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4));
  const signed = offset.startsWith('-') ? -minutes : minutes;
  return Number(offset.slice(4)) < 60 && signed >= -12 * 60 && signed <= 14 * 60 ? signed : undefined;
}
