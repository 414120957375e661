import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { teamsIn } from '../../../src/cli/diff/teams-of-copy.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../../src/policy/load.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-diff-teams-'));
});
afterEach(() => rm(folder, { recursive: true }));

const office = (team: string) =>
  `version: 1\npolicies:\n  - { name: office, kind: schedule, select: { projects: ["${team}-*"] }, otherwise: { size: 1 }, windows: [{ at: "Mon-Fri 08:00-18:00", size: 2 }] }\n`;

/** The names and owners of the policies of `path`, where `web` and `api` have teams by `globs`. */
async function policiesOf(
  path: string,
  comparedWith: string,
  globs = { web: 'policies/web/**', api: 'policies/api' },
  policies = 'policies',
) {
  const teams = Object.entries(globs).map(([name, glob]) => ({
    name: `team-${name}`,
    policies: [join(folder, glob)],
    projects: [`${name}-*`],
  }));
  const places = { policies: [join(folder, policies)], teams };
  const known = await teamsIn(join(folder, path), join(folder, comparedWith), places);
  const loaded = await loadPolicySet({
    paths: [join(folder, path)],
    settings: { ...DEFAULT_POLICY_SETTINGS, teams: known },
  });
  return loaded.ok ? loaded.set.policies.map(({ name, owner }) => `${name} of ${owner}`).sort() : loaded.problems;
}

describe('the files of a copy of the policies', () => {
  const WEB = ['team-web/office of team-web'];
  const BOTH = ['team-api/office of team-api', ...WEB];

  beforeEach(async () => {
    for (const copy of ['policies', 'next', 'older/policies']) {
      for (const team of ['web', 'api']) {
        await mkdir(dirname(join(folder, copy, team, 'office.yaml')), { recursive: true });
        await writeFile(join(folder, copy, team, 'office.yaml'), office(team));
      }
    }
  });

  it.each([
    ['policies', 'next', BOTH],
    ['next', 'policies', BOTH],
    ['older/policies', 'policies', BOTH],
    ['older/policies', 'next', BOTH],
    ['policies/web', 'next/web', WEB],
    ['next/web', 'policies/web', WEB],
    ['next/web/office.yaml', 'policies/web/office.yaml', WEB],
  ])('in %s have their teams when compared with %s', async (path, comparedWith, policies) => {
    expect(await policiesOf(path, comparedWith)).toEqual(policies);
  });

  it('have them also where the copy of a part has another name, or has files that the other has not', async () => {
    await mkdir(join(folder, 'tried'));
    await writeFile(join(folder, 'tried/new.yaml'), office('web'));
    expect(await policiesOf('tried', 'policies/web')).toEqual(WEB);
  });

  it('have them also where the settings name the same folders by links, or as globs', async () => {
    await symlink('policies', join(folder, 'linked'));
    expect(await policiesOf('next', 'policies', { web: 'linked/web/**', api: 'linked/api' })).toEqual(BOTH);
    expect(await policiesOf('next', 'policies', undefined, 'policies/**/*.yaml')).toEqual(BOTH);
    expect(await policiesOf('policies', 'next', undefined, 'linked')).toEqual(BOTH);
  });

  it('have no team where files at the same place have none', async () => {
    const globs = { web: 'policies/other/**', api: 'policies/api' };
    expect(await policiesOf('next/web', 'policies/web', globs)).toEqual(['office of undefined']);
  });
});
