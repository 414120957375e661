import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { parsePolicyFile } from '../../src/policy/parse-file.ts';
import { aSelector } from '../support/selectors.ts';
import { messagesOf, schedulesOf, valid } from './policy-text.ts';

const readReferenced = () => ({ ok: false, message: 'no such file' }) as const;

/** The policies of a text, of every kind, whether something acts on them or not. */
function everything(text: string) {
  const file = parsePolicyFile('web.yaml', text, { readReferenced });
  expect(file.problems).toEqual([]);
  return file.policies;
}

function only(text: string) {
  const result = parsePolicyFiles([{ path: 'web.yaml', text }]);
  expect(result.ok ? [] : result.problems.map(({ message }) => message)).toEqual([]);
  return result.ok ? schedulesOf(result.set.policies)[0] : undefined;
}

const dateOf = (day: number) => DateTime.fromMillis(day * 86_400_000, { zone: 'utc' }).toISODate();

describe('cron times', () => {
  it('become windows, in the zone of the file or their own', () => {
    const at =
      '\n          - { cron: "0  4 * * sun", for: 2h }\n          - { start: "0 8 * * 1-5", end: "0 18 * * 1-5", zone: Asia/Tokyo }';
    expect(only(valid('Mon-Fri 08:00-18:30', at))?.windows[0]?.at).toEqual([
      { kind: 'cron', cron: '0 4 * * SUN', forMs: 7_200_000, zone: 'Europe/Berlin' },
      { kind: 'cron-switch', startCron: '0 8 * * 1-5', endCron: '0 18 * * 1-5', zone: 'Asia/Tokyo' },
    ]);
  });

  const FORMS = 'expected {cron, for}, or {start, end}';
  it.each([
    ['{ cron: "0 4 * * 0" }', FORMS],
    ['{ cron: "0 4 * * 0", end: "0 4 * * 0" }', FORMS],
    ['{ cron: "0 4 * * 0", for: 2h, end: "0 5 * * 0" }', FORMS],
    ['{}', FORMS],
    [
      '{ cron: "0 4 * *", for: 2h }',
      'a cron expression has 5 fields: minute, hour, day of the month, month, day of the week; this one has 4',
    ],
    [
      '{ cron: "@daily", for: 2h }',
      'a cron expression has 5 fields: minute, hour, day of the month, month, day of the week; this one has 1',
    ],
    [
      '{ cron: "0 0 4 * * 0", for: 2h }',
      'a cron expression has 5 fields: minute, hour, day of the month, month, day of the week; this one has 6',
    ],
    ['{ cron: "H 4 * * 0", for: 2h }', '"H" is not a field of a cron expression'],
    ['{ cron: "0 24 * * 0", for: 2h }', 'not a cron expression: got value 24 expected range 0-23'],
    ['{ cron: "0 0 31 2,4 *", for: 2h }', 'this cron expression never fires'],
    ['{ cron: "0 4 * * 0", for: 30s }', 'expected a duration of 1m to 7d, such as "90s", "5m", "1h30m"'],
    ['{ cron: "*/20 * * * *", for: 20m }', 'never closes; write "always"'],
    ['{ start: "0 8 * * *", end: "0 8 * * *" }', 'starts whenever it ends, so it never closes; write "always"'],
    [
      '{ cron: "0 4 * * 0", for: 2h, zone: Mars }',
      '"Mars" is not a time zone; expected an IANA name such as "Europe/Berlin"',
    ],
    ['{ cron: "0 4 * * 0", fro: 2h }', 'unknown key "fro"; did you mean "for"?'],
  ])('%s is refused', (at, message) => {
    expect(messagesOf(valid('Mon-Fri 08:00-18:30', at)).map((line) => line.replace(/^\S+ /, ''))).toContain(message);
  });
});

