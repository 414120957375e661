import { cp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { maintain } from '../../src/adapters/engine/database-folder.ts';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Engine, EngineState } from '../../src/ports/engine.ts';
import type { Job, QueueName } from '../../src/ports/job-queue.ts';
import { endServer, startServer } from '../support/child-server.ts';
import { type EmbeddedFolder, embeddedFolder, temporaryFolder } from '../support/embedded-folder.ts';
import { eventually } from '../support/eventually.ts';
import { createFakedClock } from '../support/faked-clock.ts';
import { memoryLog } from '../support/memory-log.ts';
import { describeWith } from '../support/requirements.ts';

const CHILD = fileURLToPath(new URL('./embedded-child.ts', import.meta.url));

const YEAR_SECONDS = 365 * 86_400;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A folder that has been opened before, to copy from. */
let template: EmbeddedFolder;
let storeId: string;
beforeAll(async () => {
  template = await embeddedFolder();
  const engine = await open(template.path);
  storeId = await storeIdOn(engine);
  await engine.close();
});
afterAll(() => template.remove());

async function folder(): Promise<string> {
  const { path, remove } = await temporaryFolder();
  cleanups.push(remove);
  await cp(template.path, path, { recursive: true });
  return path;
}

const tryOpen = (path: string, group = 'test') => openEngine({ url: `embedded:${path}`, group, log: memoryLog() });

async function open(path: string, group = 'test'): Promise<Engine> {
  const opened = await tryOpen(path, group);
  if (!opened.ok) throw new Error(opened.error.message);
  cleanups.push(() => opened.engine.close());
  return opened.engine;
}

async function storeIdOn(engine: Engine): Promise<string> {
  return (await createStore({ engine, log: memoryLog() })).storeId();
}

async function child(path: string, env: Record<string, string> = {}) {
  const args = ['--import', 'tsx', CHILD, `embedded:${path}`];
  const process_ = await startServer(process.execPath, args, /working p-1/, { env: { ...process.env, ...env } });
  cleanups.push(() => endServer(process_, 'SIGKILL'));
  return process_;
}

