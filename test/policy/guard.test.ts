import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { formatProblem } from '../../src/policy/problem.ts';

const KEYS = {
  ...{ name: 'latency', kind: 'guard', select: '{ projects: ["api-*"] }', source: 'main' },
  ...{ query: '\'p95{job="api"}\'', match: '{ service: "{project_name}" }', bad_when: '"> 0.4"' },
};
const SOURCES = [
  '  main: { from: prometheus, url: "http://127.0.0.1:9090", every: 30s }',
  '  sql: { from: postgres, dsn_env: EBB_DSN_WATCH }',
].join('\n');
const parse = (changes: Record<string, string | undefined>, others = '') => {
  const given = Object.entries({ ...KEYS, ...changes }).filter(([, value]) => value !== undefined);
  const guard = given.map(([key, value]) => `${key}: ${value}`).join(', ');
  const text = `version: 1\nsources:\n${SOURCES}\npolicies:\n  - { ${guard} }\n${others}`;
  return parsePolicyFiles([{ path: 'guards.yaml', text }]);
};
const problems = (changes: Record<string, string | undefined>, others?: string) => {
  const parsed = parse(changes, others);
  return parsed.ok ? [] : parsed.problems.map(({ message }) => message);
};

describe('the text of a guard', () => {
  it('is a query with a limit, or an alert', () => {
    const terms = (changes: Record<string, string | undefined>) => {
      const parsed = parse(changes);
      return parsed.ok ? parsed.set.policies[0] : parsed.problems;
    };
    expect(terms({})).toMatchObject({
      ...{ query: 'p95{job="api"}', isAlert: false, noData: 'unknown', match: { service: '{project_name}' } },
      badWhen: { side: 'above', limit: 0.4, relative: false },
    });
    expect(terms({ bad_when: '"< 0.5x before"', no_data: 'healthy' })).toMatchObject({
      ...{ badWhen: { side: 'below', limit: 0.5, relative: true }, noData: 'healthy' },
    });
    expect(terms({ query: undefined, bad_when: undefined, alert: 'ApiSlow' })).toMatchObject({
      ...{ query: 'ALERTS{alertname="ApiSlow",alertstate="firing"}', isAlert: true, noData: 'healthy' },
      badWhen: { side: 'above', limit: 0, relative: false },
    });
  });

  it.each<[string, Record<string, string | undefined>, string]>([
    ['neither query nor alert', { query: undefined }, 'expected either query or alert'],
    ['both', { alert: 'ApiSlow' }, 'expected either query or alert'],
    ['an alert with a limit', { query: undefined, alert: 'A' }, 'an alert is bad while it fires; leave out bad_when'],
    [
      'no limit',
      { bad_when: undefined },
      'missing key "bad_when"; expected a limit such as "> 0.4", or "> 1.5x before"',
    ],
    ['a limit that is none', { bad_when: 'high' }, 'expected a limit such as "> 0.4", or "> 1.5x before"'],
    [
      'a factor that the usual value has',
      { bad_when: '"> 1x before"' },
      'the usual value itself would be bad; write a factor above 1, such as "> 1.5x before"',
    ],
    ['a placeholder that is none', { match: '{ service: "{project}" }' }, '{project} is not known'],
    [
      'a label that the query loses',
      { query: '"sum by (le, servce) (x)"' },
      'the result of the query has no label "service": add it to "by (…)"',
    ],
    ['half a placeholder', { match: '{ service: "{project_name" }' }, 'expected a placeholder between { and }'],
    [
      'a label that only a matcher of the query names',
      { query: '\'sum by (le) (x{service="a"})\'' },
      'the result of the query has no label "service": add it to "by (…)"',
    ],
    [
      'a label that the query removes',
      { query: '"sum without (instance, service) (x)"' },
      'the result of the query has no label "service": remove it from "without (…)"',
    ],
    [
      'a sum over everything',
      { query: '"sum(rate(x[2m]))"' },
      'the result of the query has no label "service": add it to "by (…)"',
    ],
    [
      'a window of less than two values',
      { query: '"rate(x[59s])"' },
      'the query has a window of 59s, but "main" has new values every 30s, and a rate needs two: use [1m] or longer, or write every: at the source',
    ],
    ['a window in milliseconds', { query: '"rate(x[500ms])"' }, 'use [1m] or longer'],
    ['a source that is none', { source: 'mian' }, 'no source is named "mian"; did you mean "main"?'],
    ['a source of SQL', { source: 'sql' }, '"sql" is from postgres; a guard asks a source from prometheus'],
  ])('is refused with %s', (_what, changes, message) => {
    expect(problems(changes)[0]).toContain(message);
  });

  it.each([
    ['as long as two values', '"rate(x[1m])"'],
    ['of several units', '"rate(x[1m30s])"'],
    ['only in a text', '\'x{path="[1s]"}\''],
    ['around a subquery', '"max_over_time(rate(x[1m])[30m:10s])"'],
    ['with a label from label_replace', '\'label_replace(sum by (job) (x), "service", "$1", "job", "(.*)")\''],
    ['of a function that needs one value', '"max_over_time(x[40s])"'],
    ['with a label of the left side of a set operator', '"x unless on (job) sum by (job) (y)"'],
    ['with a label that remains beside another operand', '"x and sum(y)"'],
    ['with a label of the many side', '"sum(a) / on () group_left (service) b"'],
  ])('takes a window %s', (_what, query) => {
    expect(problems({ query })).toEqual([]);
  });

  it('points at the line', () => {
    const parsed = parse({ query: '"rate(x[20s])"' });
    expect(parsed.ok ? [] : parsed.problems).toMatchObject([{ file: 'guards.yaml', line: 6 }]);
    expect(parsed.ok ? '' : parsed.problems.map((one) => formatProblem(one, { color: false })).join()).toContain(
      'query: "rate(x[20s])"',
    );
  });

  it('says how long it watches, and what it does about harm; by itself it only notifies', () => {
    const terms = (changes: Record<string, string>) => {
      const parsed = parse(changes);
      return parsed.ok ? parsed.set.policies[0] : parsed.problems;
    };
    const minutes = { forMs: 180_000, watchMs: 1_800_000, settleMs: 120_000 };
    expect(terms({})).toMatchObject({ ...minutes, remedy: 'notify' });
    expect(terms({})).not.toHaveProperty('retryMs');
    // As pairs: an object with a property "then" could be awaited.
    const written = ['for 5m', 'watch 1h', 'settle 0s', 'then undo', 'retry 7d'].map((one) => one.split(' '));
    const undo = { forMs: 300_000, watchMs: 3_600_000, settleMs: 0, remedy: 'undo', retryMs: 604_800_000 };
    expect(terms(Object.fromEntries(written))).toMatchObject(undo);
    expect(problems({ watch: '4m' })).toEqual([
      'expected at least settle and for together, or no harm could be found: write 5m or more',
    ]);
    expect(problems({ retry: '7d' })).toEqual(['nothing is taken back with then: notify']);
  });

  it('shares its source with no headroom, unless the source has a query', () => {
    const headroom =
      '  - { name: room, kind: headroom, select: { projects: [a] }, connections: main, target: 70%, max_size: 8 }\n';
    expect(problems({}, headroom)).toEqual([
      '"main" has no query, so it counts no connections; add a query to the source',
    ]);
  });
});
