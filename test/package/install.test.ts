/** The package as a stranger gets it: packed, installed into an empty folder, and run far from the checkout. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { makeFolder } from '../support/platform.ts';

const run = promisify(execFile);
const OFFLINE = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier', '--silent'];
const HOLIDAYS = `version: 1
timezone: Europe/Berlin
calendars: { holidays: { country: DE, state: BY } }
policies:
  - name: office-hours
    kind: schedule
    select: { projects: [web] }
    windows: [{ at: Mon-Fri 08:00-18:00, except: [holidays], size: 1 }]
    otherwise: { size: 0.25 }
`;

let folder: Awaited<ReturnType<typeof makeFolder>>;
let home: string;

beforeAll(async () => {
  folder = await makeFolder({ 'holidays.yaml': HOLIDAYS });
  const args = ['install', '--global', '--prefix', folder.path, ...OFFLINE, inject('ebbTarball')];
  await run('npm', args, { cwd: folder.path });
  home = join(folder.path, 'lib/node_modules', JSON.parse(readFileSync('package.json', 'utf8')).name);
});
afterAll(() => folder?.remove());

async function ebb(...args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: folder.path };
  const { stdout, stderr } = await run(join(folder.path, 'bin/ebb'), args, { cwd: folder.path, env });
  expect(stderr).toBe('');
  return stdout;
}

describe('the installed package', () => {
  it('has a command that tells version and commit', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    const commit = (await run('git', ['rev-parse', '--short=7', 'HEAD'])).stdout.trim();
    expect(await ebb('--version')).toBe(`${version} (${commit})\n`);
  });

  it('validates its own samples, and a policy with public holidays', async () => {
    expect(await ebb('validate', join(home, 'policies'))).toMatch(/^no problems: /);
    expect(await ebb('validate', 'holidays.yaml')).toMatch(/^no problems: 1 policy/);
  });

  it('prints schemas, and has them as files', async () => {
    for (const name of ['policies', 'settings']) {
      const file = JSON.parse(readFileSync(join(home, `schema/${name}.schema.json`), 'utf8'));
      expect(JSON.parse(await ebb('schema', name))).toEqual(file);
    }
  });

  it('brings dashboards, alerts, the unit, the pages, and the licences of what was built in', () => {
    const paths = ['grafana/dashboards/ebb-fleet.json', 'prometheus/rules', 'deploy/ebb.service', 'docs/install.md'];
    const own = [...paths, 'LICENSE', 'CHANGELOG.md', 'dist/policy/calendars/holiday-library.licenses.txt'];
    expect(own.filter((path) => !existsSync(join(home, path)))).toEqual([]);
  });

  it('brings no sources, no maps, nothing of development', async () => {
    const names = await readdir(home, { recursive: true });
    const own = names.filter((name) => !name.startsWith('node_modules/'));
    expect(own.filter((name) => /\.map$|\.tsx?$|^(?:src|test|bench|scripts)\b/.test(name))).toEqual([]);
    const packages = names.filter((name) => /^node_modules\/(?:typescript|vitest|date-holidays|esbuild)$/.test(name));
    expect(packages).toEqual([]);
  });
});
