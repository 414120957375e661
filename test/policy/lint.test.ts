import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../../src/domain/connections/connection-profile.ts';
import type { RestartPolicy } from '../../src/domain/policy/kinds/restart.ts';
import type { ConnectionSource } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { lintPolicySet } from '../../src/policy/lint/lint.ts';
import { LINTS } from '../../src/policy/lint/rule.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { aCompute, aFreeze, aRestart, aSchedule, at } from '../support/builders.ts';
import { file, findingsIn, lintsIn, schedule } from './lint-text.ts';

const limits = (name: string, rest: string) => `name: ${name}, kind: limits, select: { projects: ["*"] }, ${rest}`;
const headroom = (name: string, rest: string) =>
  `name: ${name}, kind: headroom, select: { projects: ["*"] }, connections: counts, target: 70%, ${rest}`;

describe('a window that never opens', () => {
  it.each<[string, string[]]>([
    [
      'at: 2026-01-01/2026-02-01',
      ['4 «2026-01-01/2026-02-01» warning never-opens ended at 2026-01-31T23:00:00Z; remove it'],
    ],
    [
      'at: 2030-01-01/2030-02-01',
      [
        '4 «2030-01-01/2030-02-01» warning never-opens does not open before 2029-12-31T23:00:00Z, in more than two years',
      ],
    ],
    [
      'at: [Sat, 2026-01-01/2026-02-01]',
      ['4 «2026-01-01/2026-02-01» warning never-opens ended at 2026-01-31T23:00:00Z; remove it'],
    ],
    ['at: 2026-01-01/2030-02-01', []],
    ['at: 2028-11-01/2028-12-01', []],
    ['at: { cron: "0 0 29 2 *", for: 1h }', []],
    ['at: always', []],
  ])('is found in %s', (window, expected) => {
    expect(lintsIn(file(schedule('a', `windows: [{ ${window}, size: 1 }]`)))).toEqual(expected);
  });

  it('is found where calendars leave nothing of it', () => {
    const text = file(
      schedule('a', 'windows: [{ at: Mon, only: [weekend], size: 1 }, { at: Sat, only: [weekend], size: 2 }]'),
    ).replace('policies', 'calendars: { weekend: { dates: [2027-01-02, 2026-01-03] } }\npolicies');
    expect(lintsIn(text)).toEqual([
      '5 «Mon» warning never-opens never opens in the next two years; change its days or calendars, or remove it',
    ]);
  });

  it('is found in restarts and freezes', () => {
    const rest = 'select: { projects: ["*"] }, at: 2026-01-01/2026-02-01';
    const found = lintsIn(file(`name: a, kind: restart, ${rest}`, `name: b, kind: freeze, ${rest}`));
    expect(found).toEqual([
      '4 «2026-01-01/2026-02-01» warning never-opens ended at 2026-01-31T23:00:00Z; remove it',
      '5 «2026-01-01/2026-02-01» warning never-opens ended at 2026-01-31T23:00:00Z; remove it',
    ]);
  });
});

