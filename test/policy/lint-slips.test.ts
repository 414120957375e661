/** Lints of slips that are right as text and cost money, or connections. */
import { describe, expect, it } from 'vitest';
import { aCompute } from '../support/builders.ts';
import { file, findingsIn, lintsIn, schedule } from './lint-text.ts';

const all = 'select: { projects: ["*"] }';
const headroom = (rest: string) => `name: room, kind: headroom, ${all}, connections: counts, max_size: 8, ${rest}`;
const freeze = (rest: string) => `name: year-end, kind: freeze, ${all}, ${rest}`;

describe('windows of one policy that overlap', () => {
  const windows = (one: string, other: string) => file(schedule('a', `windows: [{ ${one} }, { ${other} }]`));

  it('are found where they want different values, with the first instant', () => {
    expect(lintsIn(windows('at: Mon-Fri 08:00-18:00, size: 1-4', 'at: Fri 12:00-24:00, size: 8'))).toEqual([
      '4 «8» warning overlapping-windows size 8, and window 1 of the same policy wants 1-4: both are open first at 2026-11-27T11:00:00Z, and the later one, this one, wins; let them not overlap',
    ]);
    expect(lintsIn(windows('at: always, suspend_after: 5m', 'at: Sat, suspend_after: never'))).toEqual([
      '4 «never» warning overlapping-windows suspend_after never, and window 1 of the same policy wants 5m: both are open now, and the later one, this one, wins; let them not overlap',
    ]);
    expect(
      findingsIn(windows('at: 2026-12-01/2026-12-24, size: 1', 'at: 2026-12-23/2026-12-27, size: 2')),
    ).toMatchObject([{ code: 'overlapping-windows' }]);
    const overlaps = Array.from({ length: 9 }, (_, n) => `{ at: Mon, size: ${n + 1} }`);
    expect(findingsIn(file(schedule('a', `windows: [${overlaps}]`)))).toHaveLength(3);
  });

  it.each([
    ['that touch', 'at: 08:00-18:00, size: 1', 'at: 18:00-08:00, size: 2'],
    ['that want the same', 'at: always, size: 1-2', 'at: Mon, size: { min: 1, max: 2 }'],
    ['of different fields', 'at: always, size: 1', 'at: Mon, suspend_after: 5m'],
    ['of which one is an absolute interval', 'at: Mon-Fri 08:00-18:00, size: 1', 'at: 2026-12-01/2026-12-24, size: 2'],
    ['on other days', 'at: { cron: "0 8 * * 1", for: 2h }, size: 1', 'at: Tue, size: 2'],
  ])('are not reported where they are windows %s', (_which, one, other) => {
    expect(lintsIn(windows(one, other))).toEqual([]);
  });
});

describe('a zone that is an offset and no place', () => {
  it.each([
    [
      'EST',
      'EST is the same offset all year; write the name of a place: "America/New_York", or "America/Panama", which never changes its clocks',
    ],
    ['CET', 'CET is an old name and no place; write the name of a place: "Europe/Berlin" or the like'],
    [
      'Etc/GMT+5',
      'Etc/GMT+5 is 5 h behind UTC all year, whatever its sign says; write the name of a place such as "Europe/Berlin"',
    ],
  ])('is found once as the zone of a file: %s', (zone, message) => {
    const text = file(schedule('a', 'windows: [{ at: Mon, size: 1 }]'), freeze('at: Tue')).replace(
      'Europe/Berlin',
      zone,
    );
    expect(lintsIn(text)).toEqual([`2 «${zone}» warning fixed-offset-zone ${message}`]);
  });

  it('is found in times, of every form', () => {
    const at = '[Mon 08:00-09:00 EST, Sun EST, 2026-12-24/2026-12-27 MST, { cron: "0 4 * * *", for: 1h, zone: HST }]';
    const found = findingsIn(file(freeze(`at: ${at}`)));
    expect(found.map(({ code, message }) => [code, message.slice(0, 3)])).toEqual(
      ['EST', 'EST', 'MST', 'HST'].map((zone) => ['fixed-offset-zone', zone]),
    );
  });

  it.each(['Europe/Berlin', 'UTC', 'Etc/GMT', 'America/New_York'])('is not %s', (zone) => {
    expect(lintsIn(file(freeze(`at: Mon 08:00-09:00 ${zone}`)))).toEqual([]);
  });
});

