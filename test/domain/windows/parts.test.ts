import { describe, expect, it } from 'vitest';
import { lowerBound } from '../../../src/domain/sorted.ts';
import type { Calendar, CronWindow, DateFilter, TimeSpec, WeeklyWindow } from '../../../src/domain/time/time-spec.ts';
import { coverWholeWeek } from '../../../src/domain/time/windows/coverage.ts';
import { firingAfter, firingAtOrBefore, hasFixedHour } from '../../../src/domain/time/windows/cron-firings.ts';
import { firingsOfDay, nearestLocalTime } from '../../../src/domain/time/windows/cron-times.ts';
import { allowsDay, nearestAllowedDay } from '../../../src/domain/time/windows/date-filter.ts';
import { instantOfLocal, localDayAt, offsetMsAt, weekdayOf } from '../../../src/domain/time/windows/local-time.ts';
import { kindOf } from '../../../src/domain/time/windows.ts';
import { at, aWindow } from '../../support/builders.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const BERLIN = 'Europe/Berlin';
const EVERY_DAY: WeeklyWindow['days'] = [1, 2, 3, 4, 5, 6, 7];
const dayOf = (date: string) => at(`${date}T00:00:00Z`) / DAY_MS;
const calendar = (...dates: string[]): Calendar => ({ name: 'days', days: dates.map(dayOf) });
const texts = (...instants: (number | undefined)[]) =>
  instants.map((ms) => (ms === undefined ? undefined : new Date(ms).toISOString().slice(5, 16)));

describe('windows cover the whole week', () => {
  const from = (startMinute: number, endMinute: number, fields: Partial<WeeklyWindow> = {}) =>
    aWindow({ days: EVERY_DAY, startMinute, endMinute, ...fields });
  const filter = { dates: { except: [calendar('2026-06-03')] } };

  it.each<[string, boolean, TimeSpec[]]>([
    ['none', false, []],
    ['one that is always open', true, [from(0, 1), { kind: 'always' }]],
    ['whole days', true, [from(0, 1440)]],
    ['whole days but one', false, [from(0, 1440, { days: [1, 2, 3, 4, 5, 6] })]],
    ['all but the first minute', false, [from(1, 1440)]],
    ['all but the last minute', false, [from(0, 1439)]],
    ['two halves, in any order', true, [from(720, 1440), from(0, 720)]],
    ['two that leave a minute between them', false, [from(0, 720), from(721, 1440)]],
    ['two that overlap', true, [from(0, 800), from(700, 1440)]],
    ['a short one in a long one', true, [from(0, 1440), from(60, 120)]],
    ['nights and days', true, [from(480, 1200), from(1200, 480, { endDayOffset: 1 })]],
    ['from one local time to the next day the same', true, [from(180, 180, { endDayOffset: 1 })]],
    ['a week from a Wednesday on', true, [from(600, 600, { days: [3], endDayOffset: 7 })]],
    ['a week less a minute', false, [from(600, 599, { days: [3], endDayOffset: 7 })]],
    ['halves of different zones', false, [from(0, 720), from(720, 1440, { zone: BERLIN })]],
    ['all of one zone and some of another', true, [from(0, 60, { zone: BERLIN }), from(0, 1440)]],
    ['whole days but for some dates', false, [from(0, 1440, filter)]],
    ['an interval', false, [{ kind: 'interval', startMs: 0, endMs: 1 }]],
  ])('%s: %j', (_what, covered, specs) => {
    expect([coverWholeWeek(specs), coverWholeWeek(specs)]).toEqual([covered, covered]);
  });
});