describe('a contradiction', () => {
  const twoSchedules = (a: string, b: string) => file(schedule('a', a), schedule('b', b));
  const contradicts = (place: string, fields: string, when: string) =>
    `${place} warning contradiction ${fields} of "a" (web.yaml:4), ${when}: both windows are open, with the same priority; the later policy, this one, wins; give one of them a higher priority`;

  it.each<[string, string, string, string[]]>([
    [
      'of sizes, with the first instant',
      'windows: [{ at: Mon-Fri 08:00-18:00, size: 1 }]',
      'windows: [{ at: Fri 17:00-19:00, size: 2 }]',
      [contradicts('5 «2»', 'size 2 contradicts 1', 'first at 2026-11-27T16:00:00Z')],
    ],
    [
      'of timeouts, at once',
      'windows: [{ at: always, suspend_after: 5m }]',
      'windows: [{ at: Sat, suspend_after: never }]',
      [contradicts('5 «never»', 'suspend_after never contradicts 5m', 'now')],
    ],
    [
      'over zones, only where they overlap',
      'windows: [{ at: Mon 08:00-09:00 America/New_York, size: 1 }]',
      'windows: [{ at: Mon 13:30-14:00, size: 2 }]',
      // New York is six hours behind, and five between the two changes in March.
      [contradicts('5 «2»', 'size 2 contradicts 1', 'first at 2027-03-15T12:30:00Z')],
    ],
    [
      'of two absolute intervals',
      'windows: [{ at: 2026-12-01/2026-12-24, size: 1 }]',
      'windows: [{ at: 2026-12-23/2026-12-27, size: 2 }]',
      [contradicts('5 «2»', 'size 2 contradicts 1', 'first at 2026-12-22T23:00:00Z')],
    ],
  ])('is found: %s', (_name, a, b, expected) => {
    expect(lintsIn(twoSchedules(a, b))).toEqual(expected);
  });

  it.each<[string, string, string]>([
    ['the same values', 'windows: [{ at: always, size: 1-2 }]', 'windows: [{ at: Mon, size: { min: 1, max: 2 } }]'],
    ['different fields', 'windows: [{ at: always, size: 1 }]', 'windows: [{ at: Mon, suspend_after: 5m }]'],
    ['different priorities', 'windows: [{ at: always, size: 1 }]', 'priority: 1, windows: [{ at: Mon, size: 2 }]'],
    ['windows that touch', 'windows: [{ at: 08:00-18:00, size: 1 }]', 'windows: [{ at: 18:00-08:00, size: 2 }]'],
    [
      'an interval beside a recurring time',
      'windows: [{ at: 2026-12-01/2026-12-24, size: 1 }]',
      'windows: [{ at: always, size: 2 }]',
    ],
    ['an observed policy', 'windows: [{ at: always, size: 1 }]', 'mode: observe, windows: [{ at: Mon, size: 2 }]'],
    [
      'other computes',
      'select: { projects: ["a-*"] }, windows: [{ at: always, size: 1 }]',
      'select: { projects: ["b-*"] }, windows: [{ at: Mon, size: 2 }]',
    ],
    [
      'excluded computes',
      'select: { projects: ["*", "!b-*"] }, windows: [{ at: always, size: 1 }]',
      'select: { projects: ["b-?"] }, windows: [{ at: Mon, size: 2 }]',
    ],
    [
      'other types',
      'select: { types: [read_only] }, windows: [{ at: always, size: 1 }]',
      'select: { types: [read_write] }, windows: [{ at: Mon, size: 2 }]',
    ],
    [
      'a window that a later one of its policy hides',
      'windows: [{ at: Mon, size: 1 }, { at: Mon-Tue, size: 2 }]',
      'windows: [{ at: Mon, size: 2 }]',
    ],
  ])('is not seen in %s', (_name, a, b) => {
    const codes = findingsIn(twoSchedules(a, b)).map(({ code }) => code);
    expect(codes.filter((code) => code !== 'overlapping-windows')).toEqual([]);
  });

  it('is seen between a name and what may be the id of the same project', () => {
    const found = findingsIn(
      twoSchedules(
        'select: { projects: [shiny-wind-028834] }, windows: [{ at: always, size: 1 }]',
        'select: { projects: [web] }, windows: [{ at: always, size: 2 }]',
      ),
    );
    expect(found.map(({ code }) => code)).toEqual(['contradiction']);
  });

  it('is exact where the fleet is known', () => {
    const text = twoSchedules(
      'select: { projects: ["web-*"] }, windows: [{ at: always, size: 1 }]',
      'select: { projects: ["*-shop"] }, windows: [{ at: always, size: 2 }]',
    );
    const blog = aCompute({ projectName: 'web-blog' });
    const desk = aCompute({ projectName: 'desk-shop', computeId: 'ep-two' });
    expect(lintsIn(text, { fleet: [blog, desk] })).toEqual([]);
    const shop = aCompute({ projectName: 'web-shop', computeId: 'ep-three' });
    expect(lintsIn(text, { fleet: [blog, desk, shop] })).toEqual([
      contradicts('5 «2»', 'size 2 contradicts 1', 'now').replace('4),', '4) on ep-three,'),
    ]);
  });

  it('names three of many', () => {
    const all = Array.from({ length: 9 }, (_, index) =>
      schedule(`a${index}`, `windows: [{ at: Mon, size: ${index + 1} }]`),
    );
    expect(findingsIn(file(...all)).map(({ policy }) => policy)).toEqual([
      'a1',
      ...Array(2).fill('a2'),
      ...['a3', 'a4', 'a5', 'a6', 'a7', 'a8'].flatMap((name) => [name, name, name]),
    ]);
  });
});

