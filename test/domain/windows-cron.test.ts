import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import type { Calendar, CronSwitch, CronWindow, TimeSpec, WeeklyWindow } from '../../src/domain/time/time-spec.ts';
import { anyOpenAt, mayHaveChangedUntil, nextChangeOfAny, openSince } from '../../src/domain/time/windows.ts';

const BERLIN = 'Europe/Berlin';
const HOUR_MS = 3_600_000;

function cron(expression: string, hours: number, zone = BERLIN): CronWindow {
  return { kind: 'cron', cron: expression, forMs: hours * HOUR_MS, zone };
}

function between(startCron: string, endCron: string, zone = BERLIN): CronSwitch {
  return { kind: 'cron-switch', startCron, endCron, zone };
}

function calendar(...dates: string[]): Calendar {
  return {
    name: 'days',
    days: dates.map((date) => DateTime.fromISO(date, { zone: 'utc' }).toMillis() / (24 * HOUR_MS)),
  };
}

function ms(iso: string): number {
  return DateTime.fromISO(iso, { zone: 'utc' }).toMillis();
}

/** All changes within [from, to) in UTC, each marked `+` for opening and `-` for closing. */
function changes(spec: TimeSpec, from: string, to: string): string[] {
  const found: string[] = [];
  let at = nextChangeOfAny([spec], ms(from) - 1);
  while (at !== undefined && at < ms(to)) {
    found.push(
      `${anyOpenAt([spec], at) ? '+' : '-'}${DateTime.fromMillis(at, { zone: 'utc' }).toFormat("MM-dd'T'HH:mm")}`,
    );
    at = nextChangeOfAny([spec], at);
  }
  return found;
}

// Berlin: 02:00 → 03:00 on 2026-03-29 at 01:00Z; 03:00 → 02:00 on 2026-10-25 at 01:00Z.
describe('cron windows over changes of the clocks', () => {
  it.each<[string, TimeSpec, string, string, string[]]>([
    [
      'a fixed hour in the gap fires at the first instant after it',
      cron('30 2 * * *', 2),
      '03-28T12:00',
      '03-29T12:00',
      ['+03-29T01:00', '-03-29T03:00'],
    ],
    [
      'fixed times that the gap swallows fire once, together',
      cron('*/20 2 * * *', 0.1),
      '03-28T12:00',
      '03-29T12:00',
      ['+03-29T01:00', '-03-29T01:06'],
    ],
    [
      'a fixed hour that occurs twice fires the first time only',
      cron('30 2 * * *', 0.5),
      '10-24T12:00',
      '10-25T12:00',
      ['+10-25T00:30', '-10-25T01:00'],
    ],
    [
      'a fixed range of hours fires once for each hour',
      cron('0 0-4 * * *', 0.25),
      '10-24T12:00',
      '10-25T02:30',
      [
        '+10-24T22:00',
        '-10-24T22:15',
        '+10-24T23:00',
        '-10-24T23:15',
        '+10-25T00:00',
        '-10-25T00:15',
        '+10-25T02:00',
        '-10-25T02:15',
      ],
    ],
    [
      'a wildcard hour fires in both of the hours that occur twice',
      cron('30 * * * *', 0.25),
      '10-24T23:50',
      '10-25T02:00',
      ['+10-25T00:30', '-10-25T00:45', '+10-25T01:30', '-10-25T01:45'],
    ],
    [
      'a step in the hour does not fire in the gap',
      cron('0 */2 * * *', 0.25),
      '03-28T22:30',
      '03-29T02:30',
      ['+03-28T23:00', '-03-28T23:15', '+03-29T02:00', '-03-29T02:15'],
    ],
    // Beirut: 24:00 → 23:00 on 2026-10-24 at 21:00Z.
    [
      'the last allowed date comes back when clocks go back over midnight',
      { ...cron('*/30 * * * *', 0.25, 'Asia/Beirut'), dates: { only: [calendar('2026-10-24')] } },
      '10-24T20:31',
      '10-26T00:00',
      ['-10-24T20:45', '+10-24T21:00', '-10-24T21:15', '+10-24T21:30', '-10-24T21:45'],
    ],
    [
      'a switch starts again when clocks go back over midnight to the last allowed date',
      {
        ...between('*/30 * * * *', '15-59/30 * * * *', 'Asia/Beirut'),
        dates: { only: [calendar('2026-10-24')] },
      },
      '10-24T20:31',
      '10-26T00:00',
      ['-10-24T20:45', '+10-24T21:00', '-10-24T21:15', '+10-24T21:30', '-10-24T21:45'],
    ],
    [
      'an opening lasts for elapsed time',
      cron('0 1 * * *', 3),
      '03-28T12:00',
      '03-29T12:00',
      ['+03-29T00:00', '-03-29T03:00'],
    ],
    [
      'a start and an end that the gap brings together do not open',
      between('10 2 * * *', '50 2 * * *'),
      '03-28T12:00',
      '03-29T12:00',
      [],
    ],
    [
      'a start after an end that the gap brings together opens',
      between('50 2 * * *', '10 2 * * *'),
      '03-29T00:30',
      '03-30T12:00',
      ['-03-30T00:10', '+03-30T00:50'],
    ],
    // Half an hour, changes at midnight, and the southern half of the year: the dates are those of windows.test.ts.
    [
      'half an hour is skipped on Lord Howe',
      cron('15 2 * * *', 0.25, 'Australia/Lord_Howe'),
      '10-03T12:00',
      '10-04T12:00',
      ['+10-03T15:30', '-10-03T15:45'],
    ],
    [
      'half an hour comes twice on Lord Howe',
      cron('45 1 * * *', 0.25, 'Australia/Lord_Howe'),
      '04-04T12:00',
      '04-05T12:00',
      ['+04-04T14:45', '-04-04T15:00'],
    ],
    [
      'Cairo skips midnight',
      cron('0 0 * * *', 1, 'Africa/Cairo'),
      '04-23T12:00',
      '04-24T12:00',
      ['+04-23T22:00', '-04-23T23:00'],
    ],
    [
      'Cairo repeats the hour before midnight, a wildcard fires in both',
      cron('30 * * * *', 0.25, 'Africa/Cairo'),
      '10-29T20:00',
      '10-29T22:00',
      ['+10-29T20:30', '-10-29T20:45', '+10-29T21:30', '-10-29T21:45'],
    ],
    [
      'Santiago repeats 23:30 the day before',
      cron('30 23 * * *', 0.25, 'America/Santiago'),
      '04-04T12:00',
      '04-05T12:00',
      ['+04-05T02:30', '-04-05T02:45'],
    ],
    [
      'both ends that occur twice happen once each',
      between('10 2 * * *', '50 2 * * *'),
      '10-24T12:00',
      '10-25T12:00',
      ['+10-25T00:10', '-10-25T00:50'],
    ],
  ])('%s', (_name, spec, from, to, expected) => {
    expect(changes(spec, `2026-${from}`, `2026-${to}`)).toEqual(expected);
  });
});

