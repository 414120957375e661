import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import type { Team } from '../../src/policy/teams.ts';
import { readSettings } from '../../src/settings/settings.ts';

let cwd = '';

beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'ebb-teams-'));
});

afterEach(async () => {
  await rm(cwd, { recursive: true });
});

const TEAMS: readonly Team[] = [
  {
    name: 'team-web',
    policies: ['policies/web/**'],
    projects: ['web-*', '!web-secret'],
    kinds: ['schedule', 'headroom', 'trial'],
    maxPriority: 50,
  },
  { name: 'team-api', policies: ['policies/api'], projects: ['api-*'] },
];

const schedule = (select: string, { name = 'office', more = '' } = {}) =>
  `  - { name: ${name}, kind: schedule, select: ${select}, otherwise: { size: 1 }, windows: [{ at: "Mon-Fri 08:00-18:00", size: 2 }]${more} }\n`;
const file = (policies: string, head = '') => `version: 1\n${head}policies:\n${policies}`;
const API = file(schedule('{ projects: ["api-*"] }'));

async function load(files: Record<string, string>, teams = TEAMS) {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  }
  return loadPolicySet({ paths: ['policies'], cwd, settings: { ...DEFAULT_POLICY_SETTINGS, teams } });
}

/** The problems of a file of team-web, each as its place and message. */
async function problemsOf(text: string): Promise<string[]> {
  const loaded = await load({ 'policies/web/a.yaml': text, 'policies/api/a.yaml': API });
  return loaded.ok ? [] : loaded.problems.map(({ excerpt: _excerpt, ...problem }) => formatProblem(problem));
}

