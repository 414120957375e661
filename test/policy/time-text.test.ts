import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { readTime, resolveTime } from '../../src/policy/time-text.ts';

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7];

function read(text: string) {
  const errors: string[] = [];
  const time = readTime(text, errors);
  return time ? resolveTime(time, 'Europe/Berlin') : errors;
}

function weekly(days: number[], startMinute: number, endMinute: number, endDayOffset = 0, zone = 'Europe/Berlin') {
  return { kind: 'weekly', days, startMinute, endMinute, endDayOffset, zone };
}

function interval(start: string, end: string) {
  return { kind: 'interval', startMs: DateTime.fromISO(start).toMillis(), endMs: DateTime.fromISO(end).toMillis() };
}

describe('a recurring time', () => {
  it.each([
    ['Mon-Fri 08:00-18:30', weekly([1, 2, 3, 4, 5], 480, 1110)],
    ['Mon-Fri 08:00-18:30 America/New_York', weekly([1, 2, 3, 4, 5], 480, 1110, 0, 'America/New_York')],
    ['  Sat , Sun  10:00 - 12:00  ', weekly([6, 7], 600, 720)],
    ['Fri-Mon 10:00-12:00', weekly([1, 5, 6, 7], 600, 720)],
    ['Mon,Wed-Fri,Thu 10:00-12:00', weekly([1, 3, 4, 5], 600, 720)],
    ['22:00-06:00', weekly(EVERY_DAY, 1320, 360, 1)],
    ['00:00-24:00', weekly(EVERY_DAY, 0, 1440)],
    ['22:00-24:00 UTC', weekly(EVERY_DAY, 1320, 1440, 0, 'UTC')],
    ['03:00-03:00', weekly(EVERY_DAY, 180, 180, 1)],
    ['00:00-00:00', weekly(EVERY_DAY, 0, 0, 1)],
    ['Sat,Sun', weekly([6, 7], 0, 1440)],
    ['Fri-Mon Asia/Tokyo', weekly([1, 5, 6, 7], 0, 1440, 0, 'Asia/Tokyo')],
    ['Fri 20:00 - Mon 06:00', weekly([5], 1200, 360, 3)],
    ['Fri 20:00 - Sun 24:00', weekly([5], 1200, 1440, 2)],
    ['Mon 06:00 - Mon 08:00', weekly([1], 360, 480)],
    ['Mon 08:00 - Mon 06:00', weekly([1], 480, 360, 7)],
    ['Sun 20:00 - Mon 06:00 Etc/GMT+1', weekly([7], 1200, 360, 1, 'Etc/GMT+1')],
    ['always', { kind: 'always' }],
  ])('%s', (text, expected) => {
    expect(read(text)).toEqual(expected);
  });
});

describe('an absolute interval', () => {
  it.each([
    ['2026-12-24T00:00:00+01:00/2027-01-02T00:00:00Z', interval('2026-12-23T23:00Z', '2027-01-02T00:00Z')],
    ['2026-12-24T00:00:00.000Z/2027-01-02T00:00:00.5Z', interval('2026-12-24T00:00Z', '2027-01-02T00:00:00.500Z')],
    ['2026-12-24/2026-12-27', interval('2026-12-23T23:00Z', '2026-12-26T23:00Z')],
    ['2026-07-01/2026-07-02T08:30', interval('2026-06-30T22:00Z', '2026-07-02T06:30Z')],
    ['2026-12-24/2026-12-27 Asia/Tokyo', interval('2026-12-23T15:00Z', '2026-12-26T15:00Z')],
    // Berlin: 02:30 does not exist on 2026-03-29 and exists twice on 2026-10-25.
    ['2026-03-29T02:30/2026-10-25T02:30', interval('2026-03-29T01:00Z', '2026-10-25T00:30Z')],
    ['2026-04-24/2026-04-25 Africa/Cairo', interval('2026-04-23T22:00Z', '2026-04-24T21:00Z')],
  ])('%s', (text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  it('inside a gap of the clocks is empty, not an error', () => {
    expect(read('2026-03-29T02:10/2026-03-29T02:50')).toEqual(interval('2026-03-29T01:00Z', '2026-03-29T01:00Z'));
  });
});
