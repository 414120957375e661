import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const FOLDER = '.github/workflows';
const files = readdirSync(FOLDER).map((name) => `${FOLDER}/${name}`);

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { permissions?: Record<string, string> }>;
}

describe.each(files)('%s', (file) => {
  const text = readFileSync(file, 'utf8');

  it('is a workflow that GitHub would take', () => {
    const { status, stdout } = spawnSync('node_modules/.bin/action-validator', [file], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });

  it("uses others' actions by their commit, with the version beside it", () => {
    const used = [...text.matchAll(/uses: (?!\.\/)(.*)$/gm)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(0);
    for (const action of used) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });
});

it('no job may write but the one that publishes its identity and the one that makes the release', () => {
  const granted = files.flatMap((file) => {
    const { permissions, jobs } = parse(readFileSync(file, 'utf8')) as Workflow;
    const all = [['', { permissions }] as const, ...Object.entries(jobs)];
    return all.flatMap(([job, one]) =>
      Object.entries(one.permissions ?? {})
        .filter(([, access]) => access !== 'read')
        .map(([what, access]) => `${job} ${what}: ${access}`),
    );
  });
  expect(granted).toEqual(['publish id-token: write', 'release contents: write']);
});

it('CI runs what .ci/run runs', () => {
  expect(readFileSync(`${FOLDER}/ci.yml`, 'utf8')).toContain('- run: .ci/run\n');
});
