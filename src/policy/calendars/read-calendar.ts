import type * as domain from '../../domain/time/time-spec.ts';
import { POLICY_LIMITS } from '../limits.ts';
import type { Path } from '../read-yaml.ts';
import type { FileReader } from '../reader.ts';
import type { Calendar } from '../schema/policy-file.ts';
import { daysOfIcal } from './ical.ts';
import { type DaysResult, dayOfDate, daysFrom, publicHolidays, sortedDays } from './public-holidays.ts';

const TOO_MUCH = `the iCalendar files of the set are larger than ${POLICY_LIMITS.icalCharacters / 1024 ** 2} MiB together`;

/** Reads a file that a policy file names, by the path in that file. */
export type ReadReferenced = (
  policyFile: string,
  path: string,
) => { ok: true; text: string } | { ok: false; message: string };

export type ReadIcal = (policyFile: string, path: string) => DaysResult;

/** Creates a reader for the iCalendar files of one policy set. It parses equal texts once, and limits their total size. */
export function icalReader(readReferenced: ReadReferenced): ReadIcal {
  const byText = new Map<string, DaysResult>();
  let characters = 0;
  return (policyFile, path) => {
    const file = readReferenced(policyFile, path);
    if (!file.ok) return file;
    const cached = byText.get(file.text);
    if (cached) return cached;
    characters += file.text.length;
    if (characters > POLICY_LIMITS.icalCharacters) return { ok: false, message: TOO_MUCH };
    const read = daysOfIcal(file.text);
    byText.set(file.text, read);
    return read;
  };
}

/** The days of a calendar; reports its problems. */
export function readCalendar(
  reader: FileReader,
  name: string,
  calendar: Calendar,
  readIcal: ReadIcal,
): domain.Calendar {
  const at: Path = ['calendars', name];
  const { country, state, region, dates, ical } = calendar;
  if (country !== undefined) {
    const holidays = publicHolidays({ country, state, region });
    if (holidays.ok) return { name, days: holidays.days };
    reader.report(reader.document.spanOf(at), 'value', holidays.message);
  }
  if (ical !== undefined) {
    const read = readIcal(reader.path, ical);
    if (read.ok) return { name, days: read.days };
    reader.report(reader.document.spanOf([...at, 'ical']), 'value', `${ical}: ${read.message}`);
  }
  const days = new Set<number>();
  for (const [index, entry] of (dates ?? []).entries()) {
    for (const day of daysOrReport(reader, [...at, 'dates', index], entry)) days.add(day);
    if (days.size <= POLICY_LIMITS.calendarDays) continue;
    reader.report(reader.document.spanOf([...at, 'dates']), 'limit', `more than ${POLICY_LIMITS.calendarDays} days`);
    break;
  }
  return { name, days: sortedDays(days) };
}

function daysOrReport({ document, report }: FileReader, at: Path, entry: string): number[] {
  const result = daysOfEntry(entry);
  if (result.ok) return result.days;
  report(document.spanOf(at), 'value', result.message);
  return [];
}

/** The longest range has ten years, and a few days. */
const MAX_DAYS_OF_RANGE = 3660;

/** The days of a date, or of a range including both ends. */
function daysOfEntry(entry: string): DaysResult {
  const [first = '', last = first, ...rest] = entry.split('/').map((part) => part.trim());
  const from = dayOfDate(first);
  const to = dayOfDate(last);
  if (from === undefined || to === undefined || rest.length > 0) {
    return { ok: false, message: 'expected a date such as 2026-12-24, or a range such as 2026-12-28/2026-12-31' };
  }
  if (to < from) return { ok: false, message: 'the range ends before it has begun' };
  if (to - from >= MAX_DAYS_OF_RANGE) return { ok: false, message: 'a range has at most ten years' };
  return { ok: true, days: sortedDays(daysFrom(from, to - from + 1)) };
}
