import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { SETTINGS, type SettingDeclaration } from '../../src/settings/declarations.ts';
import { makeFolder } from '../support/platform.ts';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';

const unit = readFileSync('deploy/ebb.service', 'utf8');

it('the unit names only variables that ebb has', () => {
  const variables = Object.values<SettingDeclaration>(SETTINGS).map(({ variable }) => variable);
  const [, line = ''] = /^Environment=(.*)$/m.exec(unit) ?? [];
  const own = [...line.matchAll(/(EBB_\w+)=/g)].map(([, name]) => name);
  expect(own.length).toBeGreaterThan(0);
  expect(own.filter((name) => !variables.includes(name))).toEqual([]);
});

describeWith('systemd-analyze', 'systemd', () => {
  const undo: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const step of undo) await step();
  });

  it('finds the unit valid, and little of the machine exposed to it', async () => {
    // Its programs are elsewhere on this machine, or nowhere.
    const here = unit.replace('/usr/bin/node', process.execPath);
    const folder = await makeFolder({ 'ebb.service': here });
    undo.push(folder.remove);
    const file = join(folder.path, 'ebb.service');
    const analyze = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(programPath('systemd-analyze'), args, { encoding: 'utf8' });
      return { status, said: stderr + (status === 0 ? '' : stdout) };
    };
    expect(analyze('verify', '--man=no', file)).toEqual({ status: 0, said: '' });
    expect(analyze('security', '--offline=true', '--threshold=15', file)).toMatchObject({ status: 0 });
  });
});