describe('the files of a team', () => {
  it('have policies whose names begin with the team, which owns them, and that select nothing outside its projects', async () => {
    const loaded = await load({
      'policies/web/a.yaml': file(schedule('{ projects: ["web-eu-*", "!web-secret"] }')),
      'policies/api/a.yaml': API,
      'policies/platform.yaml': file(schedule('{ projects: ["*"] }'), 'owner: platform\n'),
    });
    expect(loaded.ok && loaded.set.policies.map(({ name, owner, team }) => [name, owner, team])).toEqual([
      ['team-api/office', 'team-api', 'team-api'],
      ['office', 'platform', undefined],
      ['team-web/office', 'team-web', 'team-web'],
    ]);
    expect(loaded.ok && loaded.set.policies.map(({ select }) => select.scope)).toEqual([
      ['api-*'],
      undefined,
      ['web-*', '!web-secret'],
    ]);
  });

  const SCOPE = 'the projects web-*, !web-secret';
  it.each([
    ['{ projects: ["*"] }', `58: "*" reaches beyond ${SCOPE}; select only projects within these`],
    ['{ projects: ["web-eu", "api-*"] }', `68: "api-*" reaches beyond ${SCOPE}; select only projects within these`],
    ['{ projects: ["web?*"] }', `58: "web?*" reaches beyond ${SCOPE}; select only projects within these`],
    ['{ projects: ["web-*"] }', `58: "web-*" reaches beyond ${SCOPE}; add "!web-secret" to select.projects`],
    [
      '{ projects: ["web-s*", "!web-x"] }',
      `58: "web-s*" reaches beyond ${SCOPE}; add "!web-secret" to select.projects`,
    ],
    ['{ branches: [main] }', '47: names no projects; add projects within web-*, !web-secret'],
  ])('may not select %s', async (select, problem) => {
    const problems = await problemsOf(file(schedule(select)));
    expect(problems).toEqual([`policies/web/a.yaml:3:${problem} (team team-web of ebb.yaml)`]);
  });

  it('are held to the selectors that they name as groups', async () => {
    const problems = await problemsOf(file(schedule('all'), 'groups: { all: { projects: ["*"] } }\n'));
    expect(problems).toEqual([expect.stringMatching(/^policies\/web\/a\.yaml:4:45: "\*" reaches beyond/)]);
  });

  it.each([
    [
      'a size that does not exist',
      schedule('{ projects: ["*"] }').replace('size: 1', 'size: 99'),
      ['99 CU is not', 'reaches'],
    ],
    [
      'an unknown key',
      schedule('{ projects: ["*"] }', { more: ', colour: red' }),
      ['"*" reaches', 'unknown key "colour"'],
    ],
    [
      'an unknown key of the selector',
      schedule('{ projects: ["*"], stage: [x] }'),
      ['"*" reaches', 'unknown key "stage"'],
    ],
    [
      'a high priority',
      schedule('{ projects: ["x"] }', { more: ', priority: 51, mode: off' }),
      ['"x" reaches', 'is above', 'expected'],
    ],
    [
      'a misspelt selector',
      schedule('{ projects: ["x"] }').replace('select', 'selct'),
      ['missing key "select"', 'unknown key "selct"'],
    ],
    ['an unknown group', schedule('everything'), ['no group is named']],
    ['a misspelt projects', schedule('{ project: ["x"] }'), ['unknown key "project"']],
    [
      'a disabled one',
      schedule('{ projects: ["*"] }', { more: ', enabled: false, colour: red' }),
      ['unknown key "colour"'],
    ],
  ])('that reach too far are told beside other problems: %s', async (_, policy, expected) => {
    const problems = await problemsOf(file(policy));
    expect(problems).toHaveLength(expected.length);
    for (const part of expected) expect(problems).toContainEqual(expect.stringContaining(part));
  });

  it.each(['{ projects: ["web-eu-*"] }', '{ projects: ["web-secrets"] }', '{ projects: ["web-*", "!web-secret"] }'])(
    'may select %s',
    async (select) => {
      expect(await problemsOf(file(schedule(select)))).toEqual([]);
    },
  );

  it('may use only the kinds and priorities of the team, and say nothing of another owner', async () => {
    const freeze = '  - { name: stop, kind: freeze, select: { projects: ["web-eu"] }, at: always }\n';
    const policies = `${freeze}${schedule('{ projects: ["web-eu"] }', { more: ', priority: 51' })}`;
    expect(await problemsOf(file(policies, 'owner: team-api\n'))).toEqual([
      'policies/web/a.yaml:2:8: this file belongs to team team-web of ebb.yaml; leave out owner',
      'policies/web/a.yaml:4:25: freeze is not allowed here; use schedule, headroom, trial (team team-web of ebb.yaml)',
      expect.stringMatching(/^policies\/web\/a\.yaml:5:\d+: is above 50, the highest allowed here \(team team-web/),
    ]);
  });

  it('may name their sources as others do, and use those of files of no team, but none of another team', async () => {
    const source = (every: string) => `sources: { counts: { from: postgres, dsn_env: EBB_DSN_A, every: ${every} } }\n`;
    const room = (project: string, connections: string) =>
      `  - { name: room, kind: headroom, select: { projects: ["${project}"] }, connections: ${connections}, target: 70%, max_size: 8 }\n`;
    const files = {
      'policies/platform.yaml': file(schedule('{ projects: ["x"] }'), source('1m').replace('counts', 'common')),
      'policies/web/a.yaml': file(room('web-eu', 'counts'), source('2m')),
      'policies/api/a.yaml': file(
        `${room('api-eu', 'counts')}${room('api-x', 'common').replace('room', 'more')}`,
        source('3m'),
      ),
    };
    const loaded = await load(files);
    const used = loaded.ok
      ? loaded.set.policies.flatMap((one) => (one.kind === 'headroom' ? loaded.set.sources.get(one.connections) : []))
      : [];
    expect(used.map((one) => one?.everyMs)).toEqual([180_000, 60_000, 120_000]);
    const without = await load({ ...files, 'policies/api/a.yaml': file(room('api-eu', 'counts')) });
    expect(without).toMatchObject({ ok: false, problems: [{ team: 'team-api', file: 'policies/api/a.yaml' }] });
  });

  it('have trials only of their own policies', async () => {
    const trial = (of: string) =>
      `  - { name: proof, kind: trial, select: { projects: ["web-eu"] }, of: [${of}], control: 50%, from: "2027-01-11", until: "2027-01-25" }\n`;
    expect(await problemsOf(file(`${schedule('{ projects: ["web-eu"] }')}${trial('office')}`))).toEqual([]);
    const other = await problemsOf(
      file(`${schedule('{ projects: ["web-eu"] }', { name: 'night' })}${trial('office')}`),
    );
    expect(other).toEqual([expect.stringContaining('no policy is named "team-web/office"')]);
  });

  it('may be withdrawn by a trial of no team, by their full names', async () => {
    const trial = (of: string) =>
      file(
        `  - { name: proof, kind: trial, select: { projects: ["*"] }, of: [${of}], control: 50%, from: "2027-01-11", until: "2027-01-25" }\n`,
      );
    const web = file(schedule('{ projects: ["web-eu"] }'));
    const files = { 'policies/web/a.yaml': web, 'policies/api/a.yaml': API };
    const loaded = await load({ ...files, 'policies/proof.yaml': trial('team-web/office, team-api/office') });
    const trials = loaded.ok ? loaded.set.policies.filter(({ kind }) => kind === 'trial') : [];
    expect(trials).toMatchObject([{ name: 'proof', of: ['team-web/office', 'team-api/office'] }]);
    expect(loaded.ok && loaded.warnings).toEqual([]);
    // What a team does with its files must not break those of all.
    const wrong = await load({ ...files, 'policies/proof.yaml': trial('team-web/offic') });
    expect(wrong.ok && wrong.warnings.map(({ message }) => message)).toEqual([
      'no policy is named "team-web/offic"; did you mean "team-web/office"?',
    ]);
    const broken = await load({ ...files, 'policies/web/a.yaml': 'version: 2\n' });
    expect(broken.ok ? undefined : broken.others?.warnings).toEqual([]);
    // A team can't.
    const other = await problemsOf(trial('team-api/office').replace('"*"', '"web-eu"'));
    expect(other).toEqual([expect.stringContaining('no policy is named "team-api/office"')]);
  });

  it('are missed where the paths of the team mean none', async () => {
    const loaded = await load({ 'policies/api/a.yaml': API });
    const [problem, ...others] = loaded.ok ? [] : loaded.problems;
    expect(others).toEqual([]);
    expect(problem).toMatchObject({
      ...{ team: 'team-web', code: 'no-files' },
      message:
        'policies of team team-web: matches no file; a file meant for this team would belong to none, and could select anything: correct its policies in ebb.yaml, or put a file there',
    });
  });
});

describe('teams in ebb.yaml', () => {
  const read = async (teams: string) => {
    await writeFile(join(cwd, 'ebb.yaml'), `teams: ${teams}\n`);
    const result = readSettings({ env: {}, cwd });
    return result.ok ? result.settings.teams : result.problems;
  };

  it('say which files they have, relative to it, and what those may do', async () => {
    expect(
      await read('{ web: { policies: "p/web/**", projects: ["web-*"], kinds: [schedule], max_priority: 5 } }'),
    ).toEqual([
      { name: 'web', policies: [join(cwd, 'p/web/**')], projects: ['web-*'], kinds: ['schedule'], maxPriority: 5 },
    ]);
  });

  it.each([
    ['{ web: { policies: p } }', 'ebb.yaml:1:10: projects must be a list of globs on projects such as ["web-*"]'],
    [
      '{ web: { policies: p, projects: ["!x"] } }',
      'ebb.yaml:1:30: projects selects no project; write a glob such as "web-*"',
    ],
    [
      `{ web: { policies: p, projects: [${Array.from({ length: 501 }, () => '"*a*"').join()}] } }`,
      'ebb.yaml:1:30: projects its globs take too long to match; write fewer, with fewer wildcards and without "?"',
    ],
    [
      '{ web: { policies: p, projects: [x], kinds: [schedul] } }',
      'ebb.yaml:1:53: entry 1 of kinds "schedul" is not known; use schedule, headroom, limits, restart, freeze, trial, budget or guard',
    ],
    [
      '{ web: { policies: p, projects: [x], max_prioity: 3 } }',
      'ebb.yaml:1:45: unknown setting "max_prioity"; did you mean "max_priority"?',
    ],
    [
      '{ "a/b": { policies: p, projects: [x] } }',
      'ebb.yaml:1:10: a/b must be 1 to 40 letters, digits, "-", "_" or ".", the first a letter or digit',
    ],
  ])('are refused: %s', async (teams, problem) => {
    expect(await read(teams)).toEqual([problem]);
  });
});
