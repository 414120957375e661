/** A team that writes only its own folder selects nothing outside of its scope, whatever its folder is called and whatever is in it. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { fleetFile, MONDAY_NINE } from './fleet-files.ts';

const sized = (name: string, project: string, size: number) =>
  `version: 1\npolicies:\n  - { name: ${name}, kind: schedule, select: { projects: ["${project}"] }, windows: [{ at: always, size: ${size} }], otherwise: leave }\n`;
const EVIL = sized('evil', 'api-billing', 0.25);
const settings = (policies: string, team: string) =>
  `policies: ${policies}\nteams:\n  web: { policies: "${team}", projects: ["web-*"] }\n`;

interface Layout {
  files?: Record<string, string>;
  links?: Record<string, string>;
  settings: string;
  args?: string[];
}

async function run(command: string[], { files = {}, links = {}, settings: text, args = [] }: Layout) {
  const folder = await makeFolder({ 'fleet.json': fleetFile({ 'web-eu/ep-web': {}, 'api-billing/ep-billing': {} }) });
  onTestFinished(() => folder.remove());
  const all = { 'policies/base.yaml': sized('base', 'web-eu', 4), 'ebb.yaml': text, ...files };
  for (const path of [...Object.keys(all), ...Object.keys(links)]) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
  }
  for (const [path, content] of Object.entries(all)) await writeFile(join(folder.path, path), content);
  for (const [path, target] of Object.entries(links)) await symlink(target, join(folder.path, path));
  const ebb = startEbb([...command, ...args], { cwd: folder.path });
  return { status: await ebb.ended, stdout: ebb.lines.join('\n'), stderr: ebb.stderr() };
}

it.each<[string, Layout]>([
  ['glob characters', { files: { 'policies/[web]/x.yaml': EVIL }, settings: settings('policies', 'policies/[web]/') }],
  ['parentheses', { files: { 'policies/(web)/x.yaml': EVIL }, settings: settings('policies', 'policies/(web)/**') }],
  [
    'policies named by a link',
    {
      files: { 'real/web/x.yaml': EVIL },
      links: { linked: 'real' },
      settings: settings('[policies, linked]', 'real/web'),
    },
  ],
  [
    'a settings file elsewhere, named by a link',
    {
      files: { 'policies/web/x.yaml': EVIL },
      links: { conf: '.' },
      settings: settings('', 'policies/web/**').replace(/^policies:.*\n/, ''),
      args: ['--config', 'conf/ebb.yaml'],
    },
  ],
  [
    'a link to another name of a policy file',
    {
      files: { 'more/x.yaml': EVIL },
      links: { 'policies/web/x.yaml': '../../more/x.yaml' },
      settings: settings('[policies, more]', 'policies/web/**'),
    },
  ],
  [
    'a subfolder that the paths leave out',
    { files: { 'policies/web/sub/x.yaml': EVIL }, settings: settings('policies', 'policies/web/*.yaml') },
  ],
  ['another case', { files: { 'policies/Web/x.yaml': EVIL }, settings: settings('policies', 'policies/web/**') }],
])('%s', async (_title, layout) => {
  const [validated, plan] = await Promise.all([
    run(['validate', '--matches', '--fleet', 'fleet.json'], layout),
    run(['plan', '--fleet', 'fleet.json', '--at', MONDAY_NINE], layout),
  ]);
  expect([validated.status, plan.status]).toEqual([1, 1]);
  expect(validated.stderr).toMatch(/x\.yaml.*web|web.*x\.yaml/s);
  expect(validated.stdout).not.toContain('ep-billing');
  expect(plan.stdout).not.toMatch(/ep-billing[^\n]*0\.25/);
});
