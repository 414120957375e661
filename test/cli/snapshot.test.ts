import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readFleet } from '../../src/app/fleet/read-fleet.ts';
import { openForReading } from '../../src/compose/reading.ts';
import { parseFleet } from '../../src/emulator/fleet-file.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const BRANCHES = '/projects/{project_id}/branches';
const COMPUTES = '/projects/{project_id}/endpoints';
const YEAR_AGO_MS = Date.UTC(2025, 0, 1);

let platform: Platform;
let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  platform = await startTestPlatform({
    docs: { branch: { name: 'main', default: true, protected: true }, createdAtMs: YEAR_AGO_MS },
    shop: { branch: { name: 'yes', default: true }, state: 'active', minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1 },
  });
  folder = await makeFolder();
});

afterAll(async () => {
  await platform.close();
  await folder.remove();
});

async function snapshot(flags: readonly string[], env: Record<string, string> = {}, from = platform) {
  const own = { EBB_API_URL: from.url, NEON_API_KEY: from.apiKey };
  const process = startEbb(['snapshot', ...flags], { cwd: folder.path, env: { ...own, ...env } });
  const status = await process.ended;
  return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
}

/** A compute as every reading of it should be, however often it went through a file. */
function lasting<T extends { startedAtMs?: number; lastActiveAtMs?: number }>({
  startedAtMs,
  lastActiveAtMs,
  ...rest
}: T) {
  return rest;
}

async function fleetOf(options: { fleetFile?: string; from?: Platform }) {
  const env = { EBB_API_URL: options.from?.url, NEON_API_KEY: options.from?.apiKey };
  const read = readSettings({ env, cwd: folder.path });
  if (!read.ok) throw new Error(read.problems.join());
  const reading = await openForReading({ settings: read.settings, fleetFile: options.fleetFile });
  if (!reading.ok) throw new Error(reading.problem);
  const { computes } = await readFleet({ api: reading.value.api, readBranches: true });
  await reading.value.close();
  // Where a compute is reached, and when it was last changed, is not written into files.
  return computes.map(({ host: _address, updatedAtMs: _changed, ...compute }) => compute);
}