describe('a gap without a value', () => {
  const gap = (place: string, field: string, instant: string) =>
    `${place} warning no-value no policy says what ${field} is from ${instant} on, when the window closes, so it stays as the window left it; give otherwise a ${field}, or write otherwise: baseline`;
  const office = 'windows: [{ at: Mon-Fri 08:00-18:00, size: 1, suspend_after: never }]';

  it('is found where otherwise leaves a field, with the first instant', () => {
    expect(lintsIn(file(schedule('a', `${office}, otherwise: leave`)))).toEqual([
      gap('4 «leave»', 'size', '2026-11-23T17:00:00Z'),
      gap('4 «leave»', 'suspend_after', '2026-11-23T17:00:00Z'),
    ]);
    expect(lintsIn(file(schedule('a', `${office}, otherwise: { size: 0.25 }`)))).toEqual([
      gap('4 «size»', 'suspend_after', '2026-11-23T17:00:00Z'),
    ]);
  });

  it.each<[string, string[]]>([
    [
      'its own windows',
      [schedule('a', 'windows: [{ at: Mon-Fri, size: 1 }, { at: [Sat, Sun], size: 1 }], otherwise: leave')],
    ],
    ['an otherwise of another', [schedule('a', `${office}, otherwise: leave`), schedule('b', office)]],
    [
      'a window of another',
      [
        schedule('a', 'windows: [{ at: Mon-Fri 08:00-18:00, size: 1 }], otherwise: leave'),
        schedule('b', 'priority: -1, windows: [{ at: always, size: 2 }], otherwise: leave'),
      ],
    ],
    ['limits', [schedule('a', `${office}, otherwise: leave`), limits('b', 'size: 0.25-1, suspend_after: { max: 5m }')]],
  ])('is filled by %s', (_name, policies) => {
    expect(lintsIn(file(...policies))).toEqual([]);
  });

  it('is not looked for while policies of the set are not read', () => {
    const text = file(schedule('a', `${office}, otherwise: leave`));
    expect(lintsIn(text, { isWhole: false })).toEqual([]);
  });

  it('is not filled by a policy that is only observed, nor by one of other computes', () => {
    const found = lintsIn(
      file(
        schedule('a', `select: { projects: ["a-*"] }, ${office}, otherwise: { suspend_after: 5m }`),
        schedule('b', `mode: observe, ${office}`),
        schedule('c', `select: { projects: ["c-*"] }, ${office}`),
      ),
    );
    expect(found).toEqual([gap('4 «suspend_after»', 'size', '2026-11-23T17:00:00Z')]);
  });

  it('is exact where the fleet is known', () => {
    const text = file(
      schedule('a', 'windows: [{ at: Mon, size: 1 }], otherwise: leave'),
      schedule('b', 'select: { computes: [ep-one] }, windows: [{ at: Mon, size: 1 }]'),
    );
    expect(lintsIn(text, { fleet: [aCompute()] })).toEqual([]);
    expect(lintsIn(text, { fleet: [aCompute(), aCompute({ computeId: 'ep-two' })] })).toEqual([
      gap('4 «leave»', 'size', '2026-11-23T23:00:00Z'),
    ]);
  });
});

describe('a local time that does not exist', () => {
  const skipped = (time: string, date: string, zone: string, clocks: string) =>
    `warning skipped-local-time ${time} does not exist on ${date} in ${zone}, where clocks go ${clocks}`;
  const BERLIN = ['2027-03-28', 'Europe/Berlin', 'from 02:00 to 03:00'] as const;

  it.each<[string, string[]]>([
    ['02:30-06:00', [`${skipped('02:30', ...BERLIN)}: it means 03:00 that day`]],
    ['22:00-02:30', [`${skipped('02:30', ...BERLIN)}: it means 03:00 that day`]],
    ['02:15-02:45', [`${skipped('02:15', ...BERLIN)}: nothing is left of the window, which does not open that day`]],
    ['Mon-Fri 02:30-06:00', []],
    // The instant at which a gap begins is there, and so is the one at which it ends.
    ['02:00-03:00', []],
    ['Sat 23:30 - Sun 06:00 America/Santiago', []],
    [
      '00:30-06:00 Asia/Beirut',
      [`${skipped('00:30', '2027-03-28', 'Asia/Beirut', 'from 00:00 to 01:00')}: it means 01:00 that day`],
    ],
    [
      '02:15-06:00 Australia/Lord_Howe',
      [`${skipped('02:15', '2027-10-03', 'Australia/Lord_Howe', 'from 02:00 to 02:30')}: it means 02:30 that day`],
    ],
    ['{ cron: "30 2 * * *", for: 1h }', [`${skipped('02:30', ...BERLIN)}: it means 03:00 that day`]],
    ['{ cron: "30 2 * * 1-6", for: 1h }', []],
    ['{ cron: "*/10 * * * *", for: 1m }', []],
    ['{ start: "30 1 * * *", end: "30 2 * * *" }', [`${skipped('02:30', ...BERLIN)}: it means 03:00 that day`]],
    ['2027-03-27T02:30/2027-03-28T02:30', [`${skipped('02:30', ...BERLIN)}: it means 03:00 that day`]],
    ['2027-03-27T02:30+01:00/2027-03-28T02:30+01:00', []],
  ])('is found in %s', (time, expected) => {
    const found = lintsIn(file(schedule('a', `windows: [{ at: ${time}, size: 1 }]`)));
    expect(found).toEqual(expected.map((message) => `4 «${/^\{ (\w+)/.exec(time)?.[1] ?? time}» ${message}`));
  });

  it('does not matter on a day that a calendar excepts', () => {
    const text = file(schedule('a', 'windows: [{ at: Sun 02:30-06:00, except: [off], size: 1 }]'));
    const off = (dates: string) => text.replace('policies', `calendars: { off: { dates: [${dates}] } }\npolicies`);
    expect(lintsIn(off('2027-03-28'))).toEqual([
      `5 «Sun 02:30-06:00» ${skipped('02:30', '2028-03-26', BERLIN[1], BERLIN[2])}: it means 03:00 that day`,
    ]);
    expect(lintsIn(off('2027-03-28, 2028-03-26'))).toEqual([]);
  });
});

