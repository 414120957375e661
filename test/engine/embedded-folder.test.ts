import { spawn } from 'node:child_process';
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { EngineState } from '../../src/ports/engine.ts';
import { endServer } from '../support/child-server.ts';
import { copyDatabase, temporaryFolder } from '../support/embedded-folder.ts';
import { eventually } from '../support/eventually.ts';
import { memoryLog } from '../support/memory-log.ts';
import { printSeed, SEED } from '../support/seed.ts';
import { cannotMount, smallDisk } from '../support/small-disk.ts';

const CHILD = fileURLToPath(new URL('./embedded-child.ts', import.meta.url));
const FIRST_START_MS = 480_000;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function emptyFolder(): Promise<string> {
  const { path, remove } = await temporaryFolder();
  cleanups.push(remove);
  return path;
}

const tryOpen = (path: string) => openEngine({ url: `embedded:${path}`, group: 'test', log: memoryLog() });

async function open(path: string) {
  const opened = await tryOpen(path);
  if (!opened.ok) throw new Error(opened.error.message);
  cleanups.push(() => opened.engine.close());
  return opened.engine;
}

function entries(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true }).map(String);
  } catch {
    // It is being renamed.
    return [];
  }
}

/** Starts for the first time, and is killed as soon as its files are so. */
async function killedOnce(path: string, isSo: (files: readonly string[]) => boolean): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, `embedded:${path}`], { stdio: 'ignore' });
  cleanups.push(() => endServer(child, 'SIGKILL'));
  await expect.poll(() => isSo(entries(path)), { timeout: 240_000, interval: 1 }).toBe(true);
  await endServer(child, 'SIGKILL');
}

/** What of a folder, itself and all that is in it, others may do something with. */
function openToOthers(path: string): string[] {
  return ['', ...entries(path)].filter((name) => (statSync(join(path, name)).mode & 0o077) !== 0);
}

describe('the folder of an embedded engine', () => {
  it('opens after first starts that were killed, wherever they were', { timeout: FIRST_START_MS }, async () => {
    printSeed();
    const path = await emptyFolder();
    for (const most of [3, 20 + (SEED % 800)]) await killedOnce(path, (files) => files.length >= most);
    // By this file a database is told from an empty folder, long before it is complete.
    await killedOnce(path, (files) => files.some((name) => /^[^/]+\/PG_VERSION$/.test(name)));
    // What is not complete has another name.
    expect(readdirSync(path)).not.toContain('db');
    await (await createStore({ engine: await open(path), log: memoryLog() })).storeId();
    expect(readdirSync(path).toSorted()).toEqual(['db', 'lock']);
  });

  it('says in one line that its database is broken, and what to do', async () => {
    const path = await emptyFolder();
    await copyDatabase(path);
    await rm(join(path, 'db/global/pg_control'));
    const opened = await tryOpen(path);
    expect(opened).toMatchObject({ ok: false });
    const message = opened.ok ? '' : opened.error.message;
    expect(message).toMatch(
      /^cannot open the embedded queue in \S+: its database cannot be started \(.+\); if it stays/,
    );
    expect(message).toContain(`move ${join(path, 'db')} away`);
    expect(message).not.toMatch(/\n|\[object/);
    expect(readdirSync(path)).toEqual(['db']);
  });

  it('is open to its owner alone, with all that is in it, whatever the umask, and though it was open before', async () => {
    const umask = process.umask(0);
    cleanups.push(() => process.umask(umask));
    const parent = await emptyFolder();
    chmodSync(parent, 0o777);
    const path = join(parent, 'queue');
    await mkdir(path);
    await copyDatabase(path);
    for (const name of ['', ...entries(path)]) chmodSync(join(path, name), 0o777);
    process.umask(0);
    const engine = await open(path);
    await createStore({ engine, log: memoryLog() });
    expect(openToOthers(path)).toEqual([]);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('is open to its owner alone from its first start on, with a umask that closes nothing', {
    timeout: FIRST_START_MS,
  }, async () => {
    const umask = process.umask(0);
    cleanups.push(() => process.umask(umask));
    const path = join(await emptyFolder(), 'queue');
    const engine = await open(path);
    await createStore({ engine, log: memoryLog() });
    expect(openToOthers(path)).toEqual([]);
  });
});

const why = cannotMount();
describe.skipIf(why !== undefined)(`an embedded engine on a disk that is full${why ? ` (${why})` : ''}`, () => {
  let template: string;
  beforeAll(async () => {
    const { path } = await temporaryFolder();
    await copyDatabase(path);
    template = path;
    return () => rm(path, { recursive: true, force: true });
  });

  it('says at a first start how much room it lacks, and starts once there is more', {
    timeout: FIRST_START_MS,
  }, async () => {
    const disk = await smallDisk(20);
    cleanups.push(disk.remove);
    expect(await tryOpen(disk.path)).toMatchObject({
      error: { message: expect.stringMatching(/too little room \(\d+ MB are free\): a first start needs 64 MB$/) },
    });
    expect(readdirSync(disk.path)).toEqual([]);
    disk.resize(200);
    const engine = await open(disk.path);
    await engine.close();
  });

  it('is away until there is room again, though it can be read', async () => {
    const disk = await smallDisk(120);
    cleanups.push(disk.remove);
    await cp(template, disk.path, { recursive: true });
    const engine = await open(disk.path);
    const states: EngineState[] = [];
    engine.onStateChange((state) => states.push(state));
    const store = await createStore({ engine, log: memoryLog() });
    disk.fill();
    await eventually(() => states.length).toBe(1);
    expect(states).toEqual([{ up: false, message: expect.stringMatching(/fails: .*No space left on device/) }]);
    for (let reads = 0; reads < 200; reads += 1) await store.records('project-1');
    expect(states).toHaveLength(1);
    await disk.makeRoom();
    await eventually(() => states.map(({ up }) => up)).toEqual([false, true]);
    const lease = await store.acquireLease('project-1', 'daemon-1', 15_000);
    expect(lease).toBeDefined();
  });
});