describe('ebb snapshot', () => {
  it('writes the fleet as YAML, with NEON_API_KEY, and writes nothing to the API', async () => {
    const { status, stdout, stderr } = await snapshot([]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(parse(stdout)).toEqual({
      taken_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      projects: [
        {
          ...{ id: 'docs', name: 'docs', region_id: 'aws-eu-central-1', pg_version: 17 },
          computes: [
            {
              ...{ id: 'ep-docs', branch_id: 'br-docs', branch: { name: 'main', default: true, protected: true } },
              ...{ type: 'read_write', min_cu: 0.25, max_cu: 0.25, suspend_timeout_seconds: 300, state: 'idle' },
              created_at: '2025-01-01T00:00:00Z',
            },
          ],
        },
        expect.objectContaining({
          id: 'shop',
          computes: [
            expect.objectContaining({
              ...{ state: 'active', suspend_timeout_seconds: -1, started_at: expect.any(String) },
              branch: { name: 'yes', default: true, protected: false },
            }),
          ],
        }),
      ],
    });
    expect(await platform.writes()).toEqual([]);
  });

  it('is read by --fleet and by the emulator as the fleet that it was', async () => {
    expect(await snapshot(['--out', 'fleet.yaml'])).toEqual({
      ...{ status: 0, stdout: '' },
      stderr: 'fleet.yaml: 2 computes of 2 projects',
    });
    const live = await fleetOf({ from: platform });
    const file = join(folder.path, 'fleet.yaml');
    expect(await fleetOf({ fleetFile: file })).toEqual(live.map((compute) => ({ ...compute, ...whole(compute) })));
    const parsed = parseFleet(readFileSync(file, 'utf8'));
    if (!parsed.ok) throw new Error(parsed.message);
    const copy = await startTestPlatform({}, { fleet: parsed.fleet });
    try {
      expect((await fleetOf({ from: copy })).map(lasting)).toEqual(
        live.map((one) => lasting({ ...one, ...whole(one) })),
      );
      const [first, second] = [await snapshot(['--json']), await snapshot(['--json'], {}, copy)];
      const idsOf = ({ stdout }: { stdout: string }) =>
        JSON.parse(stdout).projects.map(({ id, computes }: { id: string; computes: unknown[] }) => [
          id,
          computes.length,
        ]);
      expect(idsOf(second)).toEqual(idsOf(first));
    } finally {
      await copy.close();
    }
  });

  it('writes JSON into a file that is called so, and leaves nothing half written', async () => {
    expect(await snapshot(['--out', 'fleet.json'])).toMatchObject({ status: 0 });
    expect(JSON.parse(readFileSync(join(folder.path, 'fleet.json'), 'utf8'))).toHaveProperty('taken_at');
    expect(await snapshot(['--out', 'no/such/folder/fleet.yaml'])).toMatchObject({
      status: 1,
      stderr: 'ebb: --out: no/such/folder/fleet.yaml cannot be written (ENOENT): check the path',
    });
    expect(readdirSync(folder.path).filter((name) => name.includes('tmp'))).toEqual([]);
  });

  it('says where names of branches are missing', async () => {
    await platform.control('faults', { kind: 'status', status: 403, route: BRANCHES });
    const { status, stdout, stderr } = await snapshot([]);
    await platform.clearFaults();
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: 'note: the key may not list the branches of docs, shop: their names are not in the snapshot',
    });
    expect(stdout).not.toContain('branch:');
  });

  it('writes no part of a fleet unless it is asked to', async () => {
    const fault = { kind: 'status', status: 403, route: COMPUTES, message: 'not yours', count: 1 };
    const problem = `docs: ${platform.url} answers 403: not yours; it is not available with the key of account default, or not on its plan`;
    await platform.control('faults', fault);
    expect(await snapshot(['--out', 'part.yaml'])).toEqual({ status: 1, stdout: '', stderr: `ebb: ${problem}` });
    await platform.control('faults', fault);
    const partial = await snapshot(['--out', 'part.yaml', '--partial']);
    expect(partial).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: `not in the snapshot: ${problem}\npart.yaml: 1 computes of 1 projects`,
    });
  });

  it('tells what to do without a key, or with a wrong one', async () => {
    expect(await snapshot([], { NEON_API_KEY: '' })).toEqual({
      ...{ status: 1, stdout: '' },
      stderr:
        'ebb: no API key: set EBB_API_KEY, or EBB_API_KEY_FILE to a file that holds it; to read only, NEON_API_KEY is enough',
    });
    const refused = await snapshot([], { EBB_API_KEY: 'wrong' });
    expect(refused.stderr).toMatch(
      /refuses the API key of account default \(401: .*\); check EBB_API_KEY or EBB_API_KEY_FILE$/,
    );
    expect(refused.stderr).not.toContain('wrong');
  });
});

describe('a fleet file that cannot be read', () => {
  it.each([
    ['nowhere.yaml', 'cannot read the fleet file nowhere.yaml (ENOENT); check the path and its permissions'],
    ['/', 'cannot read the fleet file / (EISDIR); check the path and its permissions'],
    ['/dev/null', 'fleet file /dev/null: the whole file: must be keys with values'],
  ])('is a problem in one line: %s', async (fleetFile, problem) => {
    const read = readSettings({ env: {}, cwd: folder.path });
    if (!read.ok) throw new Error(read.problems.join());
    expect(await openForReading({ settings: read.settings, fleetFile })).toEqual({ ok: false, problem });
  });
});

/** Instants as a file holds them: whole seconds. */
function whole({
  createdAtMs,
  startedAtMs,
  lastActiveAtMs,
}: {
  createdAtMs: number;
  startedAtMs?: number;
  lastActiveAtMs?: number;
}) {
  const floor = (ms: number) => Math.floor(ms / 1000) * 1000;
  return {
    createdAtMs: floor(createdAtMs),
    ...(startedAtMs !== undefined && { startedAtMs: floor(startedAtMs) }),
    ...(lastActiveAtMs !== undefined && { lastActiveAtMs: floor(lastActiveAtMs) }),
  };
}
