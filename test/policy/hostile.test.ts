import { describe, expect, it } from 'vitest';
import type { SelectorKeys } from '../../src/domain/policy/selector.ts';
import { whySetTooCostly } from '../../src/policy/limits.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { aFreeze, aSchedule, aWindow } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { messagesOf, valid } from './policy-text.ts';

const SIZE = 500 * 1024;
const fill = (text: string) => text.repeat(Math.floor(SIZE / text.length));
const DEEP = 'nested deeper than 24 levels';
const MANY = 'too many keys and values in one file; split it';

describe('a hostile text', () => {
  it.each([
    ['nested lists', fill('['), DEEP],
    ['nested mappings', fill('{'), DEEP],
    ['nested list items', fill('- '), DEEP],
    ['nested keys', fill('? '), DEEP],
    ['nesting by indentation', Array.from({ length: 700 }, (_, depth) => `${' '.repeat(depth)}- `).join('\n'), DEEP],
    ['a mapping of many keys', Array.from({ length: 40_000 }, (_, index) => `k${index}: 1`).join('\n'), MANY],
    ['a list of many commas', `[${fill(',')}`, MANY],
    ['comments without end', fill('#\n'), MANY],
    ['anchors', fill('&a '), MANY],
    [
      'a laugh of aliases',
      `a: &a [x]\n${'b: &b [*a,*a,*a,*a]\n'.repeat(20)}`,
      'YAML anchors are not supported; write the value out',
    ],
    [
      'a merge key',
      `${valid()}    <<: *base\n`,
      'YAML aliases are not supported; write the value out, or name a selector under "groups"',
    ],
    ['tags that construct', 'a: !!js/function "function () {}"', 'YAML tags are not supported; write a plain value'],
    [
      'the key __proto__',
      valid('owner', '__proto__: {}\nowner'),
      'unknown key "__proto__"; expected "version", "timezone", "owner", "sources", "calendars", "groups", "policies"',
    ],
    [
      'the kind constructor',
      valid('kind: schedule', 'kind: constructor'),
      'expected one of schedule, headroom, limits, restart, freeze, trial, budget, guard',
    ],
    [
      'a huge number',
      valid('1-4', '9'.repeat(5000)),
      'expected a size in CU: fixed such as 2, a range such as 1-4, or {min: 1, max: 4}',
    ],
    [
      'control characters',
      valid('1-4', '"\\u0000\\u001b[31m"'),
      'expected a size in CU: fixed such as 2, a range such as 1-4, or {min: 1, max: 4}',
    ],
    ['a line of half a megabyte', `version: "${fill('x')}"`, 'expected 1'],
  ])('of %s is refused and the reason named', (_name, text, message) => {
    expect(messagesOf(text).some((line) => line.endsWith(` ${message}`))).toBe(true);
  });

  it('with a million problems reports some of them', () => {
    const text = `version: 1\npolicies:\n${'  - 1\n'.repeat(4000)}`;
    expect(messagesOf(text)).toHaveLength(100);
  });

  it('of more calendars or days of one than mean something is refused', () => {
    const calendars = (count: number, dates: string) =>
      `version: 1\ncalendars:\n${Array.from({ length: count }, (_, index) => `  c${index}: { dates: [${dates}] }\n`).join('')}policies: []\n`;
    expect(messagesOf(calendars(101, '2026-01-01')).join()).toContain('more than 100 calendars');
    const decades = Array.from({ length: 9 }, (_, index) => `20${index}0-01-01/20${index}9-12-31`).join();
    expect(messagesOf(calendars(1, decades)).join()).toContain('more than 20000 days');
  });

  it('of too many policies is refused', () => {
    const policy = `  - { name: NAME, kind: schedule, select: { projects: [NAME] }, windows: [{ at: always, size: 1 }], otherwise: leave }\n`;
    const file = (path: string, count: number) => ({
      path,
      text: `version: 1\npolicies:\n${Array.from({ length: count }, (_, index) => policy.replaceAll('NAME', `${path}-${index}`)).join('')}`,
    });
    const result = parsePolicyFiles([file('a', 1700), file('b', 1700), file('c', 1601)]);
    expect(result.ok ? [] : result.problems.map(({ message }) => message)).toEqual([
      'more than 5000 policies in the set',
    ]);
    expect(parsePolicyFiles([file('a', 1700), file('b', 1700), file('c', 1600)]).ok).toBe(true);
  });

  it('of times that take too long to look through is refused, alone or together', () => {
    const turns = Array.from({ length: 60 }, (_, minute) => `{ cron: "${minute} * * * *", for: 1m }`).join();
    const policy = (name: string, ready = '') =>
      `  - { name: ${name}, kind: schedule, select: { computes: [${name}] }, otherwise: leave, windows: [${Array.from({ length: 16 }, () => `{ at: [${turns}], size: 1${ready} }`).join()}] }\n`;
    const head = 'version: 1\npolicies:\n';
    const files = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ path: `f${index}`, text: head + policy(`p${index}`) }));
    const problemsOf = (given: { path: string; text: string }[]) => {
      const result = parsePolicyFiles(given);
      return result.ok ? [] : result.problems.map(({ message }) => message);
    };
    expect(problemsOf([{ path: 'f', text: head + policy('one', ', ready: 5m') }])).toEqual([
      'so many times that follow each other so closely take too long to look through; write fewer, or fewer crons that fire often',
    ]);
    expect(problemsOf(files(8))).toEqual([]);
    expect(problemsOf(files(9))).toEqual([
      'the times of all policies of the set take too long to look through; write fewer, or fewer crons that fire often',
    ]);
  });

  it('of a thousand teams that write ordinary windows is not refused', () => {
    const windows = (index: number) =>
      [
        '{ at: Mon-Fri 08:00-18:00, except: [holidays], size: 1-4 }',
        `{ at: { cron: "${index % 60} ${index % 24} * * 1-5", for: 2h }, size: 2-4 }`,
        `{ at: { cron: "${index % 60} */${2 + (index % 5)} * * *", for: 20m }, suspend_after: 10m }`,
      ].join();
    const policies = Array.from(
      { length: 1000 },
      (_, index) =>
        `  - { name: p${index}, kind: schedule, select: { projects: [t${index}] }, otherwise: leave, windows: [${windows(index)}] }\n`,
    );
    const head = 'version: 1\ntimezone: UTC\ncalendars: { holidays: { country: DE } }\npolicies:\n';
    const files = [0, 500].map((from) => ({
      path: `f${from}`,
      text: `${head}${policies.slice(from, from + 500).join('')}`,
    }));
    expect(parsePolicyFiles(files).ok).toBe(true);
  });

  it('of more policies that may select one compute than can be decided in time is refused', () => {
    const TOO_LONG =
      'the policies that may select one and the same compute take too long to decide; write fewer of them, or select by names that begin or end differently';
    const select = aSelector;
    const many = (count: number, globs: (index: number) => Partial<SelectorKeys>) =>
      whySetTooCostly(Array.from({ length: count }, (_, index) => aSchedule({ select: select(globs(index)) })));
    const all: Partial<SelectorKeys> = { projects: ['*'] };
    expect(many(1000, () => all)).toBeUndefined();
    expect(many(1200, () => all)).toBe(TOO_LONG);
    expect(many(5000, (index) => ({ projects: [`team-${index}-*`, `t${index}`, '!*-old'] }))).toBeUndefined();
    expect(many(5000, (index) => ({ projects: [`*-team-${index}`] }))).toBeUndefined();
    expect(many(5000, (index) => ({ ...all, branches: [`branch-${index}`] }))).toBeUndefined();
    // Half may select a project by its id, and half by its name.
    expect(many(1200, (index) => ({ projects: [index % 2 === 0 ? 'a*' : 'b*'] }))).toBe(TOO_LONG);
    expect(many(1200, (index) => ({ computes: [index % 2 === 0 ? 'a*' : 'b*'] }))).toBeUndefined();
    expect(many(1200, (index) => ({ computes: [`${'a'.repeat(index % 50)}*`] }))).toBe(TOO_LONG);
    expect(many(1200, (index) => ({ computes: ['a'.repeat(1 + (index % 50))] }))).toBeUndefined();
    // Where the name of a branch can't be read all freezes may count.
    const freezes = Array.from({ length: 1200 }, (_, index) =>
      aFreeze({ select: select({ branches: [`branch-${index}`] }), at: [aWindow()] }),
    );
    expect(whySetTooCostly(freezes)).toBe(TOO_LONG);
    // For each window that leads, a window that is open is asked about.
    const leading = { at: [aWindow()], size: { minCu: 1, maxCu: 1 }, readyLeadMs: 60_000 };
    const wide = { at: Array.from({ length: 700 }, () => aWindow()), size: { minCu: 1, maxCu: 1 } };
    const leads = (count: number) => [
      aSchedule({ windows: [wide] }),
      ...Array.from({ length: count }, () => aSchedule({ windows: [leading] })),
    ];
    expect([0, 20].map((count) => whySetTooCostly(leads(count)))).toEqual([undefined, TOO_LONG]);
  });

  it('of more globs than can be matched with a compute in time is refused', () => {
    const why = (count: number, globOf: (index: number) => string) =>
      whySetTooCostly(
        Array.from({ length: count / 10 }, (_, place) => {
          const projects = Array.from({ length: 10 }, (_unused, index) => globOf(10 * place + index));
          return aSchedule({ select: aSelector({ projects: [`p${place}`, ...projects.map((glob) => `!${glob}`)] }) });
        }),
      );
    const TOO_MANY =
      'the globs of all selectors take too long to match with a compute; write fewer, with fewer wildcards and without "?"';
    expect([20_000, 50_000].map((count) => why(count, (index) => `web-${index}-*`))).toEqual([undefined, TOO_MANY]);
    expect([4000, 6000].map((count) => why(count, () => '*-pr-*'))).toEqual([undefined, TOO_MANY]);
    expect([10, 100].map((count) => why(count, () => `*${'a'.repeat(80)}?b`))).toEqual([undefined, TOO_MANY]);
    expect(why(10_000, (index) => `team-${index}-?`)).toBeUndefined();
  });

  it('of a selector that takes too long to match is refused where it stands, also one of a group', () => {
    const globs = (count: number) => `[${Array.from({ length: count }, (_, index) => `"*a*${index}"`).join()}]`;
    const problem = (place: string) =>
      `${place} its globs take too long to match; write fewer, with fewer wildcards and without "?"`;
    expect(messagesOf(valid('["web-*"]', globs(500)))).toEqual([]);
    expect(messagesOf(valid('["web-*"]', globs(501)))).toEqual([problem('7:15')]);
    const group = `groups:\n  web: { projects: ${globs(501)} }\npolicies:`;
    expect(messagesOf(valid('policies:', group))).toEqual([problem('5:10')]);
  });

  it('of more zones than are kept, or of trials that take decades, is refused', () => {
    const zones = Intl.supportedValuesOf('timeZone');
    const set = (count: number) =>
      zones.slice(0, count).map((zone) => aSchedule({ windows: [{ at: [aWindow({ zone })] }] }));
    expect(whySetTooCostly(set(100))).toBeUndefined();
    expect(whySetTooCostly(set(101))).toBe('more than 100 different time zones in the set');
    const trial = (until: string) =>
      `version: 1\npolicies:\n  - { name: t, kind: trial, select: { projects: [a] }, of: [x], control: 50%, from: 2026-01-05, until: ${until} }\n`;
    expect(messagesOf(trial('9999-01-04')).join()).toContain(
      'is more than 1830 days after from; write an earlier date',
    );
  });

  it('of more cron expressions, or combinations of calendars, than can be kept ready is refused', () => {
    const PER_POLICY = 10;
    const problemsOf = (calendars: string, windows: readonly string[]) => {
      const policies = Array.from({ length: Math.ceil(windows.length / PER_POLICY) }, (_, index) => {
        const some = windows.slice(PER_POLICY * index, PER_POLICY * (index + 1)).join();
        return `  - { name: p${index}, kind: schedule, select: { projects: [p${index}] }, otherwise: leave, windows: [${some}] }\n`;
      });
      const files = Array.from({ length: Math.ceil(policies.length / 200) }, (_, index) => ({
        path: `f${index}`,
        text: `version: 1\n${calendars}policies:\n${policies.slice(200 * index, 200 * (index + 1)).join('')}`,
      }));
      const result = parsePolicyFiles(files);
      return result.ok ? [] : result.problems.map(({ message }) => message);
    };
    const cronOf = (index: number) =>
      `${index % 60} ${Math.floor(index / 60) % 24} ${1 + Math.floor(index / 1440)} * *`;
    const crons = (policies: number) =>
      Array.from({ length: policies }, (_, policy) =>
        aSchedule({
          select: aSelector({ projects: [`p${policy}`] }),
          windows: Array.from({ length: 10 }, (_unused, index) => ({
            at: [{ kind: 'cron' as const, cron: cronOf(10 * policy + index), forMs: 60_000, zone: 'UTC' }],
          })),
        }),
      );
    expect(whySetTooCostly(crons(1000))).toBeUndefined();
    expect(whySetTooCostly(crons(1001))).toBe('more than 10000 different cron expressions in the set');

    const decades = ['2000', '2010', '2020', '2030'].map((year) => `${year}-01-01/${Number(year) + 9}-12-31`).join();
    const names = Array.from({ length: 12 }, (_, index) => `c${index}`);
    const calendars = `calendars:\n${names.map((name) => `  ${name}: { dates: [${decades}] }\n`).join('')}`;
    const pairs = names.flatMap((one) =>
      names.map((other) => `{ at: Mon 08:00-09:00, size: 1, only: [${one}], except: [${other}] }`),
    );
    expect(problemsOf(calendars, [...pairs.slice(0, 30), ...pairs.slice(0, 30)])).toEqual([]);
    expect(problemsOf(calendars, pairs)).toEqual([
      'windows name so many combinations of calendars that these have more than 1000000 days',
    ]);
  });
});
