import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuditFile } from '../../src/adapters/store/audit-file.ts';
import { type AuditExportDeps, startAuditExport } from '../../src/app/operator/audit-export.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import { at } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOON = at('2026-03-04T12:00:00Z');
const HOUR_MS = 3_600_000;

const entry = (id: string, atMs: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  ...{ id, atMs, projectId: 'p-one', computeId: 'ep-one', kind: 'freeze', setHash: 'abc', who: 'ann' },
  ...{ reasons: [{ code: 'freeze', message: 'migration' }], ...more },
});

/** A daemon that exports to a file; `restart` gives another one on the same store and file. */
async function exporting() {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-audit-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'logs', 'audit.jsonl');
  const world = { nowMs: NOON, boundary: false, failures: [] as unknown[] };
  const store = createMemoryStore(createSteppedClock(NOON, () => false));
  const restart = () => {
    let round = async () => {};
    const running = startAuditExport(
      {
        store,
        clock: {
          now: () => world.nowMs,
          every: (_: number, task: () => Promise<void>) => {
            round = task;
            return { close: async () => {} };
          },
        },
        fleet: {
          get boundaryReconciles() {
            return new Map(world.boundary ? [[world.nowMs, new Map([['main', 1]])]] : []);
          },
        },
        runInBackground: async (_: string, task: () => Promise<void>) =>
          task().catch((error: unknown) => void world.failures.push(error)),
      } as unknown as AuditExportDeps,
      { to: createAuditFile({ path, now: () => world.nowMs }), task: 'audit_export' },
    );
    return { round: () => round(), close: () => running.close() };
  };
  const idsIn = async (file = path) => {
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line).id as string);
  };
  return { ...{ store, world, path, restart, idsIn }, daemon: restart() };
}

describe('the audit as a file', () => {
  it('has each line once, oldest first, as it is stored, in the form of ebb audit --json', async () => {
    const { store, daemon, path, idsIn } = await exporting();
    await daemon.round();
    await store.appendHistory([entry('a', NOON - 2000)]);
    await store.appendHistory([entry('b', NOON - 1000, { kind: 'held' }), entry('c', NOON - 1000)]);
    await daemon.round();
    await store.appendHistory([entry('d', NOON)]);
    await daemon.round();
    await daemon.round();
    expect(await idsIn()).toEqual(['a', 'c', 'd']);
    const [first = ''] = (await readFile(path, 'utf8')).split('\n');
    expect(JSON.parse(first)).toMatchObject({
      ...{ at: '2026-03-04T11:59:58Z', who: 'ann', kind: 'freeze', compute_id: 'ep-one', verified: false },
      reasons: [{ code: 'freeze', message: 'migration' }],
    });
    // It has names of people and their reasons.
    expect((await stat(path)).mode & 0o077).toBe(0);
  });

  it('goes on where it ended, also after days, and with a last line that was cut off', async () => {
    const { store, daemon, world, path, restart } = await exporting();
    await store.appendHistory([entry('a', NOON)]);
    await daemon.round();
    await daemon.close();
    await store.appendHistory([entry('b', NOON + 1)]);
    world.nowMs += 72 * HOUR_MS;
    await writeFile(path, '{"at":"2026-03-04T12:0', { flag: 'a' });
    await utimes(path, world.nowMs / 1000, world.nowMs / 1000);
    await restart().round();
    const [first = '', cut, second = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
    expect([JSON.parse(first).id, cut, JSON.parse(second).id, rest]).toEqual([
      'a',
      '{"at":"2026-03-04T12:0',
      'b',
      [''],
    ]);
  });

  it('takes what is stored late, and loses nothing while it cannot write', async () => {
    const { store, daemon, world, path, idsIn } = await exporting();
    await daemon.round();
    // A file stands where its folder is to be.
    await writeFile(dirname(path), '');
    await store.appendHistory([entry('late', NOON - 20 * HOUR_MS), entry('a', NOON)]);
    for (let round = 0; round < 60; round += 1) await daemon.round();
    expect(world.failures.length).toBeGreaterThan(0);
    await rm(dirname(path));
    for (let round = 0; round < 60; round += 1) await daemon.round();
    expect((await idsIn()).sort()).toEqual(['a', 'late']);
  });

  it('begins a new file each day, and keeps the last 366', async () => {
    const { store, daemon, world, path, idsIn } = await exporting();
    await store.appendHistory([entry('a', NOON)]);
    await daemon.round();
    for (let day = 1; day <= 367; day += 1)
      await writeFile(`${path}.${new Date(NOON - day * 24 * HOUR_MS).toISOString().slice(0, 10)}`, '');
    await writeFile(`${path}.old`, 'of somebody else');
    world.nowMs += 24 * HOUR_MS;
    await store.appendHistory([entry('b', world.nowMs)]);
    await daemon.round();
    expect([await idsIn(), await idsIn(`${path}.2026-03-04`)]).toEqual([['b'], ['a']]);
    const names = (await readdir(join(path, '..'))).sort();
    expect(names.filter((name) => /\d$/.test(name))).toHaveLength(366);
    expect([names.includes('audit.jsonl.2025-03-03'), names.includes('audit.jsonl.old')]).toEqual([false, true]);
  });

  it('begins a new file on the next day, also where somebody has moved the last one', async () => {
    const { store, world, daemon, path, idsIn } = await exporting();
    await store.appendHistory([entry('a', NOON)]);
    await daemon.round();
    await rm(path);
    world.nowMs += 24 * HOUR_MS;
    await store.appendHistory([entry('b', world.nowMs)]);
    await daemon.round();
    expect([world.failures, await idsIn()]).toEqual([[], ['b']]);
  });

  it('writes nothing at a boundary', async () => {
    const { store, daemon, world, path, idsIn } = await exporting();
    await store.appendHistory([entry('a', NOON)]);
    world.boundary = true;
    await daemon.round();
    await expect(stat(path)).rejects.toThrow();
    world.boundary = false;
    await daemon.round();
    expect(await idsIn()).toEqual(['a']);
  });
});
