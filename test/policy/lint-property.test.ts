import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ScheduleWindow } from '../../src/domain/policy/schedule-window.ts';
import { compileGlob, compileSelector } from '../../src/domain/policy/select.ts';
import type { TimeSpec, Weekday } from '../../src/domain/time/time-spec.ts';
import { isOpenAt } from '../../src/domain/time/windows.ts';
import { globCovers, globsMeet } from '../../src/policy/lint/glob-overlap.ts';
import { lintPolicySet } from '../../src/policy/lint/lint.ts';
import { overlapOfSelectors } from '../../src/policy/lint/overlap.ts';
import { LINTS } from '../../src/policy/lint/rule.ts';
import { createStepLimit } from '../../src/policy/lint/step-limit.ts';
import { aCompute, aSchedule, at } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const HALF_HOUR_MS = 1_800_000;
const DAY_MS = 86_400_000;
/** How long the slow way looks. */
const DAYS = 10;
/** A day before the clocks of Berlin go back. */
const NOW = at('2026-10-24T00:00:00Z');
const selector = (...projects: string[]) => aSelector({ projects });

const some = <T>(...values: T[]) => fc.constantFrom(...values);
const zone = some('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata');
const calendar = { name: 'off', days: [20_751, 20_753, 20_760] };
const dates = fc.option(some({ except: [calendar] }, { only: [calendar] }), { nil: undefined, freq: 5 });
const halfHour = fc.nat({ max: 47 }).map((half) => half * 30);
const weekly = fc
  .record({
    days: fc.uniqueArray(some<Weekday>(1, 2, 3, 4, 5, 6, 7), { minLength: 1 }),
    start: halfHour,
    end: halfHour,
    zone,
    dates,
  })
  .map(({ days, start, end, dates: filter, ...rest }): TimeSpec => {
    const endDayOffset = end <= start ? 1 : 0;
    return {
      kind: 'weekly',
      days: days.sort(),
      startMinute: start,
      endMinute: end,
      endDayOffset,
      ...rest,
      ...(filter && { dates: filter }),
    };
  });
const interval = fc.tuple(fc.nat({ max: 1200 }), fc.integer({ min: 1, max: 100 })).map(
  ([from, length]): TimeSpec => ({
    kind: 'interval',
    startMs: NOW + (from - 200) * HALF_HOUR_MS,
    endMs: NOW + (from - 200 + length) * HALF_HOUR_MS,
  }),
);
const cron = fc
  .record({ cron: some('30 2 * * *', '0 */6 * * 1-5', '0 4 1 * *', '*/30 8-9 * * 2'), hours: some(0.5, 2, 24), zone })
  .map(
    ({ cron: text, hours, zone: place }): TimeSpec => ({
      kind: 'cron',
      cron: text,
      forMs: hours * 3_600_000,
      zone: place,
    }),
  );
const time = fc.oneof(
  { weight: 5, arbitrary: weekly },
  { weight: 1, arbitrary: interval },
  { weight: 1, arbitrary: cron },
);
const size = some({ minCu: 1, maxCu: 1 }, { minCu: 1, maxCu: 4 }, { minCu: 20, maxCu: 20 });
const timeout = some(-1, 60, 300);
const values = fc.oneof(
  fc.record({ size }),
  fc.record({ size, suspendTimeoutSeconds: timeout }),
  fc.record({ suspendTimeoutSeconds: timeout }),
);
const windowOf = (times: fc.Arbitrary<TimeSpec>) =>
  fc
    .tuple(fc.array(times, { minLength: 1, maxLength: 2 }), values)
    .map(([specs, wanted]): ScheduleWindow => ({ at: specs, ...wanted }));
const windows = fc.array(windowOf(time), { minLength: 1, maxLength: 3 });

