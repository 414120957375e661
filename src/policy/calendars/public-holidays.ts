import { createRequire } from 'node:module';
import type Holidays from 'date-holidays';
import { didYouMean } from '../suggest.ts';
import { type DaysResult, dayOfDate, daysFrom, FIRST_YEAR, LAST_YEAR, sortedDays } from './years.ts';

const DAY_MS = 86_400_000;

export interface HolidayPlace {
  country: string;
  state: string | undefined;
  region: string | undefined;
}

const known = new Map<string, DaysResult>();

/** The public holidays of a place, whole dates only. */
export function publicHolidays(place: HolidayPlace): DaysResult {
  const key = JSON.stringify([place.country, place.state, place.region]);
  const result = known.get(key) ?? readHolidays(place);
  known.set(key, result);
  return result;
}

function readHolidays({ country, state, region }: HolidayPlace): DaysResult {
  const holidays = openHolidays();
  const wrong =
    notAmong('country', country, holidays.getCountries()) ??
    notAmong('state', state, holidays.getStates(country), country) ??
    notAmong('region', region, holidays.getRegions(country, state ?? ''), `${country} ${state}`);
  if (wrong !== undefined) return { ok: false, message: wrong };
  holidays.init(country, state ?? '', region ?? '', { types: ['public'] });
  const years = Array.from({ length: LAST_YEAR - FIRST_YEAR + 1 }, (_, index) => FIRST_YEAR + index);
  return { ok: true, days: sortedDays(years.flatMap((year) => holidays.getHolidays(year).flatMap(daysOf))) };
}

/** Its data take 100 ms to load, so only who has a calendar of holidays pays for them. */
function openHolidays(): Holidays {
  const Loaded = createRequire(import.meta.url)('date-holidays') as typeof Holidays;
  return new Loaded();
}

function notAmong(what: string, code: string | undefined, all: object | undefined, of = ''): string | undefined {
  const codes = Object.keys(all ?? {});
  if (code === undefined || codes.includes(code)) return undefined;
  const place = of === '' ? '' : ` of ${of}`;
  const suggestion =
    didYouMean(code, codes) || (codes.length > 0 && codes.length < 60 ? `; expected one of ${codes.join(', ')}` : '');
  return `${JSON.stringify(code)} is not a ${what}${place}${suggestion}`;
}

/** Holidays that begin or end within a day are no whole dates. */
function daysOf(holiday: { date: string; start: Date; end: Date }): number[] {
  const day = dayOfDate(holiday.date.slice(0, 10));
  const count = Math.round((holiday.end.getTime() - holiday.start.getTime()) / DAY_MS);
  return day === undefined || !holiday.date.startsWith('00:00', 11) ? [] : daysFrom(day, count);
}
