import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readUsageHistories } from '../../../src/cli/forecast/usage-history.ts';
import type { Compute } from '../../../src/domain/compute/compute.ts';
import { readSettings } from '../../../src/settings/settings.ts';
import { aCompute } from '../../support/builders.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-known-usage-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const one = aCompute({ projectId: 'p', branchId: 'b', computeId: 'ep-1' });
const replica = aCompute({ projectId: 'p', branchId: 'b', computeId: 'ep-2' });
const other = aCompute({ projectId: 'q', branchId: 'c', computeId: 'ep-3' });

it.each<[string, number, Compute[], string | undefined]>([
  ['enough', 168, [one], undefined],
  ['as long as the control API tells, less what comes late', 164, [one], undefined],
  ['too few hours', 143, [one], 'no compute has the 144 known hours that are needed; the most is 143'],
  [
    'of a branch of two',
    168,
    [one, replica],
    "2 computes share a branch or project, so their usage can't be told apart",
  ],
  ['of others', 168, [other], 'it has no usage of these computes'],
])('a file with usage that is %s: a note says so where nothing can be expected', async (_, hours, computes, why) => {
  const usageFile = join(folder, 'usage.csv');
  const rows = Array.from({ length: hours }, (_row, hour) => {
    const start = new Date(Date.UTC(2026, 2, 2, hour)).toISOString().replace('.000Z', 'Z');
    return `p/b,p,b,${start},3600,900`;
  });
  await writeFile(usageFile, `${['unit,project_id,branch_id,start,seconds,cu_seconds', ...rows].join('\n')}\n`);
  const written: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const read = readSettings({ env: {}, cwd: folder });
  if (!read.ok) throw new Error(read.problems.join('\n'));
  const { settings } = read;
  const profiles = await readUsageHistories({
    settings,
    usageFile,
    fleetFile: undefined,
    computes,
    projects: [],
    nowMs: 0,
    mostProjectsAsked: 500,
    open: async () => ({ ok: false, problem: 'nothing is to be opened' }),
  });
  expect(profiles.size).toBe(why === undefined ? 1 : 0);
  expect(written).toEqual(why === undefined ? [] : [`note: ${usageFile}: ${why}\n`]);
});
