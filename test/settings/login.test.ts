import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { rulesFromFiles } from '../../src/compose/rules-from-files.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { makeFolder } from '../support/platform.ts';

const withGroups = (groups: string) =>
  `login: {issuer: "https://login.example", audience: ebb, jwks_url: "https://login.example/jwks", groups: ${groups}}\n`;

const POLICIES = `version: 1
timezone: Europe/Berlin
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: Mon-Fri 08:00-18:30, size: 1-2 }]
    otherwise: { size: 0.25-1 }
`;

async function settingsFile(text: string) {
  const folder = await makeFolder({ 'ebb.yaml': `policies: [web.yaml]\n${text}`, 'web.yaml': POLICIES });
  onTestFinished(() => folder.remove());
  const configFile = join(folder.path, 'ebb.yaml');
  return { configFile, cwd: folder.path, read: () => readSettings({ configFile, env: {}, cwd: folder.path }) };
}

it('a role that is not known is answered with all roles, and with those that a team may follow', async () => {
  const { read } = await settingsFile(withGroups('{web: [fly]}'));
  expect(read()).toMatchObject({
    problems: [
      expect.stringMatching(
        /must be one of read, operate, freeze, approve; operate, freeze and approve may be followed by a team$/,
      ),
    ],
  });
});

it('groups that get other roles need a restart, like every change of login', async () => {
  const { configFile, cwd, read } = await settingsFile(withGroups('{web: [operate], ops: [freeze]}'));
  const first = read();
  if (!first.ok) throw new Error(first.problems.join());
  const source = rulesFromFiles({ readSettings: read, settings: first.settings, configFile, cwd });
  expect(await source.read()).toMatchObject({ ok: true, needRestart: [] });
  await writeFile(configFile, `policies: [web.yaml]\n${withGroups('{web: [operate]}')}`);
  expect(await source.read()).toMatchObject({ ok: true, needRestart: ['login'] });
});
