import fc from 'fast-check';
import { IANAZone } from 'luxon';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml, stringify } from 'yaml';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import type { PolicyProblem } from '../../src/policy/problem.ts';
import { schedulesOf, VALID } from './policy-text.ts';

/** Texts in all; EBB_FUZZ_RUNS=100000 for the long run. */
const RUNS = Number(process.env.EBB_FUZZ_RUNS ?? 2000);

const some = <T>(...values: T[]) => fc.constantFrom(...values);
const odd = some<unknown>(null, '', 0, -1, 1e308, true, [], {}, 'x', [[]], { a: 1 }, '\u0000', 'é', '__proto__');
/** Mostly the value, now and then anything else. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 25, arbitrary }, { weight: 1, arbitrary: odd });

const clock = some('00:00', '02:30', '08:00', '18:30', '24:00', '24:01', '8:00', '');
const day = some('Mon', 'Tue', 'Fri', 'Sun', 'mon', 'Xyz');
const zone = some('', '', '', ' Europe/Berlin', ' Africa/Cairo', ' Mars/Base');
const date = some('2026-03-29', '2026-12-24T08:00', '2027-01-02T00:00:00+01:00', '2026-02-30', 'Z');
const time = fc.oneof(
  fc
    .tuple(some('', 'Mon-Fri ', 'Sat,Sun ', 'Fri-Mon ', 'Mon-Mon '), clock, clock, zone)
    .map(([d, a, b, z]) => `${d}${a}-${b}${z}`),
  fc.tuple(day, clock, day, clock, zone).map(([d, a, e, b, z]) => `${d} ${a} - ${e} ${b}${z}`),
  fc.tuple(date, date, zone).map(([a, b, z]) => `${a}/${b}${z}`),
  fc.constant('always'),
);
const size = fc.oneof(
  some<unknown>(1, 0.25, 3.5, 56, '1-4', '0.25-2', '4-1', '8-20', '1-16'),
  fc.record({ min: some(1, 2, 5), max: some(4, 8, 57) }),
);
const timeout = some<unknown>('never', 'default', '5m', '59s', '7d', 300);
const values = fc.record({ size: mostly(size), suspend_after: mostly(timeout) }, { requiredKeys: [] });
const globs = mostly(fc.array(mostly(some('*', 'web-*', '!web-?', 'a')), { maxLength: 3 }));
const select = fc.record(
  { projects: globs, branches: globs, min_age: mostly(some('30m', '0s')), types: mostly(fc.constant(['read_write'])) },
  { requiredKeys: ['projects'] },
);
const cron = some('0 4 * * 0', '*/20 * * * *', '0 24 * * *', '0 0 31 2 *', '@daily', '30 2 * * 1-5');
const cronTime = fc.oneof(
  fc.record({ cron: mostly(cron), for: mostly(some('2h', '30s')) }),
  fc.record({ start: mostly(cron), end: mostly(cron), zone: mostly(some('UTC', 'Asia/Tokyo')) }),
);
const anyTime = fc.oneof({ weight: 4, arbitrary: time }, { weight: 1, arbitrary: cronTime });
const names = mostly(fc.array(mostly(some('days', 'none')), { minLength: 1, maxLength: 2 }));
const window = fc
  .tuple(
    values,
    mostly(fc.oneof(anyTime, fc.array(anyTime, { maxLength: 3 }))),
    fc.record({ except: names, only: names }, { requiredKeys: [] }),
    fc.nat({ max: 5 }),
  )
  .map(([rest, at, dates, kind]) => ({ at, ...rest, ...(kind === 0 ? dates : {}) }));
/** Nearly always one of the valid values, now and then one that is not, so that whole files are accepted too. */
const nearly = (valid: unknown[], invalid: unknown[]) =>
  fc.oneof({ weight: 20, arbitrary: some(...valid) }, { weight: 1, arbitrary: some(...invalid) });
