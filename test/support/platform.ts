/** An emulator in real time for tests of the whole: a fleet, what reached its API, and folders that go away. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { prepareEngine } from '../../src/compose/run-daemon.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/server.ts';
import { copyDatabase } from './embedded-folder.ts';

export interface RecordedRequest {
  at: string;
  method: string;
  path: string;
  route: string;
  status: number;
  body?: unknown;
}

export interface Platform extends Emulator {
  requests(): Promise<RecordedRequest[]>;
  /** All that is not a GET. */
  writes(): Promise<RecordedRequest[]>;
  control(route: string, body: unknown): Promise<void>;
  clearFaults(): Promise<void>;
}

/** One compute for each name, each in a project of that name. */
export async function startTestPlatform(
  computes: Record<string, Partial<FleetCompute>>,
  { historyMs, account, ...options }: Partial<EmulatorOptions> & { historyMs?: number; account?: string } = {},
): Promise<Platform> {
  const projects = Object.entries(computes).map(([name, compute]) => ({
    id: name,
    name,
    regionId: 'aws-eu-central-1',
    pgVersion: 17,
    account,
    computes: [{ ...USUAL, id: `ep-${name}`, branchId: `br-${name}`, ...compute }],
  }));
  const emulator = await startEmulator({
    listen: { host: '127.0.0.1', port: 0 },
    fleet: { projects, ...(historyMs !== undefined && { historyMs }) },
    seed: 1,
    ...options,
  });
  const requests = async () => {
    const answer = await request(`${emulator.origin}/_emulator/requests`);
    return ((await answer.body.json()) as { requests: RecordedRequest[] }).requests;
  };
  return {
    ...emulator,
    requests,
    writes: async () => (await requests()).filter(({ method }) => method !== 'GET'),
    async clearFaults() {
      const answer = await request(`${emulator.origin}/_emulator/faults`, { method: 'DELETE' });
      await answer.body.dump();
    },
    async control(route, body) {
      const headers = { 'content-type': 'application/json' };
      const url = `${emulator.origin}/_emulator/${route}`;
      const answer = await request(url, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.statusCode >= 300) throw new Error(`${route}: ${answer.statusCode} ${await answer.body.text()}`);
      await answer.body.dump();
    },
  };
}

const USUAL: Omit<FleetCompute, 'id' | 'branchId'> = {
  type: 'read_write',
  minCu: 0.25,
  maxCu: 0.25,
  suspendTimeoutSeconds: 300,
  state: 'idle',
  connections: 0,
};

/** A folder with policy files; `remove` deletes it and whatever was put there. */
export async function makeFolder(
  files: Record<string, string> = {},
): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'ebb-test-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Makes the embedded engine in a folder, which takes seconds: a boundary soon after the start must not pass before it. */
export async function prepareQueue(folder: string): Promise<{ url: string; group: string }> {
  const queue = { url: `embedded:${join(folder, 'queue')}`, group: 'test' };
  if (!existsSync(join(folder, 'queue'))) await copyDatabase(join(folder, 'queue'));
  const prepared = await prepareEngine(queue);
  if (!prepared.ok) throw new Error(prepared.problem);
  return queue;
}

/** A policy whose window opens `inMs` from now and stays open for an hour. */
export function boundarySoon(inMs: number, values = 'size: 1-2'): string {
  const startMs = Math.ceil((Date.now() + inMs) / 1000) * 1000;
  const [start, end] = [startMs, startMs + 3_600_000].map((ms) => new Date(ms).toISOString().replace('.000', ''));
  return `version: 1
policies:
  - name: soon
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows:
      - at: ${start}/${end}
        ${values}
    otherwise: { size: 0.25, suspend_after: 5m }
`;
}