describe('a timeout without effect', () => {
  it('is one for a fixed size above 16 CU', () => {
    const found = lintsIn(
      file(
        schedule('a', 'windows: [{ at: Mon, size: 20, suspend_after: 5m }]'),
        schedule(
          'b',
          'select: { projects: [b] }, priority: 1, windows: [{ at: Mon, size: 18 }], otherwise: { size: 16, suspend_after: 10m }',
        ),
        schedule('c', 'priority: 2, windows: [{ at: Mon, size: 20, suspend_after: never }]'),
      ),
    );
    expect(found).toEqual([
      '4 «5m» warning timeout-without-effect suspend_after 5m has no effect with 20 CU: above 16 CU a compute never sleeps; write suspend_after: never, or a size of 16 CU at most',
      '5 «18» warning timeout-without-effect suspend_after 10m of otherwise has no effect with 18 CU: above 16 CU a compute never sleeps; write suspend_after: never, or a size of 16 CU at most',
    ]);
  });

  it('is one under limits that keep a compute above 16 CU', () => {
    const found = lintsIn(
      file(
        schedule('a', 'windows: [{ at: Mon, size: 4, suspend_after: 5m }]'),
        limits('b', 'size: { min: 18 }'),
        limits('c', 'size: 20-56, suspend_after: { max: 1h }'),
      ),
    );
    expect(found).toEqual([
      '5 «min» warning timeout-without-effect suspend_after 5m of "a" (web.yaml:4) has no effect with at least 18 CU: above 16 CU a compute never sleeps; write a minimum of 16 CU at most',
      '6 «20-56» warning timeout-without-effect suspend_after up to 1h has no effect with at least 20 CU: above 16 CU a compute never sleeps; write a minimum of 16 CU at most',
    ]);
  });
});

describe('a change that waits for sleep', () => {
  const waiting = (disruption: string, rest: string) =>
    lintsIn(
      file(
        schedule(
          'a',
          `disruption: { ${disruption} }, windows: [{ at: Mon, size: 1-4, suspend_after: never }], ${rest}`,
        ),
      ),
    );
  const idle = (place: string, direction: string, where: string, consequence: string) =>
    `${place} warning idle-cannot-occur ${direction} waits until the compute is idle, but by ${where} it never sleeps, so ${consequence}; write when: quiet, or give it a timeout`;

  it.each<[string, string, string[]]>([
    [
      'lower: { when: idle }',
      'otherwise: { size: 0.25, suspend_after: never }',
      [idle('4 «idle»', 'lower', 'otherwise', 'the change is never made')],
    ],
    [
      'lower: { when: idle, deadline: 2h }',
      'otherwise: { size: 0.25, suspend_after: never }',
      [idle('4 «idle»', 'lower', 'otherwise', 'the change always waits for the deadline')],
    ],
    [
      'raise: { when: idle, deadline: 2h, then: skip }',
      'otherwise: { size: 0.25, suspend_after: 5m }',
      [idle('4 «idle»', 'raise', 'window 1', 'the change is skipped every time')],
    ],
    [
      'lower: { when: idle }',
      'otherwise: baseline',
      [idle('4 «idle»', 'lower', 'window 1', 'the change is never made')],
    ],
    ['lower: { when: idle }', 'otherwise: { size: 0.25, suspend_after: 5m }', []],
    ['lower: { when: quiet }', 'otherwise: { size: 0.25, suspend_after: never }', []],
  ])('in vain is found: %s, %s', (disruption, rest, expected) => {
    expect(waiting(disruption, rest)).toEqual(expected);
  });

  it('in vain is found above 16 CU', () => {
    const found = lintsIn(
      file(
        schedule(
          'a',
          'disruption: { raise: { when: idle } }, windows: [{ at: Mon, size: 20 }], otherwise: { size: 4 }',
        ),
      ),
    );
    expect(found).toEqual([idle('4 «idle»', 'raise', 'window 1', 'the change is never made')]);
  });
});