describe('dates', () => {
  const [second, third, fourth] = ['2026-06-02', '2026-06-03', '2026-06-04'].map(dayOf) as [number, number, number];
  const only = (...dates: string[]) => ({ only: [calendar(...dates)] });

  it.each<[string, DateFilter | undefined, boolean]>([
    ['all without a filter', undefined, true],
    ['all with an empty one', {}, true],
    ['those of only', only('2026-06-03'), true],
    ['not others than those of only', only('2026-06-02', '2026-06-04'), false],
    ['those of any of several', { only: [calendar('2026-06-02'), calendar('2026-06-03')] }, true],
    ['not those of except', { except: [calendar('2026-06-02'), calendar('2026-06-03')] }, false],
    ['others than those of except', { except: [calendar('2026-06-02')] }, true],
    ['not those of both', { ...only('2026-06-03'), except: [calendar('2026-06-03')] }, false],
  ])('are allowed: %s', (_what, filter, allowed) => {
    expect(allowsDay(filter, third)).toBe(allowed);
  });

  it.each<[string, DateFilter | undefined, number | undefined, number | undefined]>([
    ['itself', undefined, third, third],
    ['the next that is not excepted', { except: [calendar('2026-06-03')] }, fourth, second],
    ['itself of only', only('2026-06-02', '2026-06-03', '2026-06-04'), third, third],
    ['the next of only', only('2026-06-02', '2026-06-04'), fourth, second],
    ['none', only(), undefined, undefined],
    ['none beyond', only('2026-06-02'), undefined, second],
    [
      'the nearest of several',
      { only: [calendar('2026-05-01', '2026-07-01'), calendar('2026-06-02', '2026-06-04')] },
      fourth,
      second,
    ],
    [
      'the nearest, in whatever order',
      { only: [calendar('2026-06-02', '2026-06-04'), calendar('2026-05-01', '2026-07-01')] },
      fourth,
      second,
    ],
    [
      'none that is excepted',
      { ...only('2026-06-02', '2026-06-03', '2026-06-04'), except: [calendar('2026-06-03', '2026-06-04')] },
      undefined,
      second,
    ],
  ])('nearest to a day: %s', (_what, filter, next, previous) => {
    expect([nearestAllowedDay(filter, third, 'next'), nearestAllowedDay(filter, third, 'prev')]).toEqual([
      next,
      previous,
    ]);
  });
});

it('the place of a number among ascending ones is that of the first that is not smaller', () => {
  expect([0, 1, 2, 3, 5, 6, 7].map((from) => lowerBound([1, 3, 6], from))).toEqual([0, 0, 1, 1, 2, 2, 3]);
  expect(lowerBound([], 1)).toBe(0);
});

describe('local time', () => {
  it('has days from 1970-01-01 on, and their weekdays', () => {
    const midnight = at('2026-06-01T22:00:00Z');
    expect([midnight - 1, midnight].map((ms) => localDayAt(BERLIN, ms))).toEqual(
      ['2026-06-01', '2026-06-02'].map(dayOf),
    );
    expect([-4, -3, -1, 0, 1, 3, 4].map(weekdayOf)).toEqual([7, 1, 3, 4, 5, 7, 1]);
  });

  it.each([
    ['the hour before a gap', '2026-03-29T01:59:00Z', '2026-03-29T00:59:00Z'],
    ['a gap', '2026-03-29T02:30:00Z', '2026-03-29T01:00:00Z'],
    ['the hour after a gap', '2026-03-29T03:00:00Z', '2026-03-29T01:00:00Z'],
    ['the first of an hour that comes twice', '2026-10-25T02:30:00Z', '2026-10-25T00:30:00Z'],
    ['the hour after one that comes twice', '2026-10-25T03:00:00Z', '2026-10-25T02:00:00Z'],
    ['summer', '2026-06-01T12:00:00Z', '2026-06-01T10:00:00Z'],
  ])('in %s is one instant', (_what, local, instant) => {
    expect(instantOfLocal(BERLIN, at(local))).toBe(at(instant));
  });

  it('is ahead of UTC by what the zone says, to the millisecond of a change', () => {
    const spring = at('2026-03-29T01:00:00Z');
    const autumn = at('2026-10-25T01:00:00Z');
    const hours = (zone: string, ...instants: number[]) => instants.map((ms) => offsetMsAt(zone, ms) / HOUR_MS);
    expect(hours(BERLIN, spring - 1, spring, autumn - 1, autumn)).toEqual([1, 2, 2, 1]);
    expect(hours('America/St_Johns', at('2026-01-01T00:00:00Z'), at('2026-07-01T00:00:00Z'))).toEqual([-3.5, -2.5]);
    expect(hours('UTC', -1, 0, spring)).toEqual([0, 0, 0]);
    for (let year = 1980; year < 2036; year += 7) expect(hours(BERLIN, Date.UTC(year, 0, 1))).toEqual([1]);
  });
});