const share = nearly(['70%', '1%', '100%'], ['0%', '7', 70, '101%', null]);
const duration = nearly(['30m', '2h', '1h30m'], ['59s', '400d', 'x', 5]);
const singleSize = nearly([0.25, 2, 8, 16, 56], [3.5, 0, '4', [8]]);
const at = nearly(
  [
    'Mon-Fri 08:00-18:30',
    'always',
    ['22:00-06:00 Asia/Tokyo', { cron: '0 4 * * 0', for: '2h' }],
    '2026-12-24/2026-12-27',
  ],
  ['Mon 25:00', [], { cron: '0 4 * * 0' }, { start: '0 4 * * 0' }],
);
const yesOrNo = nearly([true, false], ['yes', 1]);
const THEN = 'then';
const moment = fc.record(
  { when: nearly(['any', 'idle', 'quiet'], ['now']), deadline: duration, [THEN]: nearly(['apply', 'skip'], ['wait']) },
  { requiredKeys: ['when'] },
);
const disruption = fc.record(
  { raise: moment, lower: moment, quiet_below: nearly([0, 9], [-1, 0.5]), cooldown: duration, at_once: share },
  { requiredKeys: [] },
);
const kind = <T extends string>(name: T) => fc.constant(name);
const sizeBounds = nearly(['0.25-16', { min: 1 }, { max: 4 }, { min: 0.5, max: 8 }], ['4-1', {}, { max: 3.5 }]);
const timeoutBounds = nearly([{ max: '5m' }, { min: 'never' }], [{ min: 'never', max: '1m' }, '5m']);
const otherKinds = fc.oneof(
  fc.record(
    { kind: kind('limits'), size: sizeBounds, suspend_after: timeoutBounds, hard: yesOrNo },
    { requiredKeys: ['kind', 'size'] },
  ),
  fc.record(
    {
      ...{ kind: kind('headroom'), connections: nearly(['counts'], ['none', 1]), target: share, critical: share },
      ...{ max_size: singleSize, may_raise_min: yesOrNo, act: nearly(['apply', 'advise'], ['report']) },
      scale_down: fc.record({ after: duration }),
    },
    { requiredKeys: ['kind', 'connections', 'target', 'max_size'] },
  ),
  fc.record(
    { kind: kind('restart'), at, every: duration, when: fc.record({ connections_below: nearly([0, 5], [-1, 'x']) }) },
    { requiredKeys: ['kind', 'at'] },
  ),
  fc.record(
    { kind: kind('freeze'), at, allow: nearly([[], ['raise']], ['raise', ['lower']]) },
    { requiredKeys: ['kind', 'at'] },
  ),
);
const base = fc.record(
  {
    name: fc.string({ unit: some('a', 'b', '-'), minLength: 1, maxLength: 6 }),
    select: nearly([{ projects: ['*'] }, { branch_roles: ['child'], share: '10%' }], ['group', {}, { projects: [] }]),
    enabled: yesOrNo,
    disruption,
    manual_changes: nearly(['respect', 'revert', { respect_for: '2h' }], ['no', {}]),
  },
  { requiredKeys: ['name', 'select'] },
);
const otherPolicy = fc.tuple(base, otherKinds).map(([common, own]) => ({ ...common, ...own }));
const schedulePolicy = fc.record(
  {
    name: mostly(fc.string({ unit: some('a', 'b', '-'), minLength: 1, maxLength: 6 })),
    kind: mostly(some('schedule', 'schedule', 'schedule', 'schedule', 'schedule', 'headroom', 'limits', 'freeze')),
    select: mostly(fc.oneof({ weight: 4, arbitrary: select }, { weight: 1, arbitrary: fc.constant('group') })),
    windows: mostly(fc.array(mostly(window), { minLength: 1, maxLength: 2 })),
    otherwise: mostly(fc.oneof(some('leave', 'baseline'), values)),
    enabled: mostly(fc.boolean()),
    priority: mostly(fc.integer({ min: -5, max: 5 })),
    mode: mostly(some('enforce', 'observe')),
  },
  { requiredKeys: ['name', 'kind', 'select', 'windows', 'otherwise'] },
);
const policy = fc.oneof({ weight: 3, arbitrary: schedulePolicy }, { weight: 2, arbitrary: otherPolicy });
const file = fc.record(
  {
    version: mostly(fc.constant(1)),
    timezone: mostly(some('UTC', 'Europe/Berlin')),
    owner: mostly(fc.constant('me')),
    sources: fc.record({
      counts: nearly(
        [
          { from: 'prometheus', url: 'http://prometheus:9090', query: 'up' },
          { from: 'postgres', dsn_env: 'EBB_DSN_A', every: '1m' },
        ],
        [{ from: 'postgres', dsn: 'postgres://a:b@c/d' }, { from: 'file' }, null],
      ),
    }),
    groups: mostly(fc.constant({ group: { projects: ['a'] } })),
    calendars: mostly(
      fc.record({
        days: mostly(
          some<unknown>(
            { dates: ['2026-12-24'] },
            { country: 'DE', state: 'BE' },
            { country: 'XX' },
            { ical: './a.ics' },
          ),
        ),
      }),
    ),
    policies: mostly(fc.array(mostly(policy), { maxLength: 2 })),
  },
  { requiredKeys: ['version', 'policies'] },
);

const generated = file.map((content) => stringify(content));
const mutated = fc
  .tuple(
    fc.oneof(generated, fc.constant(VALID)),
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat({ max: 12 }),
        some(
          '',
          ':',
          '- ',
          '\n',
          '\t',
          '"',
          '{',
          '[',
          ']',
          '&a ',
          '*a',
          '!t ',
          '#',
          '\u{1F4A7}',
          '\ud800',
          '%',
          '|\n',
          '? ',
        ),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, edits]) =>
    edits.reduce((current, [at, length, insert]) => {
      const from = at % (current.length + 1);
      return current.slice(0, from) + insert + current.slice(from + length);
    }, text),
  );