describe('a critical share below the target', () => {
  it('is found', () => {
    expect(lintsIn(file(headroom('target: 80%, critical: 70%')))).toEqual([
      '4 «70%» warning critical-below-target critical 70% is below target 80%, so no raise ever waits for a good moment; write a critical above the target, such as 90%',
    ]);
    expect(lintsIn(file(headroom('target: 80%, critical: 80%')))).toEqual([]);
    expect(lintsIn(file(headroom('target: 80%')))).toEqual([]);
  });
});

describe('newly_discovered: act', () => {
  const disruption = 'disruption: { newly_discovered: act }, windows: [{ at: always, size: 1 }], otherwise: leave';
  const previews = (minAge: string) =>
    file(`name: previews, kind: schedule, select: { branches: ["preview/*"]${minAge} }, ${disruption}`);

  it('is pointless where new computes are not selected yet', () => {
    expect(findingsIn(previews('')).map(({ code }) => code)).toEqual(['act-before-min-age']);
    expect(lintsIn(previews(', min_age: 0s'))).toEqual([]);
  });
});

describe('a deadline of a restart that is shorter than its announcement', () => {
  const evenings = (lower: string, more = '') =>
    file(schedule('evenings', `windows: [{ at: Mon, size: 1 }], disruption: { lower: ${lower} }${more}`));
  const MINUTE_MS = 60_000;

  it('is found, by notify_before of the policy, or else of the settings', () => {
    const found = [
      '4 «5m» warning deadline-before-notice lower of evenings restarts after a deadline of 5m, which is announced when the wait begins: 5m before, not 30m as notify_before says; write a deadline of at least 30m, or a shorter notify_before',
    ];
    const short = '{ when: idle, deadline: 5m }';
    expect(lintsIn(evenings(short, ', notify_before: 30m'), { notifyBeforeMs: 2 * MINUTE_MS })).toEqual(found);
    expect(lintsIn(evenings(short), { notifyBeforeMs: 30 * MINUTE_MS })).toEqual(found);
    expect(lintsIn(evenings(short, ', notify_before: 5m'), { notifyBeforeMs: 30 * MINUTE_MS })).toEqual([]);
    expect(lintsIn(evenings(short))).toEqual([]);
  });

  it('is found where the settings have it', () => {
    const disruption = { raise: { when: 'quiet', deadlineMs: 10 * MINUTE_MS, atDeadline: 'apply' } } as const;
    const text = file(schedule('evenings', 'windows: [{ at: Mon, size: 1 }]'));
    expect(findingsIn(text, { disruption, notifyBeforeMs: 15 * MINUTE_MS })).toMatchObject([
      { code: 'deadline-before-notice', policy: 'evenings', message: expect.stringMatching(/^raise of .* 10m .* 15m/) },
    ]);
  });

  it.each(['{ when: idle, deadline: 30m }', '{ when: idle, deadline: 5m, then: skip }', '{ when: any }'])(
    'is not one where it does not restart earlier: %s',
    (lower) => {
      expect(lintsIn(evenings(lower), { notifyBeforeMs: 30 * MINUTE_MS })).toEqual([]);
    },
  );
});

