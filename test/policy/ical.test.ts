import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { daysOfIcal } from '../../src/policy/calendars/ical.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
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
    [
      'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;INTERVAL=4294967296',
      'the event "release 0" repeats at an interval of 4294967296; at most 1000 is supported',
    ],
    [
      'DTSTART;VALUE=DATE:00010101\nRRULE:FREQ=DAILY',
      'the event "release 0" repeats since before 1900; let it begin later',
    ],
    [
      'DTSTART;VALUE=DATE:20260201\nRRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYDAY=5MO',
      `${RULE}FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYDAY=5MO`,
    ],
    [
      'DTSTART;VALUE=DATE:20260201\nRRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=28;BYDAY=MO',
      `${RULE}FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=28;BYDAY=MO`,
    ],
    ['DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY', 'more than 30000 days to look through'],
  ])('with %j is refused', (event, message) => {
    expect(read(event)).toBe(message);
  });

  it('of many events that seldom come is refused before any of them is followed', () => {
    const rare = 'DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=MONTHLY;BYDAY=5MO';
    expect(read(...Array.from({ length: 100 }, () => rare))).toBe('more than 30000 days to look through');
    const excluded = `EXDATE;VALUE=DATE:${Array.from({ length: 30_000 }, () => '20260106').join()}`;
    expect(read(`${rare}\n${excluded}`)).toBe('more than 30000 days to look through');
  });

  it('of thousands of changed occurrences is read, each with its own event alone', () => {
    const moved = Array.from({ length: 2000 }, () => 'RECURRENCE-ID;VALUE=DATE:20270101\nDTSTART;VALUE=DATE:20270102');
    expect(read('DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=2', ...moved)).toEqual([
      '2026-01-05',
      '2026-01-12',
    ]);
  });

  it('is read once for a set that names it often, and all files of a set are bounded together', () => {
    const text = calendar('DTSTART;VALUE=DATE:20261224');
    const naming = (path: string, ical: string) => ({
      path,
      text: `version: 1\ncalendars: { days: { ical: ./${ical} } }\npolicies: []\n`,
    });
    const problemsOf = (count: number, textOf: (path: string) => string) => {
      const files = Array.from({ length: count }, (_, index) => naming(`p${index}.yaml`, `d${index}.ics`));
      const result = parsePolicyFiles(files, {
        readReferenced: (_file, path) => ({ ok: true, text: textOf(path) }),
      });
      return result.ok ? [] : result.problems.map(({ message }) => message.replace(/^\S+ /, ''));
    };
    const large = `${text}${'X'.repeat(500_000)}`;
    expect(problemsOf(20, () => text + ' '.repeat(400_000)).every((line) => line === 'not an iCalendar file')).toBe(
      true,
    );
    expect(problemsOf(1000, () => text)).toEqual([]);
    expect(problemsOf(9, (path) => large + path).at(-1)).toBe(
      'the iCalendar files of the set are larger than 4 MiB together',
    );
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
      const result = await loadPolicySet({ paths: ['web.yaml'], cwd, settings: DEFAULT_POLICY_SETTINGS });
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