describe('a contradiction', () => {
  it('is found exactly where a search at every half hour finds one, and at the same instant', {
    timeout: 60_000,
  }, () => {
    let found = 0;
    fc.assert(
      fc.property(windows, windows, (one, other) => {
        const policies = [aSchedule({ name: 'a', windows: one }), aSchedule({ name: 'b', windows: other })];
        const instants = lintPolicySet({ policies, nowMs: NOW })
          .filter(({ code }) => code === 'contradiction')
          .map(({ message }) => (message.includes(', now:') ? NOW : at(/first at (\S+Z)/.exec(message)?.[1] ?? '')))
          .filter((ms) => ms < NOW + DAYS * DAY_MS);
        const expected = (['size', 'suspendTimeoutSeconds'] as const).flatMap((field) =>
          firstByHalfHours(one, other, field),
        );
        expect(instants.toSorted()).toEqual(expected.toSorted());
        found += expected.length;
      }),
      { numRuns: 60 },
    );
    expect(found).toBeGreaterThan(10);
  });
});

/** The slow, obvious way: everything in the generated windows begins and ends on a half hour. */
function firstByHalfHours(
  one: ScheduleWindow[],
  other: ScheduleWindow[],
  field: 'size' | 'suspendTimeoutSeconds',
): number[] {
  for (let ms = NOW; ms < NOW + DAYS * DAY_MS; ms += HALF_HOUR_MS) {
    const a = effective(one, field, ms);
    const b = effective(other, field, ms);
    if (a && b && a.isAbsolute === b.isAbsolute && a.wish !== b.wish) return [ms];
  }
  return [];
}

function effective(all: ScheduleWindow[], field: 'size' | 'suspendTimeoutSeconds', ms: number) {
  const open = all
    .filter((window) => window[field] !== undefined && window.at.some((spec) => isOpenAt(spec, ms)))
    .map((window) => ({
      wish: JSON.stringify(window[field]),
      isAbsolute: window.at.some((spec) => spec.kind === 'interval' && isOpenAt(spec, ms)),
    }));
  return open.findLast(({ isAbsolute }) => isAbsolute) ?? open.at(-1);
}