describe('groups', () => {
  const GROUPS = 'groups:\n  web: { projects: ["web-*"], share: 10%, min_age: 0s }\n';

  it('are selectors that policies of the file name', () => {
    const text = valid('owner: team-web\n', GROUPS).replace('{ projects: ["web-*"] }', 'web');
    expect(only(text)?.select).toEqual({ projects: ['web-*'], share: 0.1, minAgeMs: 0 });
  });

  it('that are misspelt get a suggestion, whatever else is wrong', () => {
    const text = valid('owner: team-web\n', GROUPS).replace('{ projects: ["web-*"] }', 'weeb').replace('1-4', '3.5');
    expect(messagesOf(text)).toEqual([
      '8:13 no group is named "weeb"; did you mean "web"?',
      '11:15 3.5 CU is not a size; the nearest are 3 and 4',
    ]);
  });
});

describe('calendars', () => {
  const withCalendar = (calendar: string, names = 'except: [days]') =>
    valid('owner: team-web', `calendars: { days: ${calendar} }`).replace(
      '        size',
      `        ${names}\n        size`,
    );

  const daysOf = (calendar: string) => {
    const [time] = only(withCalendar(calendar))?.windows[0]?.at ?? [];
    return (time?.kind === 'weekly' ? time.dates?.except?.[0]?.days : undefined)?.map(dateOf) ?? [];
  };

  it('list dates, and ranges of which both ends belong to them', () => {
    expect(daysOf('{ dates: [2026-12-28/2026-12-30, 2026-12-24, 2026-12-24] }')).toEqual([
      '2026-12-24',
      '2026-12-28',
      '2026-12-29',
      '2026-12-30',
    ]);
  });

  it('know public holidays of a country, and more of them in a state', () => {
    const germany = daysOf('{ country: DE }').filter((date) => date?.startsWith('2026'));
    expect(germany).toEqual([
      '2026-01-01',
      '2026-04-03',
      '2026-04-06',
      '2026-05-01',
      '2026-05-14',
      '2026-05-25',
      '2026-10-03',
      '2026-12-25',
      '2026-12-26',
    ]);
    expect(
      daysOf('{ country: DE, state: BE }').filter((date) => !germany.includes(date) && date?.startsWith('2026')),
    ).toEqual(['2026-03-08']);
    // A holiday of several days counts with each of them.
    expect(daysOf('{ country: SA }')).toEqual(
      expect.arrayContaining(['2026-03-19', '2026-03-20', '2026-03-21', '2026-03-22']),
    );
  });

  it('split "always" into days', () => {
    const text = withCalendar('{ dates: [2026-12-24] }').replace('Mon-Fri 08:00-18:30', 'always');
    expect(only(text)?.windows[0]?.at).toEqual([
      {
        kind: 'weekly',
        days: [1, 2, 3, 4, 5, 6, 7],
        startMinute: 0,
        endMinute: 1440,
        endDayOffset: 0,
        zone: 'Europe/Berlin',
        dates: { except: [{ name: 'days', days: [20811] }] },
      },
    ]);
  });

  it('change the hash with their days', () => {
    const hashOf = (calendar: string) => {
      const result = parsePolicyFiles([{ path: 'a', text: withCalendar(calendar) }]);
      return result.ok ? result.set.hash : '';
    };
    expect(hashOf('{ dates: [2026-12-24] }')).not.toBe(hashOf('{ dates: [2026-12-25] }'));
    expect(hashOf('{ dates: [2026-12-01/2026-12-24] }')).not.toBe(hashOf('{ dates: [2026-12-02/2026-12-24] }'));
    expect(hashOf('{ dates: [2026-12-24, 2026-12-25] }')).toBe(hashOf('{ dates: [2026-12-24/2026-12-25] }'));
  });

  const WHAT = 'expected a calendar: {country: DE, state: BE}, {dates: [2026-12-24]} or {ical: ./days.ics}';
  it.each([
    ['{}', WHAT],
    ['{ country: DE, dates: [2026-12-24] }', WHAT],
    ['{ dates: [2026-12-24], state: BE }', 'state and region go with country'],
    ['{ county: DE }', 'unknown key "county"; did you mean "country"?'],
    ['{ country: Germany }', '"Germany" is not a country; write DE'],
    ['{ country: de }', '"de" is not a country; did you mean "DE"?'],
    ['{ country: AT, state: XX }', '"XX" is not a state of AT; expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9'],
    ['{ dates: [] }', 'expected at least one date'],
    ['{ dates: [2026-02-30] }', 'expected a date such as 2026-12-24, or a range such as 2026-12-28/2026-12-31'],
    ['{ dates: [2026-12-31/2026-12-28] }', 'the range ends before it has begun'],
    ['{ dates: [2026-12-31/2056-12-28] }', 'a range has at most ten years'],
    ['{ ical: /etc/passwd.ics }', 'expected a path relative to this file that ends in .ics'],
    ['{ ical: ./days.ics }', './days.ics: no such file'],
  ])('%s are refused', (calendar, message) => {
    expect(messagesOf(withCalendar(calendar)).map((line) => line.replace(/^\S+ /, ''))).toEqual([message]);
  });

  it('do not go with absolute intervals', () => {
    const text = withCalendar('{ dates: [2026-12-24] }').replace('Mon-Fri 08:00-18:30', '2026-12-24/2026-12-27');
    expect(messagesOf(text)).toEqual([
      '9:13 an absolute interval names its dates itself; only and except go with recurring times',
    ]);
  });
});

