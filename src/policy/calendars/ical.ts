import ICAL from 'ical.js';
import { DateTime } from 'luxon';
import { groupBy } from '../../domain/grouping.ts';
import { type DaysResult, dayOfDate, daysFrom, LAST_YEAR, sortedDays } from './public-holidays.ts';

const DAY_SECONDS = 86_400;
const MAX_EVENTS = 5000;
const MAX_DAYS = 20_000;
/** Iterations of ical.js for all events of a file, of about 50 µs each. */
const MAX_STEPS = 30_000;
/** The longest interval of a rule, in days, weeks, months or years. */
const MAX_INTERVAL = 1000;
/** Repeated events may not begin earlier, as ical.js visits every occurrence from the first one on. */
const FIRST_REPEATED_YEAR = 1900;
/** Iterations of ical.js in a year, by frequency. For a rule with weekdays or dates, ical.js visits each day of the named months. */
const STEPS_PER_YEAR: Readonly<Record<string, number>> = { DAILY: 366, WEEKLY: 53, MONTHLY: 12, YEARLY: 1 };
/** The supported parts of rules. ical.js does not terminate on some combinations, which {@link checkRule} refuses. */
const RULE_PARTS = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYDAY', 'BYMONTHDAY', 'BYMONTH'];

/** Carries the message for people; {@link daysOfIcal} catches it. */
class CalendarError extends Error {}

/** The days of all events of an iCalendar text, which must be whole-day events; repeated ones until the end of {@link LAST_YEAR}. */
export function daysOfIcal(text: string): DaysResult {
  try {
    const events = new ICAL.Component(ICAL.parse(text)).getAllSubcomponents('vevent');
    if (events.length > MAX_EVENTS) return { ok: false, message: `more than ${MAX_EVENTS} events` };
    const days: number[] = [];
    const main = mainEvents(events);
    const steps = main.reduce((sum, event) => sum + (event.isRecurring() ? stepsOf(event) : 1), 0);
    if (steps > MAX_STEPS) return { ok: false, message: `more than ${MAX_STEPS} days to look through` };
    for (const event of main) {
      for (const day of daysOfEvent(event)) days.push(day);
      if (days.length > MAX_DAYS) return { ok: false, message: `more than ${MAX_DAYS} days` };
    }
    return { ok: true, days: sortedDays(days) };
  } catch (error) {
    const reason = error instanceof CalendarError ? error.message : 'not an iCalendar file';
    return { ok: false, message: reason };
  }
}

/** The events that are not cancelled. One that only changes an occurrence of another event is attached to that event. */
function mainEvents(components: readonly ICAL.Component[]): ICAL.Event[] {
  const exceptions = groupBy(
    components.filter((component) => component.hasProperty('recurrence-id')),
    (component) => component.getFirstPropertyValue('uid'),
  );
  return components
    .filter((component) => !component.hasProperty('recurrence-id'))
    .filter((component) => component.getFirstPropertyValue('status') !== 'CANCELLED')
    .map((component) => {
      const event = new ICAL.Event(component, { strictExceptions: true });
      for (const exception of exceptions.get(event.uid) ?? []) event.relateException(exception);
      return event;
    });
}

function daysOfEvent(event: ICAL.Event): number[] {
  if (!event.startDate?.isDate) throw new CalendarError(`${nameOf(event)} is not a whole-day event`);
  if (!event.isRecurring()) return daysOfOccurrence(event.startDate, event.duration.toSeconds());
  const days: number[] = [];
  const iterator = event.iterator();
  for (let start = iterator.next(); start && start.year <= LAST_YEAR; start = iterator.next()) {
    const occurrence = event.getOccurrenceDetails(start);
    if (occurrence.item.component.getFirstPropertyValue('status') === 'CANCELLED') continue;
    const seconds = occurrence.endDate.subtractDate(occurrence.startDate).toSeconds();
    days.push(...daysOfOccurrence(occurrence.startDate, seconds));
    if (days.length > MAX_DAYS) break;
  }
  return days;
}