describe('lint of any set', () => {
  const dense = some<TimeSpec>(
    { kind: 'cron', cron: '* 8-17 * * *', forMs: 60_000, zone: 'UTC' },
    { kind: 'cron', cron: '*/2 * * * *', forMs: 60_000, zone: 'Europe/Berlin' },
    { kind: 'cron', cron: '1-59/2 * * * *', forMs: 60_000, zone: 'America/New_York' },
    { kind: 'cron-switch', startCron: '* * * * *', endCron: '0 * * * *', zone: 'UTC' },
    { kind: 'cron-switch', startCron: '0 8 * * *', endCron: '0 18 * * *', zone: 'Africa/Cairo' },
    { kind: 'always' },
  );
  const anyTime = fc.oneof(dense, time);
  const glob = fc.string({ unit: some('a', 'b', '*', '?'), minLength: 1, maxLength: 5 });
  const globs = fc.array(
    fc.tuple(some('', '', '!'), glob).map((parts) => parts.join('')),
    { minLength: 1, maxLength: 4 },
  );
  const select = fc.record({ projects: globs, branches: globs, accounts: globs }, { requiredKeys: [] }).map(aSelector);
  const base = fc.record({
    select,
    priority: some(0, 0, 1),
    mode: some<'enforce' | 'observe'>('enforce', 'enforce', 'observe'),
  });
  const rest = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('schedule'),
        windows: fc.array(windowOf(anyTime), { minLength: 1, maxLength: 3 }),
        otherwise: fc.oneof(some('leave', 'baseline'), values),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('limits'),
        size: fc.record({ minCu: some(1, 18), maxCu: some(2, 20) }, { requiredKeys: [] }),
        hard: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('headroom'),
        connections: fc.constant('s'),
        targetShare: fc.constant(0.7),
        maxCu: some(1, 8, 20),
        mayRaiseMin: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('freeze'),
        at: fc.array(anyTime, { minLength: 1, maxLength: 2 }),
        allowRaise: fc.boolean(),
      }),
    },
  );
  const set = fc
    .array(fc.tuple(base, rest), { minLength: 1, maxLength: 12 })
    .map((all) =>
      all.map(
        ([shared, own], index) => ({ ...shared, ...own, name: `p${index}`, file: 'f.yaml' }) as unknown as Policy,
      ),
    );
  const fleet = fc.option(
    fc.array(
      fc
        .tuple(some('a', 'ab', 'bb'), some('a', 'b'))
        .map(([projectName, account]) => aCompute({ projectName, account, branchName: 'ab' })),
      { maxLength: 3 },
    ),
    { nil: undefined },
  );

  it('ends, whatever is in it, and says only what is documented', { timeout: 120_000 }, () => {
    const plans = new Map([['a', 'free'] as const, ['b', 'launch'] as const]);
    fc.assert(
      fc.property(set, fleet, (policies, computes) => {
        const input = { policies, nowMs: NOW, plans, steps: 3000, ...(computes && { fleet: computes }) };
        const findings = lintPolicySet(input);
        const names = new Set(policies.map(({ name }) => name));
        for (const { code, severity, policy, message } of findings) {
          expect(LINTS[code]).toContain(severity);
          expect(names).toContain(policy);
          expect(message).toMatch(/\S/);
        }
        expect(lintPolicySet(input)).toEqual(findings);
      }),
      { numRuns: 150 },
    );
  });

  it('finds the same again, wherever its steps run out', () => {
    for (let steps = 0; steps < 0.1; steps += 0.001) {
      const [a, b] = [aSchedule({ select: selector('b*', 'aaab', '!a*b') }), aSchedule({ select: selector('b*') })];
      const meet = () => overlapOfSelectors([a, b], createStepLimit(steps)).mayMeet(a, b);
      expect(meet()).toBe(meet());
    }
  });

  it('finds of two selectors that they meet, if a compute matches both', () => {
    const name = some('a', 'b', 'ab', 'ba', 'aab', 'bbbb');
    const compute = fc.tuple(name, name, name).map(([project, branch, account]) =>
      // Ids and names are alike here: the project is known by one text.
      aCompute({ projectId: project, projectName: project, branchId: branch, branchName: branch, account }),
    );
    fc.assert(
      fc.property(select, select, fc.array(compute, { maxLength: 6 }), (one, other, computes) => {
        const matches = [compileSelector(one), compileSelector(other)];
        const isShared = computes.some((candidate) => matches.every((match) => match(candidate, NOW) === 'yes'));
        const policies = [one, other].map((selector) => aSchedule({ select: selector }));
        const [a, b] = policies;
        const overlap = overlapOfSelectors(policies, createStepLimit(1000));
        if (isShared && a && b) expect([overlap.mayMeet(a, b), overlap.mayMeet(b, a)]).toEqual([true, true]);
      }),
    );
  });

  it('knows exactly which globs meet, and never takes one to cover what it does not', () => {
    const texts = textsUpTo(6);
    const glob = fc.string({ unit: some('a', 'b', '*', '?'), minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(glob, glob, (a, b) => {
        const [isA, isB] = [compileGlob(a), compileGlob(b)];
        expect(globsMeet(a, b)).toBe(texts.some((text) => isA(text) && isB(text)));
        if (globCovers(a, b)) expect(texts.filter((text) => isB(text) && !isA(text))).toEqual([]);
      }),
      { numRuns: 300 },
    );
    expect([globCovers('web-*', 'web-shop-*'), globCovers('*', 'a?'), globCovers('web-?', 'web-*')]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

/** Every text of up to so many letters, of which two are in the globs and one is not. */
function textsUpTo(length: number): string[] {
  if (length === 0) return [''];
  const shorter = textsUpTo(length - 1);
  return [...new Set(['', ...shorter.flatMap((text) => ['a', 'b', 'c'].map((letter) => text + letter))])];
}
