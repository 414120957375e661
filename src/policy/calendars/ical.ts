import ICAL from 'ical.js';
import { DateTime } from 'luxon';
import { type DaysResult, dayOfDate, daysFrom, LAST_YEAR, sortedDays } from './years.ts';

const DAY_SECONDS = 86_400;
const MOST_EVENTS = 5000;
const MOST_DAYS = 20_000;
/** Parts of a rule with which ical.js always comes to an end. */
const RULE_PARTS = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYDAY', 'BYMONTHDAY', 'BYMONTH'];

/** Why an event, or a file, can't be used. Kept within this module: the outside gets a result. */
class CalendarError extends Error {}

/** The days of the whole-day events of an iCalendar text, repeated ones until the end of the last known year. */
export function daysOfIcal(text: string): DaysResult {
  try {
    const events = new ICAL.Component(ICAL.parse(text)).getAllSubcomponents('vevent');
    if (events.length > MOST_EVENTS) return { ok: false, message: `more than ${MOST_EVENTS} events` };
    const days: number[] = [];
    for (const event of mainEvents(events)) {
      for (const day of daysOfEvent(event)) days.push(day);
      if (days.length > MOST_DAYS) return { ok: false, message: `more than ${MOST_DAYS} days` };
    }
    return { ok: true, days: sortedDays(days) };
  } catch (error) {
    const reason = error instanceof CalendarError ? error.message : 'not an iCalendar file';
    return { ok: false, message: reason };
  }
}

/** Events without the changed occurrences of others, which are attached to the event that they change. */
function mainEvents(components: readonly ICAL.Component[]): ICAL.Event[] {
  const exceptions = components.filter((component) => component.hasProperty('recurrence-id'));
  return components
    .filter((component) => !component.hasProperty('recurrence-id'))
    .filter((component) => component.getFirstPropertyValue('status') !== 'CANCELLED')
    .map((component) => {
      const event = new ICAL.Event(component, { strictExceptions: true });
      for (const exception of exceptions) {
        if (exception.getFirstPropertyValue('uid') === event.uid) event.relateException(exception);
      }
      return event;
    });
}

function daysOfEvent(event: ICAL.Event): number[] {
  if (!event.startDate?.isDate) throw new CalendarError(`${nameOf(event)} is not a whole-day event`);
  if (!event.isRecurring()) return daysOfOccurrence(event.startDate, event.duration.toSeconds());
  checkRules(event);
  const days: number[] = [];
  const iterator = event.iterator();
  for (let start = iterator.next(); start && start.year <= LAST_YEAR; start = iterator.next()) {
    const occurrence = event.getOccurrenceDetails(start);
    if (occurrence.item.component.getFirstPropertyValue('status') === 'CANCELLED') continue;
    const seconds = occurrence.endDate.subtractDate(occurrence.startDate).toSeconds();
    days.push(...daysOfOccurrence(occurrence.startDate, seconds));
    if (days.length > MOST_DAYS) break;
  }
  return days;
}

function daysOfOccurrence(start: ICAL.Time, seconds: number): number[] {
  const first = dayOfDate(start.toString().slice(0, 10));
  if (first === undefined) return [];
  return daysFrom(first, Math.min(MOST_DAYS + 1, Math.max(1, Math.ceil(seconds / DAY_SECONDS))));
}

/** ical.js never ends on some rules that never match, and gives wrong days for dates that don't exist. */
function checkRules(event: ICAL.Event): void {
  for (const rule of event.component.getAllProperties('rrule').map((property) => property.getFirstValue())) {
    const parts = new Map(
      String(rule)
        .split(';')
        .map((part) => part.split('=') as [string, string]),
    );
    const isPlain = [...parts.keys()].every((part) => RULE_PARTS.includes(part));
    const isDaily = parts.get('FREQ') === 'DAILY' && [...parts.keys()].some((part) => part.startsWith('BY'));
    const isKnown = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'].includes(parts.get('FREQ') ?? '');
    const isMonthly = parts.get('FREQ') === 'MONTHLY' && parts.has('BYMONTH');
    if (!isPlain || isDaily || !isKnown || isMonthly || !hasDates(parts)) {
      throw new CalendarError(`${nameOf(event)} repeats by a rule that is not supported: ${String(rule).slice(0, 80)}`);
    }
  }
}

function hasDates(parts: ReadonlyMap<string, string>): boolean {
  const days = (parts.get('BYMONTHDAY') ?? '1').split(',').map(Number);
  const months = (parts.get('BYMONTH') ?? '1').split(',').map(Number);
  return months.every((month) =>
    days.every(
      (day) => DateTime.utc(2023, month, 1).isValid && Math.abs(day) <= (DateTime.utc(2023, month, 1).daysInMonth ?? 0),
    ),
  );
}

function nameOf(event: ICAL.Event): string {
  return `the event ${JSON.stringify(String(event.summary ?? event.uid ?? '').slice(0, 60))}`;
}
