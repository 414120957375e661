import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import type { TimeSpec, WeeklyWindow } from '../../src/domain/time/time-spec.ts';
import { anyOpenAt, isOpenAt, nextChangeOfAny, openSince } from '../../src/domain/time/windows.ts';

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7] as const;
const BERLIN = 'Europe/Berlin';

function minutes(text: string): number {
  const [hours = 0, rest = 0] = text.split(':').map(Number);
  return hours * 60 + rest;
}

function weekly(
  zone: string,
  from: string,
  to: string,
  { days = EVERY_DAY as WeeklyWindow['days'], endDayOffset = minutes(to) <= minutes(from) ? 1 : 0 } = {},
): WeeklyWindow {
  return { kind: 'weekly', days, startMinute: minutes(from), endMinute: minutes(to), endDayOffset, zone };
}

function interval(from: string, to: string): TimeSpec {
  return { kind: 'interval', startMs: ms(from), endMs: ms(to) };
}

function ms(iso: string): number {
  return DateTime.fromISO(iso, { zone: 'utc' }).toMillis();
}

/** All changes within [from, to) in UTC, each marked `+` for opening and `-` for closing. */
function changes(specs: readonly TimeSpec[], from: string, to: string): string[] {
  const found: string[] = [];
  let at = nextChangeOfAny(specs, ms(from) - 1);
  while (at !== undefined && at < ms(to)) {
    const text = DateTime.fromMillis(at, { zone: 'utc' }).toFormat("MM-dd'T'HH:mm");
    found.push(`${anyOpenAt(specs, at) ? '+' : '-'}${text}`);
    at = nextChangeOfAny(specs, at);
  }
  return found;
}