describe('headroom', () => {
  const office = schedule('office', 'windows: [{ at: Mon, size: 1-8 }], otherwise: { size: 0.25-2 }');

  it.each<[string, string[]]>([
    [
      'max_size: 4',
      [
        '5 «4» warning headroom-too-small max_size 4 CU is below the 8 CU that "office" (web.yaml:4) wants, where this can add nothing; write max_size: 8 or more',
      ],
    ],
    ['max_size: 8', []],
    [
      'max_size: 12',
      [
        '5 «12» warning span-too-wide max_size 12 CU can\'t be reached: "office" (web.yaml:4) keeps the minimum at 0.25 CU and a range spans 8 CU at most, so it ends at 8 CU; write may_raise_min: true, or max_size: 8',
      ],
    ],
    ['max_size: 12, may_raise_min: true', []],
  ])('is checked against schedules: %s', (rest, expected) => {
    expect(lintsIn(file(office, headroom('room', rest)))).toEqual(expected);
  });

  it('above 16 CU needs a fixed size', () => {
    const found = lintsIn(file(schedule('a', 'windows: [{ at: Mon, size: 12-16 }]'), headroom('room', 'max_size: 20')));
    expect(found).toEqual([
      '5 «20» warning span-too-wide max_size 20 CU can\'t be reached: "a" (web.yaml:4) keeps the minimum at 12 CU and a range ends at 16 CU, so it ends at 16 CU; write may_raise_min: true, or max_size: 16',
    ]);
  });
});

describe('a minimum that limits the connections', () => {
  const text = (size: string, rest: string) =>
    file(schedule('office', `windows: [{ at: always, size: ${size} }]`), headroom('room', rest));
  const profiles = new Map([['default', CONNECTION_PROFILES['vendor-2026']]]);

  it('is found where max_connections follows it, with the maximum that it allows', () => {
    expect(lintsIn(text('0.5-4', 'max_size: 8'), { profiles })).toEqual([
      '5 «8» warning minimum-limits-connections with the profile vendor-2026 the minimum of 0.5 CU that "office" (web.yaml:4) wants allows 4 CU: up to max_size 8 CU there are no more connections; write may_raise_min: true, or max_size: 4',
    ]);
    expect(lintsIn(text('0.5-8', 'max_size: 8'), { profiles })).toHaveLength(1);
  });

  it.each<[string, string, string, ReadonlyMap<string, ConnectionProfile>]>([
    ['by the specification', '0.5-4', 'max_size: 8', new Map([['default', CONNECTION_PROFILES.specification]])],
    ['where no settings are known', '0.5-4', 'max_size: 8', new Map()],
    ['where the minimum may be raised', '0.5-4', 'max_size: 8, may_raise_min: true', profiles],
    ['where max_size gives all', '0.5-4', 'max_size: 4', profiles],
    ['where the minimum is enough', '1-4', 'max_size: 8', profiles],
    [
      'in another account',
      '0.5-4',
      'max_size: 8, select: { accounts: [main] }',
      new Map([
        ['main', CONNECTION_PROFILES.specification],
        ['other', CONNECTION_PROFILES['vendor-2026']],
      ]),
    ],
  ])('is not seen %s', (_where, size, rest, known) => {
    const written = text(size, rest);
    const one = rest.includes('select')
      ? written.replace('name: room, kind: headroom, select: { projects: ["*"] }', 'name: room, kind: headroom')
      : written;
    expect(lintsIn(one, { profiles: known })).toEqual([]);
  });
});