// St. John's went back at 00:01 to 23:01 of the day before, on 2010-11-07 at 02:31Z.
describe('clocks that go back just after midnight', () => {
  const from = '2010-11-07T02:29';

  it('keep the firing of a date that has begun, though its date comes again', () => {
    const spec = { ...cron('0 */2 * * *', 0.25, 'America/St_Johns'), dates: { only: [calendar('2010-11-07')] } };
    expect(changes(spec, from, '2010-11-07T04:00')).toEqual([
      '+11-07T02:30',
      '-11-07T02:45',
      '+11-07T03:30',
      '-11-07T03:45',
    ]);
    expect(openSince([spec], ms('2010-11-07T02:40'))).toBe(ms('2010-11-07T02:30'));
  });

  it('open windows again that touch each other all day, in the minutes that come again', () => {
    const spec = { ...cron('* * * * *', 1 / 60, 'America/St_Johns'), dates: { only: [calendar('2010-11-06')] } };
    expect(changes(spec, from, '2010-11-08T00:00')).toEqual(['-11-07T02:30', '+11-07T02:31', '-11-07T03:30']);
    expect(openSince([spec], ms('2010-11-07T03:00'))).toBe(ms('2010-11-07T02:31'));
  });
});

describe('a cron window', () => {
  it('opens at each firing, and openings that overlap are one', () => {
    expect(changes(cron('0 4 * * 0', 2, 'UTC'), '2026-06-01', '2026-06-15')).toEqual([
      '+06-07T04:00',
      '-06-07T06:00',
      '+06-14T04:00',
      '-06-14T06:00',
    ]);
    expect(changes(cron('0,30 8-9 * * 1', 1, 'UTC'), '2026-06-01', '2026-06-03')).toEqual([
      '+06-01T08:00',
      '-06-01T10:30',
    ]);
    expect(openSince([cron('0,30 8-9 * * 1', 1, 'UTC')], ms('2026-06-01T10:15'))).toBe(ms('2026-06-01T08:00'));
  });

  it('finds firings that are years away, and none where there is none', () => {
    expect(nextChangeOfAny([cron('0 0 29 2 *', 1, 'UTC')], ms('2026-06-01'))).toBe(ms('2028-02-29'));
    expect(nextChangeOfAny([cron('0 0 31 2,4 *', 1, 'UTC')], ms('2026-06-01'))).toBeUndefined();
  });

  it('that fires every minute never closes', () => {
    const spec: CronWindow = { ...cron('* * * * *', 0), forMs: 60_000 };
    expect(nextChangeOfAny([spec], ms('2026-06-01'))).toBeUndefined();
    expect(openSince([spec], ms('2026-06-01'))).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('a window between two cron expressions', () => {
  it('is open when the latest firing was a start, over weekends as well', () => {
    const spec = between('0 8 * * 1-5', '0 18 * * 5', 'UTC');
    expect(changes(spec, '2026-06-01', '2026-06-09')).toEqual(['+06-01T08:00', '-06-05T18:00', '+06-08T08:00']);
    expect(openSince([spec], ms('2026-06-04T12:00'))).toBe(ms('2026-06-01T08:00'));
  });

  it('stays open where an end and a start are at the same time', () => {
    const spec = between('0 8 * * 1', '0 8,18 * * 1', 'UTC');
    expect(changes(spec, '2026-06-01', '2026-06-02')).toEqual(['+06-01T08:00', '-06-01T18:00']);
    const never = between('0 8 * * *', '0 8 * * *', 'UTC');
    expect(nextChangeOfAny([never], ms('2026-06-01'))).toBeUndefined();
    expect(openSince([never], ms('2026-06-01'))).toBe(Number.NEGATIVE_INFINITY);
  });

  it('has closed before, however many of its starts an end undid in gaps of the clocks since', () => {
    const gapDays = Array.from({ length: 20 }, (_, index) => {
      const april = DateTime.utc(2006 + index, 4, 1);
      return april.minus({ days: april.weekday % 7 || 7 }).toISODate() ?? '';
    });
    const spec = {
      ...between('10 2 * * *', '50 2 * * *'),
      dates: { only: [calendar('2005-06-01', ...gapDays)] },
    };
    let untilMs = ms('2026-06-01');
    const isChange = () => anyOpenAt([spec], untilMs) !== anyOpenAt([spec], untilMs - 1);
    do untilMs = mayHaveChangedUntil([spec], untilMs - 1);
    while (Number.isFinite(untilMs) && !isChange());
    expect(untilMs).toBe(ms('2005-06-01T00:50'));
  });
});

describe('calendars', () => {
  const week = (dates: WeeklyWindow['dates']): WeeklyWindow => ({
    kind: 'weekly',
    days: [1, 2, 3, 4, 5],
    startMinute: 1320,
    endMinute: 360,
    endDayOffset: 1,
    zone: 'UTC',
    ...(dates && { dates }),
  });

  it('leave a window closed that starts on an excepted date, not one that runs into it', () => {
    const spec = week({ except: [calendar('2026-06-03')] });
    expect(changes(spec, '2026-06-02T12:00', '2026-06-05T12:00')).toEqual([
      '+06-02T22:00',
      '-06-03T06:00',
      '+06-04T22:00',
      '-06-05T06:00',
    ]);
  });

  it('open a window on the dates of `only` alone, of one calendar or another', () => {
    const spec = week({ only: [calendar('2026-06-03', '2026-06-06'), calendar('2027-01-04')] });
    expect(changes(spec, '2026-06-01', '2028-01-01')).toEqual([
      '+06-03T22:00',
      '-06-04T06:00',
      '+01-04T22:00',
      '-01-05T06:00',
    ]);
  });

  it('leave out of `only` what `except` names', () => {
    const spec = week({ only: [calendar('2026-06-03', '2026-06-04')], except: [calendar('2026-06-03')] });
    expect(changes(spec, '2026-06-01', '2026-06-10')).toEqual(['+06-04T22:00', '-06-05T06:00']);
  });

  it('decide by the local date on which a cron fires', () => {
    const spec = { ...cron('30 23 * * *', 1), dates: { except: [calendar('2026-06-03')] } };
    expect(changes(spec, '2026-06-02T12:00', '2026-06-04T12:00')).toEqual(['+06-02T21:30', '-06-02T22:30']);
    const starts = { ...between('0 8 * * *', '0 18 * * *', 'UTC'), dates: { only: [calendar('2026-06-03')] } };
    expect(changes(starts, '2026-06-01', '2026-06-10')).toEqual(['+06-03T08:00', '-06-03T18:00']);
  });

  it('that are never on a day of the window leave it closed for ever', () => {
    expect(nextChangeOfAny([week({ only: [calendar('2026-06-06', '2026-06-07')] })], ms('2026-06-01'))).toBeUndefined();
    const sundays = Array.from(
      { length: 500 },
      (_, index) => DateTime.fromISO('2026-06-07').plus({ weeks: index }).toISODate() ?? '',
    );
    const spec: WeeklyWindow = { ...week({ except: [calendar(...sundays)] }), days: [7] };
    expect(nextChangeOfAny([spec], ms('2026-06-02'))).toBe(ms('2036-01-06T22:00'));
  });
});

describe('windows that meet again and again', () => {
  const takingTurns = [cron('*/2 * * * *', 1 / 60), cron('1-59/2 * * * *', 1 / 60)];

  it('count as open for ever, instead of being followed from minute to minute for years', () => {
    expect(nextChangeOfAny(takingTurns, ms('2026-06-02'))).toBeUndefined();
    expect(openSince(takingTurns, ms('2026-06-02'))).toBe(Number.NEGATIVE_INFINITY);
  });
});