describe('a cron expression', () => {
  it('fires at minutes of the day, with pauses between them', () => {
    expect(firingsOfDay('10,40 8-9 * * *')).toMatchObject({
      firstMinute: 490,
      lastMinute: 580,
      longestPauseMinutes: 30,
    });
    expect(firingsOfDay('0 6,8,18 * * *')).toMatchObject({
      firstMinute: 360,
      lastMinute: 1080,
      longestPauseMinutes: 600,
    });
    expect(firingsOfDay('5 0 * * *')).toMatchObject({ firstMinute: 5, lastMinute: 5, longestPauseMinutes: 0 });
  });

  it('has a nearest local time, before and after', () => {
    const near = (cron: string, from: string, dates?: DateFilter) => {
      const times = { cron, ...(dates && { dates }) };
      const fromMs = at(`2026-${from}Z`);
      return texts(nearestLocalTime(times, fromMs, 'prev'), nearestLocalTime(times, fromMs, 'next'));
    };
    expect(near('10,40 8-9 * * *', '06-03T08:40:00')).toEqual(['06-03T08:40', '06-03T08:40']);
    expect(near('10,40 8-9 * * *', '06-03T08:40:01')).toEqual(['06-03T08:40', '06-03T09:10']);
    expect(near('10,40 8-9 * * *', '06-03T12:00:00')).toEqual(['06-03T09:40', '06-04T08:10']);
    expect(near('10,40 8-9 * * *', '06-03T01:00:00')).toEqual(['06-02T09:40', '06-03T08:10']);
    expect(near('0 4 * * 0', '06-03T01:00:00')).toEqual(['05-31T04:00', '06-07T04:00']);
    expect(near('0 4 * * *', '06-03T01:00:00', { only: [calendar('2026-06-09')] })).toEqual([undefined, '06-09T04:00']);
    expect(near('0 4 * * *', '06-03T01:00:00', { except: [calendar('2026-06-02', '2026-06-03')] })).toEqual([
      '06-01T04:00',
      '06-04T04:00',
    ]);
    expect(near('0 0 31 2,4 *', '06-03T01:00:00')).toEqual([undefined, undefined]);
  });

  it('has a fixed hour where that is a number, a list or a range', () => {
    const expressions = [
      '0 8 * * *',
      '0 8,9 * * *',
      '*/5 8-9 * * *',
      '0 * * * *',
      '0 */2 * * *',
      '0 8-18/2 * * *',
      '0',
    ];
    expect(expressions.map(hasFixedHour)).toEqual([true, true, true, false, false, false, false]);
  });

  it('has a latest and a next firing, also where the clocks change', () => {
    const around = (cron: string, time: string) => {
      const instantMs = at(`2026-${time}Z`);
      const firings = { cron, zone: BERLIN };
      return texts(firingAtOrBefore(firings, instantMs)?.ms, firingAfter(firings, instantMs)?.ms);
    };
    expect(around('0 8 * * *', '06-03T06:00:00')).toEqual(['06-03T06:00', '06-04T06:00']);
    expect(around('0 8 * * *', '06-03T05:59:59')).toEqual(['06-02T06:00', '06-03T06:00']);
    expect(around('30 2 * * *', '03-29T01:00:00')).toEqual(['03-29T01:00', '03-30T00:30']);
    expect(around('30 2 * * *', '03-29T00:59:00')).toEqual(['03-28T01:30', '03-29T01:00']);
    expect(around('30 2 * * *', '10-25T01:30:00')).toEqual(['10-25T00:30', '10-26T01:30']);
    expect(around('30 * * * *', '10-25T01:00:00')).toEqual(['10-25T00:30', '10-25T01:30']);
    expect(around('30 * * * *', '10-25T01:30:00')).toEqual(['10-25T01:30', '10-25T02:30']);
    expect(around('30 * * * *', '03-29T01:10:00')).toEqual(['03-29T00:30', '03-29T01:30']);
    const both = { cron: '10,50 2 * * *', zone: BERLIN };
    expect(firingAfter(both, at('2026-03-29T00:30:00Z'))?.localMs).toBe(at('2026-03-29T02:50:00Z'));
    expect(firingAtOrBefore(both, at('2026-03-29T01:00:00Z'))?.localMs).toBe(at('2026-03-29T02:50:00Z'));
  });
});