describe('a probe', () => {
  const withSource = (source: string, ...policies: string[]) =>
    file(...policies, headroom('room', 'max_size: 8')).replace('policies', `sources: { counts: ${source} }\npolicies`);
  const postgres = (every: string) => `{ from: postgres, dsn_env: EBB_DSN_A${every} }`;
  const nights = schedule('nights', 'windows: [{ at: Mon, suspend_after: 15m }], otherwise: { suspend_after: 5m }');
  const keeps = (place: string, every: string, policy: string, after: string, advice: string) =>
    `${place} error probe-keeps-awake asking every ${every} keeps computes awake that ${policy} wants asleep after ${after}; ${advice}`;
  const SIXTEEN = 'write every: 16m or more, or take the counts from prometheus';

  it.each<[string, string, string[]]>([
    [', every: 10m', nights, [keeps('3 «10m»', '10m', '"nights" (web.yaml:5)', '15m', SIXTEEN)]],
    [', every: 15m', nights, [keeps('3 «15m»', '15m', '"nights" (web.yaml:5)', '15m', SIXTEEN)]],
    ['', nights, [keeps('6 «counts»', '1m', '"nights" (web.yaml:5)', '15m', SIXTEEN)]],
    [', every: 16m', nights, []],
    [', every: 10s', schedule('awake', 'windows: [{ at: Mon, suspend_after: never }]'), []],
    [
      ', every: 1d',
      schedule('long', 'windows: [{ at: Mon, suspend_after: 7d }]'),
      [keeps('3 «1d»', '1d', '"long" (web.yaml:5)', '7d', 'take the counts from prometheus')],
    ],
    [
      ', every: 1m',
      limits('asleep', 'suspend_after: { max: 2m }'),
      [
        keeps(
          '3 «1m»',
          '1m',
          '"asleep" (web.yaml:5)',
          '2m',
          'write every: 3m or more, or take the counts from prometheus',
        ),
      ],
    ],
  ])('that keeps a compute awake is an error:%s', (every, policy, expected) => {
    expect(lintsIn(withSource(postgres(every), policy))).toEqual(expected);
  });

  it('of Prometheus wakes nothing', () => {
    expect(
      lintsIn(withSource('{ from: prometheus, url: "http://p:9090", query: "$compute", every: 10s }', nights)),
    ).toEqual([]);
  });

  it('of a source that is defined elsewhere is known too', () => {
    const source: ConnectionSource = {
      from: 'postgres',
      ...{ name: 'counts', file: 'ebb.yaml', everyMs: 60_000 },
      dsn: { from: 'variable', name: 'EBB_DSN_A' },
    };
    const text = file(nights, headroom('room', 'max_size: 8'));
    expect(lintsIn(text, { sources: new Map([['counts', source]]) })).toEqual([
      keeps('5 «counts»', '1m', '"nights" (web.yaml:4)', '15m', SIXTEEN),
    ]);
    expect(lintsIn(text)).toEqual([]);
  });

  it('is checked once for each source', () => {
    const text = withSource(postgres(', every: 10s'), nights, headroom('other', 'max_size: 8'));
    expect(findingsIn(text).map(({ code }) => code)).toEqual(['probe-keeps-awake']);
  });
});

describe('limits that leave nothing', () => {
  const text = file(
    limits('a', 'size: 0.25-2, suspend_after: { max: 5m }'),
    limits('b', 'size: { min: 4 }, suspend_after: { min: 10m }'),
    limits('c', 'size: { max: 8 }, suspend_after: { min: never }').replace('"*"', 'c'),
  );
  const nothing = (place: string, severity: string, what: string, where: string) =>
    `${place} ${severity} disjoint-limits ${what} leave nothing for ${where}; let them meet, or keep their computes apart`;

  it('are a warning while no compute is known to be under both', () => {
    const where = 'a compute under both';
    expect(lintsIn(text)).toEqual([
      nothing('5 «min»', 'warning', 'size from 4 and 0.25-2 of "a" (web.yaml:4)', where),
      nothing('5 «min»', 'warning', 'suspend_after from 10m and up to 5m of "a" (web.yaml:4)', where),
      nothing('6 «min»', 'warning', 'suspend_after from never and up to 5m of "a" (web.yaml:4)', where),
    ]);
  });

  it('are an error where one is', () => {
    expect(lintsIn(text, { fleet: [aCompute({ projectName: 'c' })] })).toEqual([
      nothing('5 «min»', 'error', 'size from 4 and 0.25-2 of "a" (web.yaml:4)', 'ep-one'),
      nothing('5 «min»', 'error', 'suspend_after from 10m and up to 5m of "a" (web.yaml:4)', 'ep-one'),
      nothing('6 «min»', 'error', 'suspend_after from never and up to 5m of "a" (web.yaml:4)', 'ep-one'),
    ]);
    const apart = lintsIn(text.replace('"*"', 'a').replace('"*"', 'b'), { fleet: [aCompute({ projectName: 'a' })] });
    expect(apart.filter((line) => line.includes('disjoint'))).toEqual([]);
  });
});

