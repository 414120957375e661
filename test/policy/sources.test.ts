import { describe, expect, it } from 'vitest';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import { type KnownSources, NO_SOURCES } from '../../src/policy/sources.ts';

const room = (source: string, rest = '') =>
  `policies: [{ name: room, kind: headroom, select: { projects: [a] }, connections: ${source}, target: 70%, max_size: 8${rest} }]\n`;
const file = (sources: string, policies = 'policies: []\n') => `version: 1\nsources: { ${sources} }\n${policies}`;
const PROMETHEUS = '{ from: prometheus, url: "https://metrics.example:9090/base", query: "x" }';

function read(texts: Record<string, string>, knownSources: KnownSources = NO_SOURCES) {
  const files = Object.entries(texts).map(([path, text]) => ({ path, text }));
  const result = parsePolicyFiles(files, { knownSources });
  const lines = (found: readonly { file: string; message: string }[]) =>
    found.map(({ excerpt: _excerpt, ...problem }: { file: string; message: string; excerpt?: unknown }) =>
      formatProblem(problem),
    );
  return result.ok
    ? { set: result.set, problems: [], warnings: lines(result.warnings) }
    : { problems: lines(result.problems), warnings: [] };
}

describe('sources of connection counts', () => {
  it('belong to the set, whichever file defines them', () => {
    const { set, problems } = read({
      'a.yaml': `version: 1\n${room('counts')}`,
      'b.yaml': file(
        'counts: { from: postgres, dsn_env: EBB_DSN_A, every: 2m }, unused: { from: postgres, dsn_file: x }',
      ),
    });
    expect(problems).toEqual([]);
    expect(set?.sources.get('counts')).toEqual({
      ...{ name: 'counts', file: 'b.yaml', everyMs: 120_000, from: 'postgres' },
      dsn: { from: 'variable', name: 'EBB_DSN_A' },
    });
    expect(set?.sources.get('unused')).toMatchObject({ everyMs: 60_000, dsn: { from: 'file', path: 'x' } });
  });

  it('change the hash of the set by what they mean, not by where they stand', () => {
    const hashOf = (source: string, path = 'a.yaml') => read({ [path]: file(`counts: ${source}`) }).set?.hash;
    expect(hashOf(PROMETHEUS)).toBe(hashOf(PROMETHEUS.replace(' from', ' every: 60s, from'), 'b.yaml'));
    expect(hashOf(PROMETHEUS)).not.toBe(hashOf(PROMETHEUS.replace('"x"', '"y"')));
  });

  it('must be there for every policy that names one', () => {
    expect(read({ 'a.yaml': file('counts: { from: postgres, dsn_env: EBB_DSN_A }', room('cuonts')) }).problems).toEqual(
      ['a.yaml:3:82: no source is named "cuonts"; did you mean "counts"?'],
    );
    expect(read({ 'a.yaml': `version: 1\n${room('counts', ', enabled: false')}` }).problems).toEqual([
      'a.yaml:2:82: no source is named "counts"; there are no "sources"',
    ]);
  });

  it('are not asked for, nor receivers, where the settings that may have them could not be read', () => {
    const text = `version: 1\n${room('counts', ', notify: [team]')}`;
    const problems = (areSettingsUnread: boolean) => {
      const parsed = parsePolicyFiles([{ path: 'a.yaml', text }], { areSettingsUnread });
      return parsed.ok ? 0 : parsed.problems.length;
    };
    expect([problems(true), problems(false)]).toEqual([0, 2]);
  });

  it('are checked beside other problems, unless a file can define no source that is readable', () => {
    const misspelt = file('counts: { from: postgres, dsn_env: EBB_DSN_A }', room('cuonts', ', act: aply'));
    expect(read({ 'a.yaml': misspelt }).problems).toEqual([
      'a.yaml:3:82: no source is named "cuonts"; did you mean "counts"?',
      expect.stringContaining('expected apply or advise'),
    ]);
    const unread = read({
      'a.yaml': misspelt,
      'b.yaml': 'version: 1\nsources: { cuonts: 1 }\npolicies: []\n',
    }).problems;
    expect(unread.join()).not.toContain('no source');
  });

  it('have each name once, over all files and the settings', () => {
    const postgres = file('counts: { from: postgres, dsn_env: EBB_DSN_A }');
    expect(read({ 'a.yaml': postgres, 'b.yaml': postgres }).problems).toEqual([
      'b.yaml:2:12: the source "counts" is already defined in a.yaml',
    ]);
    const source = {
      name: 'counts',
      file: 'ebb.yaml',
      everyMs: 1000,
      from: 'prometheus',
      url: 'http://p',
      query: 'q',
    } as const;
    const known = { sources: new Map([['counts', source]]), allowedOrigins: [] };
    expect(read({ 'a.yaml': postgres }, known).problems).toEqual([
      'a.yaml:2:12: the source "counts" is already defined in ebb.yaml',
    ]);
    expect(read({ 'a.yaml': `version: 1\n${room('counts')}` }, known)).toMatchObject({ problems: [], warnings: [] });
  });

  it('reach only origins that the settings allow', () => {
    const text = file(`counts: ${PROMETHEUS}`, room('counts'));
    const refused =
      'https://metrics.example:9090 is not allowed: add it to sources_allowed_origins in ebb.yaml, or define the source there';
    expect(read({ 'a.yaml': text }).warnings).toEqual([`a.yaml:3:82: this source is never asked: ${refused}`]);
    expect(read({ 'a.yaml': text }).set?.sources.get('counts')?.refused).toBe(refused);
    const allowed = read({ 'a.yaml': text }, { ...NO_SOURCES, allowedOrigins: ['https://metrics.example:9090'] });
    expect([allowed.warnings, allowed.set?.sources.get('counts')?.refused]).toEqual([[], undefined]);
    expect(
      read({ 'a.yaml': text }, { ...NO_SOURCES, allowedOrigins: ['https://metrics.example'] }).warnings,
    ).toHaveLength(1);
  });

  it.each([
    ['postgres://ebb@$host/postgres', undefined],
    ['postgres://$host:5433/postgres?sslmode=require', undefined],
    ['postgres://ebb@db.example/postgres', 'a dsn names $host'],
    ['postgres://ebb@$host.evil.example/postgres', 'a dsn names $host'],
    ['postgres://ebb@$host,evil.example/postgres', 'a dsn names $host'],
  ])('send passwords only where the control API says: %s', (dsn, refused) => {
    const { set } = read({ 'a.yaml': file(`counts: { from: postgres, dsn: "${dsn}" }`) });
    const found = set?.sources.get('counts')?.refused;
    if (refused === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(refused);
  });

  it.each([
    ['token_env: HOME', 'expected the name of a variable: EBB_PROMETHEUS_TOKEN'],
    ['token_env: EBB_TOKEN', 'expected the name of a variable: EBB_PROMETHEUS_TOKEN'],
    ['token_env: EBB_PROMETHEUS_TOKEN, token_file: t', 'expected token_env or token_file, not both'],
    ['url: "http://ann:secret@p:9090"', 'expected a URL without user and password'],
  ])('name no other secret, and hold none: %s', (rest, message) => {
    const url = rest.startsWith('url') ? '' : 'url: "http://p:9090", ';
    const { problems } = read({ 'a.yaml': file(`counts: { from: prometheus, ${url}query: x, ${rest} }`) });
    expect(problems).toEqual([expect.stringContaining(message)]);
    expect(problems.join()).not.toContain('secret@');
  });
});
