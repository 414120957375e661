import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { daysOfIcal } from '../../src/policy/calendars/ical.ts';
import { loadPolicySet } from '../../src/policy/load.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import { schedulesOf, valid } from './policy-text.ts';

function calendar(...events: string[]): string {
  const body = events.map(
    (event, index) =>
      `BEGIN:VEVENT\nUID:${event.includes('RECURRENCE-ID') ? 0 : index}\nSUMMARY:release ${index}\n${event}\nEND:VEVENT`,
  );
  return ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//', ...body, 'END:VCALENDAR', '']
    .join('\n')
    .replaceAll('\n', '\r\n');
}

function read(...events: string[]) {
  const result = daysOfIcal(calendar(...events));
  return result.ok
    ? result.days.map((day) => DateTime.fromMillis(day * 86_400_000, { zone: 'utc' }).toISODate())
    : result.message;
}

describe('an iCalendar file', () => {
  it('gives the days of its whole-day events, each once', () => {
    expect(
      read(
        'DTSTART;VALUE=DATE:20261224',
        'DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227',
        'DTSTART;VALUE=DATE:20270101\nDURATION:P2D',
      ),
    ).toEqual(['2026-12-24', '2026-12-25', '2026-12-26', '2027-01-01', '2027-01-02']);
    expect(read()).toEqual([]);
  });

  it('repeats events, up to the last known year', () => {
    expect(read('DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=3')).toEqual([
      '2026-01-05',
      '2026-01-19',
      '2026-02-02',
    ]);
    expect(read('DTSTART;VALUE=DATE:20261231\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31')).toHaveLength(25);
    expect(read('DTSTART;VALUE=DATE:20260130\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20260401')).toEqual([
      '2026-01-30',
      '2026-02-27',
      '2026-03-27',
    ]);
  });

  it('leaves out what was excluded or cancelled and follows what was moved', () => {
    expect(read('DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=3\nEXDATE;VALUE=DATE:20260112')).toEqual([
      '2026-01-05',
      '2026-01-19',
    ]);
    expect(read('DTSTART;VALUE=DATE:20260105\nSTATUS:CANCELLED')).toEqual([]);
    expect(
      read(
        'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=2',
        'RECURRENCE-ID;VALUE=DATE:20260112\nDTSTART;VALUE=DATE:20260114',
      ),
    ).toEqual(['2026-01-05', '2026-01-14']);
    expect(
      read(
        'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=2',
        'RECURRENCE-ID;VALUE=DATE:20260112\nDTSTART;VALUE=DATE:20260112\nSTATUS:CANCELLED',
      ),
    ).toEqual(['2026-01-05']);
  });

  const RULE = 'the event "release 0" repeats by a rule that is not supported: ';
  it.each([
    ['DTSTART:20260105T080000Z', 'the event "release 0" is not a whole-day event'],
    ['SUMMARY:no start', 'the event "release 0" is not a whole-day event'],
    [
      'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30',
      `${RULE}FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30`,
    ],
    [
      'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30',
      `${RULE}FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30`,
    ],
    ['DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=HOURLY', `${RULE}FREQ=HOURLY`],
    ['DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=YEARLY;BYWEEKNO=60', 'not an iCalendar file'],
    ['DTSTART;VALUE=DATE:10000101\nDURATION:P99999D', 'more than 20000 days'],
  ])('with %j is refused', (event, message) => {
    expect(read(event)).toBe(message);
  });

  it.each(['', 'BEGIN:VCALENDAR', 'nothing of the kind', '\0', 'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VCALENDAR'])(
    'that is none is refused: %j',
    (text) => {
      expect(daysOfIcal(text)).toEqual({ ok: false, message: 'not an iCalendar file' });
    },
  );

  it('is found next to the policy file that names it', async () => {
    const cwd = await mkdtemp(join(tmpdir(), 'ebb-ical-'));
    const text = valid('owner: team-web', 'calendars: { releases: { ical: ./releases.ics } }').replace(
      '        size',
      '        only: [releases]\n        size',
    );
    await writeFile(join(cwd, 'web.yaml'), text);
    const load = async () => {
      const result = await loadPolicySet({ paths: ['web.yaml'], cwd });
      return result.ok
        ? schedulesOf(result.set.policies)[0]?.windows[0]?.at
        : result.problems.map((problem) => formatProblem(problem).split('\n')[0]);
    };
    expect(await load()).toEqual(['web.yaml:3:32: ./releases.ics: cannot be read (ENOENT)']);
    await writeFile(join(cwd, 'releases.ics'), calendar('DTSTART;VALUE=DATE:20261224'));
    expect(await load()).toMatchObject([{ dates: { only: [{ name: 'releases', days: [20811] }] } }]);
    await rm(cwd, { recursive: true });
  });
});