describe('a fleet', () => {
  it('shows which policies match nothing, however young its computes are', () => {
    const text = file(
      schedule('a', 'select: { projects: [web-shop] }, windows: [{ at: Mon, size: 1 }]'),
      schedule('b', 'select: { projects: [web-shpo] }, windows: [{ at: Mon, size: 1 }]'),
    );
    expect(lintsIn(text)).toEqual([]);
    expect(lintsIn(text, { fleet: [aCompute({ createdAtMs: at('2026-11-20T23:59:00Z') })] })).toEqual([
      '5 «projects» warning matches-nothing selects no compute of the fleet; check its names, or remove the policy',
    ]);
  });

  it('tells of guards, and of a guard whose labels name no project of a compute', () => {
    const sources = 'sources: { main: { from: prometheus, url: "http://localhost" } }';
    const guard = (more: string) =>
      `version: 1\n${sources}\npolicies:\n  - { name: slow, kind: guard, source: main, query: p95, bad_when: "> 1", ${more} }\n`;
    const fleet = { fleet: [aCompute({ projectId: 'p-one', projectName: 'web-shop', computeId: 'ep-one' })] };
    const lints = (more: string) => lintsIn(guard(more), fleet).map((line) => line.replace(/^\d+ /, ''));
    expect(lints('select: { projects: [web-shpo] }, match: { service: "{project_name}" }')).toEqual([
      '«projects» warning matches-nothing selects no compute of the fleet; check its names, or remove the policy',
    ]);
    expect(lints('select: { projects: [web-shop] }, match: { service: { shop: web-shpo } }')).toEqual([
      '«service» warning matches-nothing has no value for web-shop / ep-one, so they stay unknown; add their projects, or leave them out of select',
    ]);
    expect(lints('select: { projects: [web-shop] }, no_data: healthy, match: { service: { shop: web-shpo } }')).toEqual(
      [
        '«service» warning matches-nothing has no value for web-shop / ep-one, so they always count as healthy; add their projects, or leave them out of select',
      ],
    );
    expect(lints('select: { projects: [web-shop] }, match: { service: { shop: web-shop } }')).toEqual([]);
  });
});

describe('the plan of an account', () => {
  const plans = (...given: ['free' | 'launch' | 'scale', string][]) => ({
    plans: new Map(given.map(([plan, account]) => [account, plan])),
  });

  it('refuses sizes and timeouts', () => {
    const text = file(
      schedule(
        'a',
        'windows: [{ at: Mon, size: 1-4, suspend_after: never }], otherwise: { size: 2, suspend_after: default }',
      ),
      limits('b', 'size: { min: 4 }, suspend_after: { max: 1m }').replace('"*"', 'b'),
      headroom('c', 'max_size: 20').replace('"*"', 'c'),
    );
    const refuses = (plan: string) =>
      lintsIn(text, plans([plan as 'free', 'main']))
        .filter((line) => line.includes('plan-refuses'))
        .map((line) => line.replace(' error plan-refuses the', ''));
    expect(refuses('free')).toEqual([
      '4 «1-4» free plan of account main refuses 4 CU; 2 CU is its largest size',
      '4 «never» free plan of account main refuses suspend_after never; it takes 5m',
      '5 «min» free plan of account main refuses 4 CU; 2 CU is its largest size',
      '5 «max» free plan of account main refuses suspend_after 1m; it takes 5m',
      '6 «20» free plan of account main refuses 20 CU; 2 CU is its largest size',
    ]);
    expect(refuses('launch')).toEqual([
      '5 «max» launch plan of account main refuses suspend_after 1m; it takes 5m or never',
      '6 «20» launch plan of account main refuses 20 CU; 16 CU is its largest size',
    ]);
    expect(refuses('scale')).toEqual([]);
  });

  it('is a warning only where it is not certain that the policy selects something there', () => {
    const text = (select: string) => file(schedule('a', `select: ${select}, windows: [{ at: Mon, size: 4 }]`));
    const severities = (select: string, accounts: string[] = []) =>
      findingsIn(text(select), {
        ...plans(['free', 'main'], ['scale', 'other']),
        ...(accounts.length > 0 && { fleet: accounts.map((account) => aCompute({ account })) }),
      }).map(({ severity }) => severity);
    expect(severities('{ projects: ["*"] }')).toEqual(['warning']);
    expect(severities('{ accounts: ["ma*"] }')).toEqual(['error']);
    expect(severities('{ accounts: ["*", "!main"] }')).toEqual([]);
    expect(severities('{ projects: ["*"] }', ['main'])).toEqual(['error']);
    expect(severities('{ projects: ["*"] }', ['other'])).toEqual([]);
  });

  it('is a warning if the policy may only select something in an account without a plan', () => {
    const profiles = (...accounts: string[]) =>
      new Map(accounts.map((account) => [account, CONNECTION_PROFILES.specification]));
    const text = file(schedule('a', 'windows: [{ at: Mon, size: 4 }]'));
    const severities = (...accounts: string[]) =>
      findingsIn(text, { ...plans(['free', 'main']), profiles: profiles(...accounts) }).map(({ severity }) => severity);
    expect(severities('main')).toEqual(['error']);
    expect(severities('main', 'other')).toEqual(['warning']);
  });
});

