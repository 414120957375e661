import type * as domain from '../../domain/time-spec.ts';
import type { Path } from '../read-yaml.ts';
import type { FileReader } from '../reader.ts';
import type { Calendar } from '../schema/calendar.ts';
import { daysOfEntry } from './date-list.ts';
import { daysOfIcal } from './ical.ts';
import { publicHolidays } from './public-holidays.ts';
import { sortedDays } from './years.ts';

/** The text of a file that a policy file names, by the path as it is written there. */
export type ReadReferenced = (
  policyFile: string,
  path: string,
) => { ok: true; text: string } | { ok: false; message: string };

/** Turns a calendar into its days; what is wrong with it is reported at its place. */
export function readCalendar(
  reader: FileReader,
  name: string,
  calendar: Calendar,
  readReferenced: ReadReferenced,
): domain.Calendar {
  const at: Path = ['calendars', name];
  const { country, state, region, dates, ical } = calendar;
  if (country !== undefined) {
    const holidays = publicHolidays({ country, state, region });
    if (holidays.ok) return { name, days: holidays.days };
    reader.report(reader.document.spanOf(at), 'value', holidays.message);
  }
  if (ical !== undefined) {
    const file = readReferenced(reader.path, ical);
    const read = file.ok ? daysOfIcal(file.text) : file;
    if (read.ok) return { name, days: read.days };
    reader.report(reader.document.spanOf([...at, 'ical']), 'value', `${ical}: ${read.message}`);
  }
  return {
    name,
    days: sortedDays((dates ?? []).flatMap((entry, index) => daysOrReport(reader, [...at, 'dates', index], entry))),
  };
}

function daysOrReport({ document, report }: FileReader, at: Path, entry: string): number[] {
  const result = daysOfEntry(entry);
  if (result.ok) return result.days;
  report(document.spanOf(at), 'value', result.message);
  return [];
}