const tokens = fc
  .array(
    some(
      'version: 1\n',
      'policies:\n',
      '  - ',
      'name: a\n',
      '    kind: schedule\n',
      '{',
      '}',
      '[',
      ']',
      ',',
      ': ',
      '\n',
      '  ',
      '"',
      "'",
      '#',
      '|',
      '>',
      '&a',
      '*a',
      '!',
      '---\n',
      '...\n',
      '%',
      '@',
      '<<: ',
      '? ',
      '`',
      '\r',
      '\t',
      'x',
      '1',
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(''));
const texts = fc.oneof(
  { weight: 4, arbitrary: generated },
  { weight: 4, arbitrary: mutated },
  { weight: 2, arbitrary: tokens },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
);

function isSound(spec: TimeSpec): boolean {
  if (spec.kind === 'always') return true;
  if (spec.kind === 'interval') return Number.isFinite(spec.startMs) && spec.startMs <= spec.endMs;
  if (spec.kind !== 'weekly') return IANAZone.isValidZone(spec.zone);
  const inDay = (minute: number) => Number.isInteger(minute) && minute >= 0 && minute <= 1440;
  const lengthMinutes = spec.endDayOffset * 1440 + spec.endMinute - spec.startMinute;
  return (
    spec.days.length > 0 &&
    inDay(spec.startMinute) &&
    inDay(spec.endMinute) &&
    lengthMinutes > 0 &&
    lengthMinutes <= 7 * 1440 &&
    IANAZone.isValidZone(spec.zone)
  );
}

function expectSound(policy: SchedulePolicy): void {
  for (const wants of [...policy.windows, ...(typeof policy.otherwise === 'string' ? [] : [policy.otherwise])]) {
    if (wants.size) {
      expect(COMPUTE_SIZES_CU).toContain(wants.size.minCu);
      expect(COMPUTE_SIZES_CU).toContain(wants.size.maxCu);
      expect(wants.size.minCu).toBeLessThanOrEqual(wants.size.maxCu);
    }
    const timeoutSeconds = wants.suspendTimeoutSeconds ?? -1;
    expect(timeoutSeconds === -1 || (timeoutSeconds >= 60 && timeoutSeconds <= 604_800)).toBe(true);
    expect(wants.size ?? wants.suspendTimeoutSeconds).toBeDefined();
  }
  for (const wants of policy.windows) expect(wants.at.length > 0 && wants.at.every(isSound)).toBe(true);
}

/** What a text that was accepted says, read by nothing but the YAML library. */
function enabledNames(text: string): unknown[] {
  const content = parseYaml(text) as { policies: { name: unknown; enabled?: boolean }[] };
  return content.policies.filter((entry) => entry.enabled !== false).map((entry) => entry.name);
}

/** The numbers of the other kinds: sizes that the platform has, shares and durations within their bounds. */
function expectPossible(policy: Policy): void {
  const sizes: (number | undefined)[] = [];
  if (policy.kind === 'limits') sizes.push(policy.size?.minCu, policy.size?.maxCu);
  if (policy.kind === 'headroom') {
    sizes.push(policy.maxCu);
    expect(policy.targetShare > 0 && policy.targetShare <= 1 && policy.scaleDownAfterMs >= 60_000).toBe(true);
  }
  if (policy.kind === 'restart' || policy.kind === 'freeze') {
    expect(policy.at.length > 0 && policy.at.every(isSound)).toBe(true);
  }
  for (const cu of sizes) if (cu !== undefined) expect(COMPUTE_SIZES_CU).toContain(cu);
}

function expectWholeSet(policies: readonly Policy[], text: string): void {
  expect(policies.map(({ name }) => name)).toEqual(enabledNames(text));
  for (const policy of schedulesOf(policies)) expectSound(policy);
  for (const policy of policies) expectPossible(policy);
}

function expectPlaces(problems: readonly PolicyProblem[], text: string): void {
  expect(problems.length).toBeGreaterThan(0);
  const lines = text.split('\n');
  for (const { line = 0, column = 0, message, excerpt } of problems) {
    expect(line >= 1 && line <= lines.length && column >= 1).toBe(true);
    expect(column).toBeLessThanOrEqual((lines[line - 1] ?? '').length + 2);
    expect(message).toMatch(/\S/);
    expect(message).not.toMatch(/^(Invalid (input|string|option|key)|Too (small|big))/);
    expect(excerpt && excerpt.from >= 0 && excerpt.length >= 1).toBe(true);
  }
}

describe('the parser on any text', () => {
  it('either gives a whole, sound set or says where the problems are', { timeout: 60_000 + RUNS * 20 }, () => {
    let accepted = 0;
    let runs = 0;
    const kinds = new Set<string>();
    fc.assert(
      fc.property(texts, (text) => {
        runs += 1;
        const result = parsePolicyFiles([{ path: 'f.yaml', text }]);
        if (!result.ok) {
          expectPlaces(result.problems, text);
          return;
        }
        accepted += 1;
        for (const { kind: accepting } of result.set.policies) kinds.add(accepting);
        expectWholeSet(result.set.policies, text);
      }),
      { numRuns: RUNS },
    );
    // A busy machine draws fewer texts in its time, and tells how many.
    if (runs < RUNS) return;
    expect(accepted).toBeGreaterThan(runs / 50);
    // Each kind is met for certain in a long run only.
    const all = ['freeze', 'headroom', 'limits', 'restart', 'schedule'];
    if (runs >= 10_000) expect([...kinds].sort()).toEqual(all);
  });
});