describe('lint', () => {
  it('says when it has left something out', () => {
    const dense = (name: string, minutes: string, size: number) =>
      schedule(name, `windows: [{ at: { cron: "${minutes} * * * *", for: 1m }, size: ${size} }]`);
    const text = file(dense('a', '0-58/2', 1), dense('b', '1-59/2', 2));
    expect(lintsIn(text, { steps: 200 })).toEqual([
      '4 «a» warning not-compared the set is too large or its times too dense to compare all of it for two years; some was left out',
      '4 «cron» warning costly-window changes up to 1440 times a day, so boundaries are known only hours ahead; let it open less often, for longer',
      '5 «cron» warning costly-window changes up to 1440 times a day, so boundaries are known only hours ahead; let it open less often, for longer',
    ]);
  });

  it('needs no text: then findings name the file', () => {
    const policies = [
      aSchedule({
        otherwise: 'leave',
        windows: [{ at: [{ kind: 'interval', startMs: 0, endMs: 1 }], size: { minCu: 1, maxCu: 1 } }],
      }),
    ];
    expect(lintPolicySet({ policies, nowMs: 2 })).toEqual([
      {
        code: 'never-opens',
        severity: 'warning',
        policy: 'office-hours',
        file: 'policies/test.yaml',
        message: 'ended at 1970-01-01T00:00:00Z; remove it',
      },
    ]);
  });

  it('has nothing to say about the samples', async () => {
    const names = ['connection-headroom', 'night-scale-to-zero', 'office-hours'];
    const files = await Promise.all(
      names.map(async (name) => ({ path: name, text: await readFile(`policies/${name}.yaml`, 'utf8') })),
    );
    const parsed = parsePolicyFiles(files);
    if (!parsed.ok) throw new Error(parsed.problems[0]?.message);
    const nowMs = at('2026-11-21T00:00:00Z');
    expect(lintPolicySet({ policies: parsed.set.policies, written: parsed.written, nowMs })).toEqual([]);
  });

  it('tells of a window that is costly to follow, and of no other', () => {
    const cron = (expression: string, minutes: number) =>
      ({ kind: 'cron', cron: expression, forMs: minutes * 60_000, zone: 'UTC' }) as const;
    const between = (startCron: string, endCron: string) =>
      ({ kind: 'cron-switch', startCron, endCron, zone: 'UTC' }) as const;
    const told = (spec: TimeSpec) =>
      lintPolicySet({ policies: [aFreeze({ at: [spec] })], nowMs: at('2026-03-02T00:00:00Z') })
        .filter(({ code }) => code === 'costly-window')
        .map(({ message }) => message.slice(0, 30));
    expect(told(cron('*/2 * * * *', 1))).toEqual(['changes up to 1440 times a day']);
    expect(told(between('0 0 * * *', '0 0 * * 0'))).toEqual(['a start at the same time undoe']);
    const calm = [cron('* * * * *', 1), cron('0 4 * * 0', 120), between('0 8 * * 1-5', '0 18 * * 1-5')];
    expect(calm.flatMap(told)).toEqual([]);
  });

  it('names a restart policy whose opening is not found after a while, so that no restart is due then', () => {
    const told = (policy: RestartPolicy) =>
      lintPolicySet({ policies: [policy], nowMs: at('2026-03-02T00:00:00Z') })
        .filter(({ code, message }) => code === 'costly-window' && message.includes('no restart is due'))
        .map(({ policy: name }) => name);
    const turns = (hours: string): TimeSpec[] =>
      ['*/2', '1-59/2'].map((minutes) => ({
        kind: 'cron',
        cron: `${minutes} ${hours} * * *`,
        forMs: 60_000,
        zone: 'UTC',
      }));
    const once = aRestart();
    for (const hours of ['*', '2-5']) {
      expect(told({ ...once, at: turns(hours) })).toEqual([once.name]);
      expect(told({ ...once, at: turns(hours), everyMs: 86_400_000 })).toEqual([]);
    }
    expect(told({ ...once, at: turns('2') })).toEqual([once.name]);
    expect(told(once)).toEqual([]);
    expect(told({ ...once, at: [{ kind: 'cron', cron: '*/2 2-5 * * *', forMs: 120_000, zone: 'UTC' }] })).toEqual([]);
  });

  it('documents every code in docs/lints.md with its severity, and no other', async () => {
    const text = await readFile('docs/lints.md', 'utf8');
    const documented = [...text.matchAll(/^## `([\w-]+)`\n\n\*([\w ]+)\*/gm)].map(([, code, severity]) => [
      code,
      severity,
    ]);
    expect(Object.fromEntries(documented)).toEqual(LINTS);
  });
});