describe('a rate of restarts', () => {
  const mornings = (atMost: string, more = '') =>
    file(
      `name: mornings, kind: schedule, select: { projects: ["*"] }, windows: [{ at: "Mon-Fri 08:00-10:00 UTC", size: 4 }], otherwise: { size: 1 }, disruption: { at_most: ${atMost}${more} }`,
    );

  it('is found where a change of all computes takes longer than until the next', () => {
    expect(lintsIn(mornings('10% in 1h'))).toEqual([
      expect.stringMatching(
        /^4 «10% in 1h» warning restart-rate with 10% in 1h a change of all computes takes 9h if they are awake, but the next one is due 2h after that of \S+T08:00:00Z; write a larger share or a shorter time$/,
      ),
    ]);
    expect(lintsIn(mornings('34% in 1h'))).toEqual([]);
    expect(lintsIn(mornings('10% in 10m'))).toEqual([]);
    // A raise that waits for sleep restarts nobody, nor does the lowering after it.
    expect(lintsIn(mornings('10% in 1h', ', raise: { when: idle }')).join()).not.toContain('restart-rate');
    const raise = { when: 'idle', atDeadline: 'apply' } as const;
    expect(lintsIn(mornings('10% in 1h'), { disruption: { raise } }).join()).not.toContain('restart-rate');
  });

  it('is found where it allows less than one of the computes that there are', () => {
    const fleet = ['ep-1', 'ep-2'].map((computeId) => aCompute({ computeId }));
    const found = (atMost: string) =>
      findingsIn(mornings(atMost), { fleet }).map(({ code, message }) => `${code} ${message}`);
    expect(found('30% in 1m')).toEqual([
      'restart-rate 30% of 2 computes is less than one, so one is restarted in 1m all the same; write a larger share',
    ]);
    expect(found('50% in 1m')).toEqual([]);
    // Two turns: the second an hour after the first.
    expect(found('50% in 1h')).toEqual([]);
    expect(found('50% in 3h')).toEqual([expect.stringContaining('takes 3h if they are awake')]);
  });
});

describe('a query that names no compute', () => {
  const text = (query: string) =>
    file(headroom('target: 70%'), headroom('target: 80%').replace('room', 'more')).replace(
      'policies:',
      `sources: { counts: { from: prometheus, url: "http://prometheus:9090", query: '${query}' } }\npolicies:`,
    );

  it('is found at its place, once', () => {
    expect(lintsIn(text('sum(pg_connections)'))).toEqual([
      '3 «\'sum(pg_connections)\'» warning query-without-compute the query of "counts" names no $compute, so it gives every compute the same count; write for example {endpoint_id="$compute"}',
    ]);
    expect(findingsIn(text('sum(c{branch="$branch"})'))[0]?.message).toContain(
      'counts all computes of a branch together',
    );
    expect(lintsIn(text('sum(c{endpoint_id="$compute"})'))).toEqual([]);
  });
});

describe('a freeze that starts while a window keeps computes awake', () => {
  const days = schedule(
    'days',
    'windows: [{ at: Mon-Fri 08:00-18:00, suspend_after: never }], otherwise: { suspend_after: 5m }',
  );

  it('is found, with raises allowed or not', () => {
    const at = 'at: 2026-12-18T12:00/2027-01-04';
    expect(lintsIn(file(days, freeze(`${at}, allow: [raise]`)))).toEqual([
      '5 «2026-12-18T12:00/2027-01-04» warning freeze-keeps-awake starts at 2026-12-18T11:00:00Z, while window 1 of "days" (web.yaml:4) keeps computes awake: they stay awake until the freeze ends, since it allows only raises; start it when the window is closed',
    ]);
    expect(findingsIn(file(days, freeze(at)))[0]?.message).toContain('until the freeze ends; start');
    // At 18:00 the window ends, but nothing is written any more.
    expect(findingsIn(file(days, freeze('at: 2026-12-18T18:00/2027-01-04')))).toHaveLength(1);
  });

  it.each([
    ['starts in the night', days, 'at: 2026-12-18T19:00/2027-01-04'],
    ['starts with the window', days, 'at: Mon-Fri 08:00-20:00'],
    ['ends before the window', days, 'at: Mon-Fri 09:00-10:00'],
    ['always holds', days, 'at: always'],
    [
      'meets a schedule that never lets computes sleep',
      schedule('days', 'windows: [{ at: Mon-Fri 08:00-18:00, size: 1 }], otherwise: { suspend_after: never }'),
      'at: 2026-12-18T12:00/2027-01-04',
    ],
    [
      'concerns other computes',
      days.replace('"*"', '"web-*"'),
      'at: 2026-12-18T12:00/2027-01-04, select: { projects: ["dev-*"] }',
    ],
  ])('is not reported where it %s', (_what, policy, rest) => {
    const frozen = rest.includes('select') ? `name: year-end, kind: freeze, ${rest}` : freeze(rest);
    expect(findingsIn(file(policy, frozen)).filter(({ code }) => code === 'freeze-keeps-awake')).toEqual([]);
  });
});