describe('the embedded engine', () => {
  it('is for one process: a second one is refused with the name of the folder, also under another name', async () => {
    const path = await folder();
    const running = await child(path);
    const link = `${path}-link`;
    await symlink(path, link);
    cleanups.push(() => rm(link));
    for (const name of [path, link]) {
      const message = `the embedded queue in ${name} is in use by another ebb: stop that one, or use redis:// for several daemons`;
      expect(await tryOpen(name)).toEqual({ ok: false, error: { code: 'in_use', message } });
    }
    await endServer(running, 'SIGKILL');
    const engine = await open(path);
    expect(await tryOpen(path)).toMatchObject({ ok: false });
    await engine.close();
    await open(path);
  });

  it('brings back what a killed process had: its running job, its delayed jobs, its records, its lease', async () => {
    const path = await folder();
    await endServer(await child(path), 'SIGKILL');
    const engine = await open(path);
    const log = memoryLog();
    const store = await createStore({ engine, log });
    expect([...(await store.records('p-1')).keys()]).toEqual(['c-1']);
    expect(await store.acquireLease('p-1', 'another', 1000)).toBeUndefined();
    const recovery = { lockDurationMs: 10_000, stalledIntervalMs: 200 };
    const queue = createJobQueue({ engine, log, clock: systemClock(), onFailed: () => {}, recovery });
    cleanups.push(() => queue.close(5000));
    expect(await queue.delayedIds('boundaries')).toEqual(['b-later']);
    const jobs: Job[] = [];
    const handler = async (job: Job) => {
      jobs.push(job);
      return { kind: 'done' as const };
    };
    await queue.work('reconcile', handler, { concurrency: 1 });
    await eventually(() => jobs).toMatchObject([{ data: { projectId: 'p-1' } }]);
    await queue.add('reconcile', { key: 'p-1', data: { projectId: 'p-1' } });
    await eventually(() => jobs).toHaveLength(2);
  });

  it('keeps the groups of one folder apart, each with what it had', async () => {
    const path = await folder();
    const other = await open(path, 'Fleet-A.2');
    expect(await storeIdOn(other)).not.toBe(storeId);
    await other.close();
    expect(await storeIdOn(await open(path))).toBe(storeId);
  });

  it('stops, and says so, when its folder is removed under it', async () => {
    const path = await folder();
    const engine = await open(path);
    const states: EngineState[] = [];
    engine.onStateChange((state) => states.push(state));
    const store = await createStore({ engine, log: memoryLog() });
    await rm(join(path, 'lock'));
    await eventually(() => states).toMatchObject([{ up: false, message: expect.stringContaining(path) }]);
    await expect(store.storeId()).rejects.toThrow();
    await writeFile(join(path, 'lock'), 'of another process');
    await engine.close();
    expect(await readdir(path)).toContain('lock');
  });

  it('gives back the room that changes took', async () => {
    const path = await folder();
    const engine = await open(path);
    if (engine.kind !== 'postgres') throw new Error('not a Postgres');
    const { pool } = engine;
    await pool.query('CREATE TABLE churn (id integer PRIMARY KEY, body text)');
    const change = `INSERT INTO churn SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 20000) AS g
                    ON CONFLICT (id) DO UPDATE SET body = excluded.body`;
    const size = async (of: string) => (await pool.query<{ bytes: unknown }>(`SELECT ${of} AS bytes`)).rows[0]?.bytes;
    const walSize = '(SELECT sum(size) FROM pg_ls_waldir())::integer';
    for (let i = 0; i < 6; i += 1) await pool.query(change);
    const walBefore = Number(await size(walSize));
    await maintain(pool);
    expect(Number(await size(walSize))).toBeLessThan(walBefore);
    const tableBefore = await size(`pg_table_size('churn')`);
    await pool.query(change);
    expect(await size(`pg_table_size('churn')`)).toBe(tableBefore);
  });

  it('says in one line what is wrong with a folder or a name', async () => {
    const { path, remove } = await temporaryFolder();
    cleanups.push(remove);
    const file = join(path, 'file');
    await writeFile(file, '');
    const refusals: [url: string, group: string, message: RegExp][] = [
      [`embedded:${file}`, 'g', /^cannot write to the folder .*file \(EEXIST\): make it writable, or name another/],
      [`embedded:${join(file, 'below')}`, 'g', /^cannot write to the folder .*below \(ENOTDIR\): /],
      ['embedded:', 'g', /^embedded: needs a folder/],
      [
        'mysql://user:secret@host',
        'g',
        /^EBB_QUEUE_URL must start with embedded:, redis:\/\/, rediss:\/\/ or postgres:\/\/$/,
      ],
      [`embedded:${path}`, 'a}b', /^the group "a}b" is not usable: set EBB_GROUP to letters, digits/],
    ];
    for (const [url, group, message] of refusals) {
      const opened = await openEngine({ url, group, log: memoryLog() });
      expect(opened).toEqual({ ok: false, error: { message: expect.stringMatching(message) } });
    }
  });
});

describeWith('faketime', 'the queue of a killed process whose clock was a year ahead', () => {
  it('is worked at once by one whose clock is right: its running job, its schedule, and operations that wait', async () => {
    const path = await folder();
    const clock = await createFakedClock();
    cleanups.push(() => clock.remove());
    await clock.setAhead(YEAR_SECONDS);
    await endServer(await child(path, clock.env), 'SIGKILL');
    const engine = await open(path);
    const recovery = { lockDurationMs: 10_000, stalledIntervalMs: 200 };
    const queue = createJobQueue({ engine, log: memoryLog(), clock: systemClock(), onFailed: () => {}, recovery });
    cleanups.push(() => queue.close(5000));
    const worked: QueueName[] = [];
    const handler = async (job: Job) => {
      worked.push(job.queue);
      return { kind: 'done' as const };
    };
    // As a daemon does in every round.
    await queue.every('inventory', 1_000);
    for (const name of ['reconcile', 'inventory', 'operations'] as const) {
      await queue.work(name, handler, { concurrency: 1 });
      await eventually(() => worked).toContain(name);
    }
    const timesInventoried = () => worked.filter((name) => name === 'inventory').length;
    await eventually(timesInventoried).toBeGreaterThan(2);
    expect(await queue.delayedIds('boundaries')).toEqual(['b-later']);
  });
});
