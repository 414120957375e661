/** Whatever a team puts into its own folder, and however its paths are written: what it can write is held to its scope. */
import { chmod, link, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import type { Team } from '../../src/policy/teams.ts';
import { makeFolder } from '../support/platform.ts';

const policy = (name: string, project: string) =>
  `version: 1\npolicies:\n  - { name: ${name}, kind: schedule, select: { projects: ["${project}"] }, windows: [{ at: always, size: 0.25 }], otherwise: leave }\n`;
const EVIL = policy('evil', 'api-billing');
const WEB = policy('office', 'web-*');
const API = policy('office', 'api-*');
const PLATFORM = policy('base', '*');

/** `-> TARGET` is a link, `= FILE` another name of a file; anything else is the text of a file. */
type Layout = Record<string, string>;

async function aFolder(layout: Layout) {
  const folder = await makeFolder({});
  onTestFinished(() => folder.remove());
  const put = async (path: string, what: string) => {
    const place = join(folder.path, path);
    await mkdir(dirname(place), { recursive: true });
    if (what.startsWith('-> ')) await symlink(what.slice(3), place);
    else if (what.startsWith('= ')) await link(join(folder.path, what.slice(2)), place);
    else await writeFile(place, what);
  };
  for (const [path, what] of Object.entries(layout)) await put(path, what);
  return { path: folder.path, put };
}

const team = (name: string, ...policies: string[]): Team => ({ name, policies, projects: [`${name}-*`] });
const WEB_TEAM = team('web', 'policies/web/**');
const API_TEAM = team('api', 'policies/api/**');

interface Loading {
  paths?: string[];
  teams?: readonly Team[];
}

/** What counts, as `TEAM: FILE`, and what is wrong, as `TEAM: FILE`. */
async function loaded(layout: Layout, { paths = ['policies'], teams = [WEB_TEAM, API_TEAM] }: Loading = {}) {
  const { path: cwd } = await aFolder(layout);
  const result = await loadPolicySet({ paths, cwd, settings: { ...DEFAULT_POLICY_SETTINGS, teams }, isComplete: true });
  const right = result.ok ? result : result.others;
  return {
    files: right?.set.policies.map((one) => `${one.team ?? 'none'}: ${one.file}`),
    problems: result.ok ? [] : result.problems.map((one) => `${one.team ?? 'none'}: ${one.file}`),
    messages: result.ok ? [] : result.problems.map(({ excerpt: _, ...problem }) => formatProblem(problem)),
    /** Names of the policies of no team: only these may select anything. */
    free: right?.set.policies.filter((one) => one.team === undefined).map(({ name }) => name),
  };
}

const BOTH = { 'policies/web/a.yaml': WEB, 'policies/api/a.yaml': API };

describe('folders that are linked', () => {
  const below = (folder: string, layout: Layout): Layout =>
    Object.fromEntries(Object.entries(layout).map(([path, what]) => [`${folder}/${path}`, what]));
  const ALL = { ...BOTH, 'policies/base.yaml': PLATFORM };

  it.each<[string, Layout]>([
    ['a mounted volume', { ...below('..2026_x', ALL), '..data': '-> ..2026_x', policies: '-> ..data/policies' }],
    [
      'a mounted folder of the team',
      {
        ...ALL,
        'policies/web/a.yaml': '-> ..data/a.yaml',
        'policies/web/..data': '-> ..1',
        'policies/web/..1/a.yaml': WEB,
      },
    ],
    ['another place', { ...below('elsewhere', ALL), policies: '-> elsewhere/policies' }],
  ])('are looked through: %s', async (_title, layout) => {
    expect(await loaded(layout)).toMatchObject({
      files: ['api: policies/api/a.yaml', 'none: policies/base.yaml', 'web: policies/web/a.yaml'],
      problems: [],
    });
  });

  it('are looked through where each file of a mounted volume is a link, also by names of files', async () => {
    const layout = {
      'policies/..1/web-a.yaml': WEB,
      'policies/..1/api-a.yaml': API,
      'policies/..1/base.yaml': PLATFORM,
      'policies/..data': '-> ..1',
      'policies/web-a.yaml': '-> ..data/web-a.yaml',
      'policies/api-a.yaml': '-> ..data/api-a.yaml',
      'policies/base.yaml': '-> ..data/base.yaml',
    };
    const teams = [team('web', 'policies/web-*.yaml'), team('api', 'policies/api-a.yaml')];
    expect(await loaded(layout, { teams })).toMatchObject({
      files: ['api: policies/api-a.yaml', 'none: policies/base.yaml', 'web: policies/web-a.yaml'],
      problems: [],
    });
  });

  it('are looked through as git-sync swaps them', async () => {
    const layout = {
      'worktrees/0a1b/policies/web/a.yaml': WEB,
      'worktrees/0a1b/policies/base.yaml': PLATFORM,
      current: '-> worktrees/0a1b',
    };
    const files = ['none: current/policies/base.yaml', 'web: current/policies/web/a.yaml'];
    const teams = [team('web', 'current/policies/web/**')];
    expect(await loaded(layout, { paths: ['current/policies'], teams })).toMatchObject({ files, problems: [] });
    // The real folder is named for the team, and the link for the policies.
    const real = [team('web', 'worktrees/0a1b/policies/web')];
    expect(await loaded(layout, { paths: ['current/policies'], teams: real })).toMatchObject({ files, problems: [] });
  });

  it('belong to the team whose path is such a link', async () => {
    const layout = { 'worktrees/0a1b/a.yaml': WEB, web: '-> worktrees/0a1b', 'policies/base.yaml': PLATFORM };
    const teams = [team('web', 'web')];
    expect(await loaded(layout, { paths: ['policies', 'web'], teams })).toMatchObject({
      files: ['none: policies/base.yaml', 'web: web/a.yaml'],
      problems: [],
    });
  });
});

describe('paths of teams', () => {
  it.each([
    ['policies/[web]/', '[web]'],
    ['policies/[web]/**', '[web]'],
    ['policies/[web]/*.yaml', '[web]'],
    ['policies/team(web)/**', 'team(web)'],
    ['policies/team(web)', 'team(web)'],
    ['policies/{web,x}/**', '{web,x}'],
    ['policies/*/', '*'],
    ['policies/./x/../!(web)/', '!(web)'],
  ])('are literal as far as they exist: %s', async (path, folder) => {
    const files = { [`policies/${folder}/a.yaml`]: EVIL, 'policies/base.yaml': PLATFORM };
    const { free, problems } = await loaded(files, { teams: [team('web', path)] });
    expect({ free, problems }).toEqual({ free: ['base'], problems: [`web: policies/${folder}/a.yaml`] });
  });

  it('say nothing of other folders where they are literal', async () => {
    const layout = { 'policies/[web]/a.yaml': WEB, 'policies/w/a.yaml': PLATFORM };
    expect(await loaded(layout, { teams: [team('web', 'policies/[web]/**')] })).toMatchObject({ free: ['base'] });
  });

  it('stay globs for what they have matched, whatever a team calls a folder', async () => {
    const layout = { 'policies/web/[ab]/x.yaml': WEB, 'policies/web/a/x.yaml': EVIL, 'policies/base.yaml': PLATFORM };
    const { free, problems } = await loaded(layout, { teams: [team('web', 'policies/web/[ab]/*.yaml')] });
    expect({ free, problems }).toEqual({ free: ['base'], problems: ['web: policies/web/a/x.yaml'] });
  });

  it('are literal below a folder whose name has glob characters', async () => {
    const { path: cwd } = await aFolder({ '[prod]/policies/web/a.yaml': EVIL, '[prod]/policies/base.yaml': PLATFORM });
    const teams = [team('web', join(cwd, '[prod]/policies/web/**'))];
    const result = await loadPolicySet({
      paths: [join(cwd, '[prod]/policies/**')],
      cwd,
      settings: { ...DEFAULT_POLICY_SETTINGS, teams },
    });
    expect(result).toMatchObject({ ok: false, others: { set: { policies: [{ name: 'base' }] } } });
  });

  it.each<[string, Layout]>([
    ['deeper than they say', { 'policies/web/a.yaml': WEB, 'policies/web/sub/x.yaml': EVIL }],
    ['of the same letters', { 'policies/Web/x.yaml': EVIL }],
  ])('leave no file to nobody that is %s', async (_title, layout) => {
    const teams = [team('web', 'policies/web/*.yaml')];
    const { free, problems } = await loaded({ ...layout, 'policies/base.yaml': PLATFORM }, { teams });
    expect(free).toEqual(['base']);
    expect(problems).toContain(`web: ${Object.keys(layout).at(-1)}`);
  });

  it('of files by name leave no other file of a folder of their own to nobody', async () => {
    const layout = { 'policies/web/web-a.yaml': WEB, 'policies/web/x.yaml': EVIL, 'policies/base.yaml': PLATFORM };
    const { free, problems } = await loaded(layout, { teams: [team('web', 'policies/web/web-*.yaml')] });
    expect({ free, problems }).toEqual({ free: ['base'], problems: ['web: policies/web/x.yaml'] });
  });

  it('give a file to the first team that they match, as documented', async () => {
    const teams = [team('web', 'policies/web/special'), team('all', 'policies/**')];
    const layout = { 'policies/web/special/a.yaml': WEB, 'policies/b.yaml': policy('b', 'all-*') };
    expect(await loaded(layout, { teams })).toMatchObject({
      files: ['all: policies/b.yaml', 'web: policies/web/special/a.yaml'],
      problems: [],
    });
  });
});

describe('links in the folder of a team', () => {
  const REST = { 'policies/web/a.yaml': WEB, 'policies/api/a.yaml': API, 'policies/base.yaml': PLATFORM };

  it('to a file outside make it the files of the team', async () => {
    const { free, problems } = await loaded({
      ...REST,
      'out/x.yaml': EVIL,
      'policies/web/x.yaml': '-> ../../out/x.yaml',
    });
    expect({ free, problems }).toEqual({ free: ['base'], problems: ['web: policies/web/x.yaml'] });
  });

  it('to a file of another team leave it to that team, and are a problem of their own', async () => {
    const found = await loaded({ ...REST, 'policies/web/x.yaml': '-> ../api/a.yaml' });
    expect(found.files).toEqual(['api: policies/api/a.yaml', 'none: policies/base.yaml']);
    expect(found.messages).toEqual([
      'policies/web/x.yaml: leads to a file of team api: remove the link, or copy the file',
    ]);
  });

  it.each<[string, Layout]>([
    ['a file', { 'policies/web/x.yaml': '-> ../../shared/x.yaml' }],
    ['a folder', { 'policies/web/sub': '-> ../../shared' }],
    ['a hidden link', { 'policies/web/.x.yaml': '-> ../../shared/x.yaml', 'policies/x.yaml': '-> web/.x.yaml' }],
    ['a hard link', { 'policies/web/x.yaml': '= shared/x.yaml' }],
  ])('take what nobody has by another name: %s', async (_title, links) => {
    const { free } = await loaded({ ...REST, 'shared/x.yaml': EVIL, ...links }, { paths: ['policies', 'shared'] });
    // What the files of no team say would be gone with it, so nothing is loaded at all.
    expect(free).toBeUndefined();
    const right = await loaded(
      { ...REST, 'shared/x.yaml': policy('x', 'web-x'), ...links },
      { paths: ['policies', 'shared'] },
    );
    expect(right).toMatchObject({ free: ['base'], problems: [] });
  });

  it('to a file of no team that the team may not have change nothing', async () => {
    const found = await loaded({ ...REST, 'policies/web/x.yaml': '-> ../base.yaml' });
    expect(found.files).toBeUndefined();
    expect(found.problems).toContain('none: policies/base.yaml');
  });

  it.each(['.', '..', 'api', '../policies/api', '/nowhere'])(
    'that stand for the whole folder, to %s',
    async (target) => {
      const { files, free, problems } = await loaded({
        'policies/base.yaml': PLATFORM,
        'policies/api/a.yaml': API,
        'policies/web': `-> ${target}`,
      });
      expect(free ?? []).not.toContain('evil');
      if (files) expect(files).toEqual(['api: policies/api/a.yaml', 'none: policies/base.yaml']);
      expect(problems.some((one) => one.startsWith('web: '))).toBe(true);
    },
  );

  it('from two teams to one file give it to each within its own scope', async () => {
    const layout = { ...REST, 'out/x.yaml': policy('x', 'web-x') };
    const links = { 'policies/web/x.yaml': '-> ../../out/x.yaml', 'policies/api/x.yaml': '-> ../../out/x.yaml' };
    expect(await loaded({ ...layout, ...links })).toMatchObject({
      files: ['none: policies/base.yaml', 'web: policies/web/a.yaml', 'web: policies/web/x.yaml'],
      problems: ['api: policies/api/x.yaml'],
    });
  });

  it('that lead nowhere, in circles or up are no matter of others', async () => {
    const links = {
      'policies/web/gone.yaml': '-> nowhere.yaml',
      'policies/web/self.yaml': '-> self.yaml',
      'policies/web/up': '-> ../web',
    };
    expect(await loaded({ ...REST, ...links })).toMatchObject({ free: ['base'], problems: [] });
  });
});

describe('a team without files', () => {
  const REST = { 'policies/api/a.yaml': API, 'policies/base.yaml': PLATFORM };

  it.each<[string, Layout, string[]]>([
    ['missing', {}, ['policies/web/**']],
    ['missing', {}, ['policies/web']],
    ['empty', { 'policies/web/README.md': 'none yet' }, ['policies/web']],
    ['without a policy file', { 'policies/web/README.md': 'none yet' }, ['policies/web/**']],
    ['outside the policies', { 'other/web/a.yaml': WEB }, ['other/web/**']],
  ])('is a problem of that team alone: its folder is %s', async (_title, layout, policies) => {
    const teams = [team('web', ...policies), API_TEAM];
    const found = await loaded({ ...REST, ...layout }, { teams });
    expect(found.files).toEqual(['api: policies/api/a.yaml', 'none: policies/base.yaml']);
    expect(found.problems).toEqual([`web: ${policies[0]}`]);
    expect(found.messages[0]).toMatch(
      /^policies\/web(\/\*\*)?: .*team web.*ebb\.yaml|^other\/web\/\*\*: .*team web: add/,
    );
  });
});

it('a folder of a team that cannot be looked into hinders no other', async () => {
  const { path: cwd } = await aFolder({ ...BOTH, 'policies/base.yaml': PLATFORM });
  await chmod(join(cwd, 'policies/web'), 0);
  onTestFinished(() => chmod(join(cwd, 'policies/web'), 0o700));
  const result = await loadPolicySet({
    paths: ['policies'],
    cwd,
    settings: { ...DEFAULT_POLICY_SETTINGS, teams: [WEB_TEAM, API_TEAM] },
    isComplete: true,
  });
  const free = (result.ok ? result : result.others)?.set.policies.filter((one) => one.team === undefined);
  expect(free?.map(({ name }) => name)).toEqual(['base']);
});