describe('weekly windows over changes of the clocks', () => {
  it.each([
    // Berlin: 02:00 → 03:00 on 2026-03-29 at 01:00Z; 03:00 → 02:00 on 2026-10-25 at 01:00Z.
    [
      'a start in the gap is the first instant after it',
      weekly(BERLIN, '02:30', '05:00'),
      '2026-03-29',
      ['+03-29T01:00', '-03-29T03:00'],
    ],
    [
      'an end in the gap is the first instant after it',
      weekly(BERLIN, '01:00', '02:30'),
      '2026-03-29',
      ['+03-29T00:00', '-03-29T01:00'],
    ],
    ['a window inside the gap does not open', weekly(BERLIN, '02:10', '02:50'), '2026-03-29', []],
    ['a window from the start to the end of the gap does not open', weekly(BERLIN, '02:00', '03:00'), '2026-03-29', []],
    [
      'a start that occurs twice is the first of the two',
      weekly(BERLIN, '02:30', '05:00'),
      '2026-10-25',
      ['+10-25T00:30', '-10-25T04:00'],
    ],
    [
      'an end that occurs twice is the first of the two',
      weekly(BERLIN, '01:00', '02:30'),
      '2026-10-25',
      ['+10-24T23:00', '-10-25T00:30'],
    ],
    [
      'both ends that occur twice happen once each',
      weekly(BERLIN, '02:10', '02:50'),
      '2026-10-25',
      ['+10-25T00:10', '-10-25T00:50'],
    ],
    [
      'an end after the repeated hour makes the window an hour longer',
      weekly(BERLIN, '02:00', '03:00'),
      '2026-10-25',
      ['+10-25T00:00', '-10-25T02:00'],
    ],
    // Lord Howe: half an hour, 02:00 → 02:30 on 2026-10-04 at 15:30Z the day before; 02:00 → 01:30 on 2026-04-05 at 15:00Z.
    [
      'half an hour is skipped on Lord Howe',
      weekly('Australia/Lord_Howe', '02:15', '03:00'),
      '2026-10-04',
      ['+10-03T15:30', '-10-03T16:00'],
    ],
    [
      'half an hour comes twice on Lord Howe',
      weekly('Australia/Lord_Howe', '01:45', '03:00'),
      '2026-04-05',
      ['+04-04T14:45', '-04-04T16:30'],
    ],
    // New York: 02:00 → 03:00 on 2026-03-08 at 07:00Z; 02:00 → 01:00 on 2026-11-01 at 06:00Z.
    [
      'New York skips 02:30',
      weekly('America/New_York', '02:30', '04:00'),
      '2026-03-08',
      ['+03-08T07:00', '-03-08T08:00'],
    ],
    [
      'New York repeats 01:30',
      weekly('America/New_York', '01:30', '04:00'),
      '2026-11-01',
      ['+11-01T05:30', '-11-01T09:00'],
    ],
    // Cairo: 00:00 → 01:00 on 2026-04-24 at 22:00Z the day before; 24:00 → 23:00 on 2026-10-29 at 21:00Z.
    ['Cairo skips midnight', weekly('Africa/Cairo', '00:00', '06:00'), '2026-04-24', ['+04-23T22:00', '-04-24T03:00']],
    [
      'Cairo repeats the hour before midnight',
      weekly('Africa/Cairo', '23:30', '24:00'),
      '2026-10-29',
      ['+10-29T20:30', '-10-29T22:00'],
    ],
    // Santiago: 24:00 → 01:00 on 2026-09-06 at 04:00Z; 24:00 → 23:00 on 2026-04-05 at 03:00Z.
    [
      'Santiago skips midnight',
      weekly('America/Santiago', '00:30', '06:00'),
      '2026-09-06',
      ['+09-06T04:00', '-09-06T09:00'],
    ],
    [
      'Santiago repeats 23:30 the day before',
      weekly('America/Santiago', '23:30', '06:00'),
      '2026-04-04',
      ['+04-05T02:30', '-04-05T10:00'],
    ],
    // Beirut: 00:00 → 01:00 on 2026-03-29 at 22:00Z the day before; 24:00 → 23:00 on 2026-10-24 at 21:00Z.
    ['Beirut skips midnight', weekly('Asia/Beirut', '00:00', '01:00'), '2026-03-29', []],
    [
      'Beirut repeats the hour before midnight',
      weekly('Asia/Beirut', '22:00', '24:00'),
      '2026-10-24',
      ['+10-24T19:00', '-10-24T22:00'],
    ],
    // Apia left out the whole of 2011-12-30.
    ['a day that a zone leaves out has no window', weekly('Pacific/Apia', '08:00', '18:00'), '2011-12-30', []],
    // St. John's went back at 00:01 to 23:01 of the day before, on 2010-11-07 at 02:31Z.
    [
      'a day that has begun and goes back keeps its window open',
      weekly('America/St_Johns', '00:00', '06:00', { days: [7] }),
      '2010-11-07',
      ['+11-07T02:30', '-11-07T09:30'],
    ],
  ])('%s', (_name, spec, date, expected) => {
    const weekday = DateTime.fromISO(date, { zone: 'utc' }).weekday as WeeklyWindow['days'][number];
    const onThatDay = { ...spec, days: [weekday] };
    const from = `${DateTime.fromISO(date, { zone: 'utc' }).minus({ days: 2 }).toISODate()}T00:00`;
    const to = `${DateTime.fromISO(date, { zone: 'utc' }).plus({ days: 3 }).toISODate()}T00:00`;
    expect(changes([onThatDay], from, to)).toEqual(expected);
  });
});

it('a window is open in the minutes of the day before that come again once it has begun', () => {
  const sunday = weekly('America/St_Johns', '00:00', '06:00', { days: [7] });
  const open = ['02:29', '02:30', '02:31', '02:45', '03:40', '09:29', '09:30'].map((time) => `2010-11-07T${time}`);
  expect(open.map((time) => isOpenAt(sunday, ms(time)))).toEqual([false, true, true, true, true, true, false]);
});