function daysOfOccurrence(start: ICAL.Time, seconds: number): number[] {
  const first = dayOfDate(start.toString().slice(0, 10));
  if (first === undefined) return [];
  return daysFrom(first, Math.min(MAX_DAYS + 1, Math.max(1, Math.ceil(seconds / DAY_SECONDS))));
}

/** An upper bound of the iterations of ical.js until {@link LAST_YEAR}. Throws for rules that ical.js doesn't handle correctly. */
function stepsOf(event: ICAL.Event): number {
  const { startDate, component } = event;
  if (!startDate?.isDate) throw new CalendarError(`${nameOf(event)} is not a whole-day event`);
  if (startDate.year < FIRST_REPEATED_YEAR) {
    throw new CalendarError(`${nameOf(event)} repeats since before ${FIRST_REPEATED_YEAR}; let it begin later`);
  }
  const years = Math.max(0, LAST_YEAR - startDate.year) + 1;
  const listed = ['rdate', 'exdate'].reduce((sum, name) => sum + datesOf(component, name), 0);
  return rulesOf(event).reduce((sum, parts) => {
    checkRule(event, parts);
    return sum + Math.ceil((stepsPerYear(parts) * years) / Number(parts.get('INTERVAL') ?? 1));
  }, listed);
}

function stepsPerYear(parts: RuleParts): number {
  const least = STEPS_PER_YEAR[parts.get('FREQ') ?? ''] ?? Number.POSITIVE_INFINITY;
  if (![...parts.keys()].some((part) => part.startsWith('BY'))) return least;
  const months = parts.get('FREQ') === 'YEARLY' ? (parts.get('BYMONTH')?.split(',').length ?? 12) : 12;
  return Math.max(least, 31 * months);
}

function datesOf(component: ICAL.Component, name: string): number {
  return component.getAllProperties(name).reduce((sum, property) => sum + property.getValues().length, 0);
}

type RuleParts = ReadonlyMap<string, string>;

function rulesOf({ component }: ICAL.Event): RuleParts[] {
  return component
    .getAllProperties('rrule')
    .map((property) => String(property.getFirstValue()).split(';'))
    .map((parts) => new Map(parts.map((part) => part.split('=') as [string, string])));
}

/**
 * Refuses rules that ical.js can't handle. It does not terminate on some rules that never match, and returns wrong days for dates that don't
 * exist.
 */
function checkRule(event: ICAL.Event, parts: RuleParts): void {
  const interval = Number(parts.get('INTERVAL') ?? 1);
  if (interval > MAX_INTERVAL) {
    throw new CalendarError(
      `${nameOf(event)} repeats at an interval of ${interval}; at most ${MAX_INTERVAL} is supported`,
    );
  }
  const isPlain = [...parts.keys()].every((part) => RULE_PARTS.includes(part));
  const frequency = parts.get('FREQ') ?? '';
  const isFrequencyKnown = Object.hasOwn(STEPS_PER_YEAR, frequency);
  const isFiltered =
    (frequency === 'DAILY' && [...parts.keys()].some((part) => part.startsWith('BY'))) ||
    (frequency === 'MONTHLY' && parts.has('BYMONTH'));
  if (isPlain && isFrequencyKnown && !isFiltered && areRealDates(parts) && !mayNeverMatch(parts)) return;
  const rule = [...parts].map((part) => part.join('=')).join(';');
  throw new CalendarError(`${nameOf(event)} repeats by a rule that is not supported: ${rule.slice(0, 80)}`);
}

/** True for rules such as a fifth Monday, or a Monday the 28th, of every fourth February. */
function mayNeverMatch(parts: RuleParts): boolean {
  const places = [...(parts.get('BYDAY') ?? '').matchAll(/-?\d+/g)].map(([place]) => Math.abs(Number(place)));
  const isFifth = places.some((place) => place >= 5);
  const isEveryTime = (parts.get('INTERVAL') ?? '1') === '1';
  if (isFifth) return !isEveryTime || parts.get('FREQ') !== 'MONTHLY';
  return !isEveryTime && parts.has('BYDAY') && parts.has('BYMONTHDAY');
}

/** True if each named day is in each named month of every year. */
function areRealDates(parts: RuleParts): boolean {
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
