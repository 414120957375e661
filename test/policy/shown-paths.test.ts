import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { rulesFromFiles } from '../../src/compose/rules-from-files.ts';
import { pathShortener } from '../../src/compose/shown-paths.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { makeFolder } from '../support/platform.ts';

it('paths start at the folder of the settings file, or at the name of the policies folder, whatever folder the daemon runs in', () => {
  const shortened = (configFile: string, cwd: string, ...paths: string[]) => pathShortener({ configFile, paths, cwd });
  const inEtc = shortened('/etc/ebb/ebb.yaml', '/', '/etc/ebb/policies', '/srv/git/team-web/**');
  expect(inEtc('/etc/ebb/policies/web.yaml:3:5: the name "a" is already used at /etc/ebb/policies/api.yaml:2')).toBe(
    'policies/web.yaml:3:5: the name "a" is already used at policies/api.yaml:2',
  );
  // As it is named from the working folder.
  expect(inEtc('etc/ebb/policies/web.yaml: larger than 256 KiB')).toBe('policies/web.yaml: larger than 256 KiB');
  expect(inEtc('/etc/ebb/ebb.yaml:1:1: mode: expected observe')).toBe('ebb.yaml:1:1: mode: expected observe');
  expect(inEtc('/srv/git/team-web/x.yaml: cannot be read (EACCES)')).toBe('team-web/x.yaml: cannot be read (EACCES)');
  expect(inEtc('/srv/git/team-web: no such file or folder')).toBe('team-web: no such file or folder');
  const mounted = shortened('/ebb.yaml', '/', '/policies', '/policies/web/**');
  expect(mounted('/policies/web/a.yaml:1: (/policies/b.yaml:2)')).toBe('policies/web/a.yaml:1: (policies/b.yaml:2)');
  // Text that only looks alike stays.
  expect(mounted('web.yaml: 1/policies, https://policies.example/policies/')).toBe(
    'web.yaml: 1/policies, https://policies.example/policies/',
  );
});

it('what a daemon that runs elsewhere says of policy and settings files has no path of its machine', async () => {
  const text = 'version: 1\npolicies: [{ name: a, kind: nothing }]\n';
  const folder = await makeFolder({ 'ebb.yaml': 'policies: [policies]\n' });
  onTestFinished(() => folder.remove());
  await mkdir(join(folder.path, 'policies'));
  await writeFile(join(folder.path, 'policies/web.yaml'), text);
  const configFile = join(folder.path, 'ebb.yaml');
  const readAgain = () => readSettings({ configFile, env: {}, cwd: '/' });
  const read = readAgain();
  if (!read.ok) throw new Error(read.problems.join());
  const source = rulesFromFiles({ readSettings: readAgain, settings: read.settings, configFile, cwd: '/' });
  const problem = async () => {
    const reading = await source.read();
    return reading.ok ? undefined : reading.problems[0];
  };
  expect(await problem()).toMatch(/^policies\/web\.yaml:2:/);
  await writeFile(configFile, 'policies: [policies]\nmode: nothing\n');
  expect(await problem()).toMatch(/^ebb\.yaml:2:/);
});