describe('weekly windows', () => {
  it('belong to the day on which they start when they run over midnight', () => {
    const night = weekly(BERLIN, '22:00', '06:00', { days: [5] });
    expect(changes([night], '2026-06-01T00:00', '2026-06-08T00:00')).toEqual(['+06-05T20:00', '-06-06T04:00']);
  });

  it('last to the same local time of the next day when both ends are equal', () => {
    const day = weekly(BERLIN, '03:00', '03:00', { days: [6] });
    expect(changes([day], '2026-06-01T00:00', '2026-06-08T00:00')).toEqual(['+06-06T01:00', '-06-07T01:00']);
    expect(changes([day], '2026-03-26T00:00', '2026-03-31T00:00')).toEqual(['+03-28T02:00', '-03-29T01:00']);
  });

  it('span days', () => {
    const weekend = weekly('UTC', '20:00', '06:00', { days: [5], endDayOffset: 3 });
    expect(changes([weekend], '2026-06-02T00:00', '2026-06-15T00:00')).toEqual([
      '+06-05T20:00',
      '-06-08T06:00',
      '+06-12T20:00',
    ]);
    expect(openSince([weekend], ms('2026-06-07T12:00'))).toBe(ms('2026-06-05T20:00'));
  });

  it('merge where one ends and the next begins', () => {
    const days = weekly(BERLIN, '00:00', '24:00', { days: [1, 2, 3] });
    expect(changes([days], '2026-06-01T00:00', '2026-06-07T00:00')).toEqual(['-06-03T22:00']);
    expect(openSince([days], ms('2026-06-03T10:00'))).toBe(ms('2026-05-31T22:00'));
    const halves = [weekly(BERLIN, '08:00', '12:00'), weekly(BERLIN, '12:00', '18:00')];
    expect(changes(halves, '2026-06-01T00:00', '2026-06-02T00:00')).toEqual(['+06-01T06:00', '-06-01T16:00']);
  });

  it('that cover every minute of the week never change', () => {
    const always = [weekly(BERLIN, '00:00', '02:30'), weekly(BERLIN, '02:30', '24:00')];
    expect(nextChangeOfAny(always, ms('2026-03-28T00:00'))).toBeUndefined();
    expect(openSince(always, ms('2026-03-29T01:00'))).toBe(Number.NEGATIVE_INFINITY);
    expect(nextChangeOfAny([{ kind: 'always' }], 0)).toBeUndefined();
    expect(isOpenAt({ kind: 'always' }, 0)).toBe(true);
  });

  it('of two zones that cover each other for ever never change', () => {
    const specs = [weekly('UTC', '00:00', '12:00'), weekly('Asia/Tokyo', '21:00', '09:00')];
    expect(nextChangeOfAny(specs, ms('2026-06-01T00:00'))).toBeUndefined();
    expect(openSince(specs, ms('2026-06-01T00:00'))).toBe(Number.NEGATIVE_INFINITY);
    const withInterval = [...specs, interval('2030-01-01T00:00', '2031-01-01T00:00')];
    expect(nextChangeOfAny(withInterval, ms('2026-06-01T00:00'))).toBeUndefined();
  });

  it('of two zones leave a gap only in the weeks in which their clocks disagree', () => {
    const specs = [weekly(BERLIN, '08:00', '20:00'), weekly('America/New_York', '14:00', '02:00')];
    expect(nextChangeOfAny(specs, ms('2026-01-01T00:00'))).toBe(ms('2026-03-09T06:00'));
  });

  it('that end before they start never open', () => {
    const never: WeeklyWindow = { ...weekly(BERLIN, '08:00', '07:00'), endDayOffset: 0 };
    expect(nextChangeOfAny([never], 0)).toBeUndefined();
    expect(isOpenAt(never, ms('2026-06-01T06:30'))).toBe(false);
  });
});

describe('absolute intervals', () => {
  it('are half-open and happen once', () => {
    const spec = interval('2026-12-24T00:00', '2026-12-27T00:00');
    expect([-1, 0].map((offset) => isOpenAt(spec, ms('2026-12-24T00:00') + offset))).toEqual([false, true]);
    expect([-1, 0].map((offset) => isOpenAt(spec, ms('2026-12-27T00:00') + offset))).toEqual([true, false]);
    expect(changes([spec], '2026-01-01T00:00', '2028-01-01T00:00')).toEqual(['+12-24T00:00', '-12-27T00:00']);
    expect(nextChangeOfAny([spec], 0)).toBe(ms('2026-12-24T00:00'));
    expect(nextChangeOfAny([spec], ms('2026-12-27T00:00'))).toBeUndefined();
  });

  it('merge with a weekly window that they overlap', () => {
    const specs = [weekly('UTC', '08:00', '18:00'), interval('2026-06-01T12:00', '2026-06-02T10:00')];
    expect(changes(specs, '2026-06-01T00:00', '2026-06-03T00:00')).toEqual(['+06-01T08:00', '-06-02T18:00']);
    expect(openSince(specs, ms('2026-06-02T17:00'))).toBe(ms('2026-06-01T08:00'));
    expect(openSince(specs, ms('2026-06-02T18:00'))).toBeUndefined();
  });

  it('that are empty never open', () => {
    const spec = interval('2026-06-01T00:00', '2026-06-01T00:00');
    expect(nextChangeOfAny([spec], 0)).toBeUndefined();
    expect(isOpenAt(spec, ms('2026-06-01T00:00'))).toBe(false);
  });
});
