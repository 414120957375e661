import { createRequire } from 'node:module';
import type Holidays from 'date-holidays';
import { DateTime } from 'luxon';
import { didYouMean } from '../../common/names.ts';
import { getOrAdd } from '../../domain/grouping.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS } from '../../domain/time/units.ts';

export interface HolidayPlace {
  country: string;
  state: string | undefined;
  region: string | undefined;
}

const cache = new Map<string, DaysResult>();

/** The public holidays of a place up to {@link LAST_YEAR}, without those that begin later than 00:00. */
export function publicHolidays(place: HolidayPlace): DaysResult {
  return holidaysIn(place, CALENDAR_YEARS);
}

/** The holidays of a country in the years of a span, as days since 1970-01-01; undefined if the country is unknown. */
export function holidaysOf(country: string, { fromMs, toMs }: Span): readonly number[] | undefined {
  // In local time, the first and the last day of the span may be in another year.
  const first = new Date(fromMs - DAY_MS).getUTCFullYear();
  const last = new Date(toMs + DAY_MS).getUTCFullYear();
  const found = holidaysIn({ country, state: undefined, region: undefined }, { first, last });
  return found.ok ? found.days : undefined;
}

function holidaysIn(place: HolidayPlace, years: Years): DaysResult {
  const key = JSON.stringify([place.country, place.state, place.region, years.first, years.last]);
  return getOrAdd(cache, key, () => readHolidays(place, years));
}

/** Takes some milliseconds for each year. */
function readHolidays({ country, state, region }: HolidayPlace, { first, last }: Years): DaysResult {
  const holidays = openHolidays();
  const wrong =
    codeProblem({ level: 'country', code: country, within: '' }, (language) => holidays.getCountries(language)) ??
    codeProblem({ level: 'state', code: state, within: country }, (language) =>
      holidays.getStates(country, language),
    ) ??
    codeProblem({ level: 'region', code: region, within: `${country} ${state}` }, (language) =>
      holidays.getRegions(country, state ?? '', language),
    );
  if (wrong !== undefined) return { ok: false, message: wrong };
  holidays.init(country, state ?? '', region ?? '', { types: ['public'] });
  const years = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return { ok: true, days: sortedDays(years.flatMap((year) => holidays.getHolidays(year).flatMap(daysOf))) };
}

/** Loads the data on demand, as this takes 100 ms. */
function openHolidays(): Holidays {
  const Loaded = createRequire(import.meta.url)('./holiday-library.cjs') as typeof Holidays;
  return new Loaded();
}

interface PlaceCode {
  level: 'country' | 'state' | 'region';
  code: string | undefined;
  /** The place that contains this one, such as `DE` for a state; empty for a country. */
  within: string;
}

/** The names of places by code, in a language; by default in that of the country. */
type NamesIn = (language?: string) => Readonly<Record<string, string>> | undefined;

/** The problem of a code that is not in the data; undefined for a known or absent code. */
function codeProblem({ level, code, within }: PlaceCode, namesIn: NamesIn): string | undefined {
  const codes = Object.keys(namesIn() ?? {});
  if (code === undefined || codes.includes(code)) return undefined;
  const place = within === '' ? '' : ` of ${within}`;
  const few = codes.length > 0 && codes.length < 60 ? `; expected one of ${codes.join(', ')}` : '';
  const named = codeOf(code, [namesIn(), namesIn('en')]);
  const suggestion = named === undefined ? didYouMean(code, codes) || few : `; write ${named}`;
  return `${JSON.stringify(code)} is not a ${level}${place}${suggestion}`;
}

/** Codes that people often write, with those that the data have instead. */
const COMMON_MISTAKES: Readonly<Record<string, string>> = { UK: 'GB', EN: 'GB', USA: 'US' };

/** The code of a place by its name, ignoring case. */
function codeOf(name: string, tables: readonly ReturnType<NamesIn>[]): string | undefined {
  const wanted = name.trim().toLowerCase();
  const entries = tables.flatMap((names) => Object.entries(names ?? {}));
  const found = entries.find(([, text]) => text.toLowerCase() === wanted)?.[0] ?? COMMON_MISTAKES[name.toUpperCase()];
  return entries.some(([code]) => code === found) ? found : undefined;
}

/** The days of a holiday; empty if it begins later than 00:00. */
function daysOf(holiday: { date: string; start: Date; end: Date }): number[] {
  const day = dayOfDate(holiday.date.slice(0, 10));
  const count = Math.round((holiday.end.getTime() - holiday.start.getTime()) / DAY_MS);
  return day === undefined || !holiday.date.startsWith('00:00', 11) ? [] : daysFrom(day, count);
}

/** Calendars end with this year. It is fixed, so that a policy set means the same whenever it is read. */
export const LAST_YEAR = 2050;
const CALENDAR_YEARS: Years = { first: 2024, last: LAST_YEAR };

interface Years {
  first: number;
  last: number;
}

/** Days since 1970-01-01 of a date `yyyy-mm-dd`; undefined for any other text. */
export function dayOfDate(date: string): number | undefined {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(date) ? DateTime.fromISO(date, { zone: 'utc' }) : undefined;
  return at?.isValid ? at.toMillis() / DAY_MS : undefined;
}

/** Ascending, each once. */
export function sortedDays(days: Iterable<number>): number[] {
  return [...new Set(days)].sort((a, b) => a - b);
}

/** `count` days from `day` on. */
export function daysFrom(day: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => day + index);
}

/** Days of a calendar, or its problem. */
export type DaysResult = { ok: true; days: number[] } | { ok: false; message: string };