describe('the kinds of windows', () => {
  /** Closed: the end before and the start after. Open, or touched: the end and the start of what touches. */
  const around = (spec: TimeSpec, time: string) => {
    const ms = at(`2026-${time}Z`);
    const kind = kindOf(spec);
    return [
      kind.isOpenAt(spec, ms) ? 'open' : 'closed',
      ...texts(kind.startTouching(spec, ms), kind.endTouching(spec, ms)),
      ...texts(kind.latestEndUntil(spec, ms), kind.nextStartAfter(spec, ms)),
    ];
  };

  it.each<[string, TimeSpec]>([
    ['weekly', aWindow({ days: EVERY_DAY })],
    ['cron', { kind: 'cron', cron: '0 8 * * *', forMs: 10 * HOUR_MS, zone: 'UTC' }],
    ['cron-switch', { kind: 'cron-switch', startCron: '0 8 * * *', endCron: '0 18 * * *', zone: 'UTC' }],
  ])('%s know the openings around an instant', (_kind, spec) => {
    expect(around(spec, '06-03T07:00:00')).toEqual(['closed', undefined, undefined, '06-02T18:00', '06-03T08:00']);
    expect(around(spec, '06-03T08:00:00').slice(0, 3)).toEqual(['open', '06-03T08:00', '06-03T18:00']);
    expect(around(spec, '06-03T12:00:00').slice(0, 3)).toEqual(['open', '06-03T08:00', '06-03T18:00']);
    expect(around(spec, '06-03T18:00:00')).toEqual([
      'closed',
      '06-03T08:00',
      '06-03T18:00',
      '06-03T18:00',
      '06-04T08:00',
    ]);
  });

  it('intervals have one opening, and what is always open none that begins', () => {
    const once: TimeSpec = { kind: 'interval', startMs: at('2026-06-03T08:00:00Z'), endMs: at('2026-06-03T18:00:00Z') };
    const [start, end] = ['06-03T08:00', '06-03T18:00'];
    expect(around(once, '06-03T07:59:59')).toEqual(['closed', undefined, undefined, undefined, start]);
    expect(around(once, '06-03T08:00:00')).toEqual(['open', start, end, undefined, undefined]);
    expect(around(once, '06-03T18:00:00')).toEqual(['closed', start, end, end, undefined]);
    expect(around(once, '06-03T18:00:01')).toEqual(['closed', undefined, undefined, end, undefined]);
    const empty: TimeSpec = { ...once, endMs: once.startMs };
    expect(around(empty, '06-03T07:00:00')).toEqual(['closed', undefined, undefined, undefined, undefined]);
    expect(around(empty, '06-03T08:00:00')).toEqual(['closed', undefined, undefined, undefined, undefined]);
    const always = kindOf({ kind: 'always' });
    expect([always.nextStartAfter({ kind: 'always' }, 0), always.latestEndUntil({ kind: 'always' }, 0)]).toEqual([
      ...[undefined, undefined],
    ]);
    expect([always.startTouching({ kind: 'always' }, 0), always.endTouching({ kind: 'always' }, 0)]).toEqual([
      ...[Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
    ]);
  });

  it('a cron of many firings gives a day of them as one opening, where they touch and no clock changes', () => {
    const quarter: CronWindow = { kind: 'cron', cron: '*/15 8-9 * * *', forMs: 15 * 60_000, zone: BERLIN };
    expect(around(quarter, '06-03T06:20:00').slice(0, 3)).toEqual(['open', '06-03T06:00', '06-03T08:00']);
    expect(around({ ...quarter, forMs: 14 * 60_000 }, '06-03T06:20:00').slice(0, 3)).toEqual([
      ...['open', '06-03T06:15', '06-03T06:29'],
    ]);
    expect(around(quarter, '03-29T06:20:00').slice(0, 3)).toEqual(['open', '03-29T06:15', '03-29T06:30']);
  });
});