describe('what nothing acts on yet', () => {
  const text = `version: 1
groups: { roles: { branch_roles: [default, child] } }
sources: { counts: { from: postgres, dsn_env: EBB_DSN_A } }
policies:
  - name: limits
    kind: limits
    select: roles
    size: 0.25-12
    suspend_after: { max: 5m }
  - { name: hard, kind: limits, select: { projects: [a] }, size: { max: 4 }, hard: true }
  - { name: restart, kind: restart, select: { projects: [a] }, at: { cron: "0 4 * * 0", for: 2h }, every: 7d, when: { connections_below: 5 } }
  - { name: freeze, kind: freeze, select: { projects: [a] }, at: always, allow: [raise] }
  - { name: headroom, kind: headroom, select: { projects: [a] }, connections: counts, target: 70%, critical: 90%, max_size: 8, scale_down: { after: 10m } }
  - name: schedule
    kind: schedule
    select: { projects: [a] }
    windows:
      - { at: always, size: 1, ready: true }
      - { at: always, size: 1, ready: 10m }
      - { at: always, size: 1, ready: false }
    otherwise: leave
    manual_changes: { respect_for: 2h }
    disruption:
      raise: { when: any }
      lower: { when: idle, deadline: 2h, then: skip }
      quiet_below: 3
      cooldown: 10m
      at_once: 10%
      at_most: 30% in 10m
`;

  it('is read all the same', () => {
    const select = aSelector({ projects: ['a'], minAgeMs: 1_800_000 });
    const base = (name: string) => ({ name, file: 'web.yaml', mode: 'enforce', priority: 0, select });
    const [time, ...rest] = everything(text);
    expect(time).toEqual({
      ...base('limits'),
      kind: 'limits',
      select: aSelector({ branchRoles: ['default', 'child'], minAgeMs: 1_800_000 }),
      size: { minCu: 0.25, maxCu: 12 },
      suspendTimeout: { maxSeconds: 300 },
      hard: false,
    });
    expect(rest).toEqual([
      { ...base('hard'), kind: 'limits', size: { maxCu: 4 }, hard: true },
      {
        ...base('restart'),
        kind: 'restart',
        at: [{ kind: 'cron', cron: '0 4 * * 0', forMs: 7_200_000, zone: 'UTC' }],
        everyMs: 604_800_000,
        connectionsBelow: 5,
      },
      { ...base('freeze'), kind: 'freeze', at: [{ kind: 'always' }], allowRaise: true },
      {
        ...base('headroom'),
        kind: 'headroom',
        connections: 'counts',
        targetShare: 0.7,
        criticalShare: 0.9,
        maxCu: 8,
        mayRaiseMin: false,
        scaleDownAfterMs: 600_000,
        act: 'apply',
      },
      {
        ...base('schedule'),
        kind: 'schedule',
        windows: [180_000, 600_000, undefined].map((readyLeadMs) => ({
          at: [{ kind: 'always' }],
          size: { minCu: 1, maxCu: 1 },
          ...(readyLeadMs && { readyLeadMs }),
          ...(readyLeadMs === 180_000 && { readyInWaves: true }),
        })),
        otherwise: 'leave',
        manualChanges: { kind: 'respect-for', forMs: 7_200_000 },
        disruption: {
          raise: { when: 'any', atDeadline: 'apply' },
          lower: { when: 'idle', deadlineMs: 7_200_000, atDeadline: 'skip' },
          quietBelow: 3,
          cooldownMs: 600_000,
          atOnce: 0.1,
          atMost: { share: 0.3, windowMs: 600_000 },
        },
      },
    ]);
  });

  it('is accepted in a policy that is not enabled', () => {
    const disabled = text
      .replaceAll(/kind: (\w+)/g, 'kind: $1, enabled: false')
      .replaceAll(/^(\s+)kind: (\w+), enabled: false$/gm, '$1kind: $2\n$1enabled: false')
      .replace('groups: { roles: { branch_roles: [default, child] } }', 'groups: { roles: { projects: [a] } }');
    expect(parsePolicyFiles([{ path: 'a', text: disabled }])).toMatchObject({ ok: true, set: { policies: [] } });
  });

  const limits = (rest: string) =>
    `version: 1\npolicies: [{ name: a, enabled: false, kind: limits, select: { projects: [a] }, ${rest} }]\n`;
  const schedule = (rest: string) => valid('    otherwise', `    enabled: false\n    ${rest}\n    otherwise`);
  it.each([
    [limits('hard: true'), 'limits nothing: add size, suspend_after, or both'],
    [limits('size: 4-1'), 'the minimum, 4 CU, is above the maximum, 1 CU; write the smaller one first'],
    [limits('size: 3.5-8'), '3.5 CU is not a size; the nearest are 3 and 4'],
    [limits('size: { max: 17 }'), '17 CU is not a size; the nearest are 16 and 18'],
    [limits('size: {}'), 'expected two sizes in CU such as 0.25-1, or {min: 0.25}, {max: 1}'],
    [limits('size: 4'), 'expected two sizes in CU such as 0.25-1, or {min: 0.25}, {max: 1}'],
    [limits('suspend_after: {}'), 'expected min, max, or both'],
    [limits('suspend_after: { min: never, max: 5m }'), 'the minimum is longer than the maximum'],
    [schedule('manual_changes: keep'), 'expected respect, revert, or {respect_for: 2h}'],
    [schedule('disruption: { lower: { when: asleep } }'), 'expected any or idle or quiet'],
    [schedule('disruption: { lower: { deadline: 2h } }'), 'missing key "when"; expected any or idle or quiet'],
    [schedule('disruption: { cooldown: 2d }'), 'expected a duration of 0s to 1d, such as "90s", "5m", "1h30m"'],
    [schedule('disruption: { at_once: 5 }'), 'expected a share such as "70%", from 1% to 100%; write "5%"'],
    [schedule('disruption: { at_most: 30% }'), 'expected a share and a time of 1m to 1d, such as "30% in 10m"'],
    [schedule('disruption: { at_most: 30% in 2d }'), 'expected a share and a time of 1m to 1d, such as "30% in 10m"'],
    [schedule('disruption: { quiet_below: -1 }'), 'expected a number of connections'],
    [
      valid('        size', '        ready: 45m\n        size'),
      'expected a duration of 1m to 30m, such as "90s", "5m", "1h30m"',
    ],
  ])('is checked: %#', (broken, message) => {
    expect(messagesOf(broken).map((line) => line.replace(/^\S+ /, ''))).toContain(message);
  });
});
