/** `ebb store dump` and `ebb store load`, from Redis to an embedded store. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dumpLines } from '../../src/adapters/store/dump-file.ts';
import type { AuditLine } from '../../src/cli/audit.ts';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { aRecord } from '../support/builders.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

describeWith('redis-server', 'ebb store', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let cwd = '';
  let redis = '';
  beforeEach(async () => {
    const server = await startRedisServer();
    undo.push(() => server.close());
    const folder = await makeFolder();
    undo.push(() => folder.remove());
    cwd = folder.path;
    redis = server.url;
  });
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  async function ebb(on: string, ...args: string[]) {
    const run = startEbb(args, { cwd, env: { EBB_QUEUE_URL: on, EBB_GROUP: 'dump' } });
    const status = await run.ended;
    return { status, lines: run.lines, stderr: run.stderr().trimEnd() };
  }

  // Nine processes, one after the other.
  it('copies a store to one of another kind, after it has said what it would write', async () => {
    const embedded = `embedded:${join(cwd, 'other')}`;
    const why = ['--for', '1h', '--reason', 'import'];
    expect((await ebb(redis, 'freeze', '--all', ...why)).status).toBe(0);
    const counts = 'holds 0, freezes 1, records 0, usage 0, history 0, audit 1';
    const dumped = await ebb(redis, 'store', 'dump', '--out', 'store.jsonl');
    expect(dumped).toMatchObject({ status: 0, lines: [`store.jsonl: ${counts}`] });
    expect((await stat(join(cwd, 'store.jsonl'))).mode & 0o777).toBe(0o600);
    expect((await readFile(join(cwd, 'store.jsonl'), 'utf8')).split('\n')).toHaveLength(5);

    const asked = await ebb(embedded, 'store', 'load', 'store.jsonl');
    expect(asked.lines).toEqual([`would be written: ${counts}`]);
    expect([asked.status, asked.stderr]).toEqual([1, 'ebb: nothing is written yet: load again with --yes']);
    const loaded = await ebb(embedded, 'store', 'load', 'store.jsonl', '--yes');
    expect(loaded).toEqual({ status: 0, lines: [`written: ${counts}`], stderr: '' });
    expect((await ebb(embedded, 'status', '--json')).lines.join('\n')).toContain('"reason": "import"');
    const audit = JSON.parse((await ebb(embedded, 'audit', '--json')).lines.join('\n')) as AuditLine[];
    expect(audit.map(({ kind }) => kind)).toEqual(['restore', 'freeze']);

    const again = await ebb(embedded, 'store', 'load', 'store.jsonl', '--yes');
    expect([again.status, again.lines]).toEqual([1, []]);
    expect(again.stderr).toMatch(/^ebb: the store is not empty, it has 2 entries: .*--keep.*$/);
    const kept = await ebb(embedded, 'store', 'load', 'store.jsonl', '--yes', '--keep');
    expect(kept.lines).toEqual([
      expect.stringMatching(/^left as it is: freeze /),
      'left as it is: history and audit',
      'written: holds 0, freezes 0, records 0, usage 0, history 0, audit 0',
    ]);
  });

  it('writes the rest if a project is in use, and the audit says what was written', async () => {
    const records = ['p-one', 'p-two'].map(
      (projectId) => ({ kind: 'record', projectId, computeId: `ep-${projectId}`, record: aRecord() }) as const,
    );
    await writeFile(join(cwd, 'store.jsonl'), Readable.from(dumpLines(Readable.from(records))));
    const read = readSettings({ env: { EBB_QUEUE_URL: redis, EBB_GROUP: 'dump', EBB_API_KEY: 'secret' }, cwd });
    const opened = read.ok ? await openStore(read.settings) : undefined;
    if (!opened?.ok) throw new Error('the store is not open');
    undo.push(() => opened.value.close());
    await opened.value.store.acquireLease('project-p-one', 'a daemon', 60_000);
    expect(await ebb(redis, 'store', 'load', 'store.jsonl', '--yes')).toEqual({
      ...{ status: 1, lines: ['written: holds 0, freezes 0, records 1, usage 0, history 0, audit 0'] },
      stderr: 'ebb: p-one is in use by a daemon: stop all daemons, and load again with --keep (entries not written: 1)',
    });
    expect(await opened.value.store.projectIds()).toEqual(['p-two']);
    const [audit] = await opened.value.store.history({ limit: 1 });
    expect(audit?.reasons[0]?.message).toBe('the store was loaded from a dump: 0 holds, 0 freezes, 1 records');
  });
});

interface Stored {
  records: unknown[];
}

describe('ebb store dump beside a daemon with an embedded store', () => {
  it('writes what the daemon has stored, and gives it to nobody without a token', async () => {
    const platform = await startTestPlatform({ shop: {} });
    const folder = await makeFolder({ 'policy.yaml': 'version: 1\npolicies: []\n' });
    const { url, group } = await prepareQueue(folder.path);
    const daemon = await startTestDaemon({ platform, folder: folder.path, env: { EBB_MODE: 'observe' } });
    const env = { EBB_QUEUE_URL: url, EBB_GROUP: group };
    const ebb = async (...args: string[]) => {
      const run = startEbb(args, { cwd: folder.path, env });
      return { status: await run.ended, lines: run.lines, stderr: run.stderr().trimEnd() };
    };
    try {
      const stored = async () => ((await (await fetch(`${daemon.url}/api/v1/records`)).json()) as Stored).records;
      await expect.poll(stored).toHaveLength(1);
      expect((await ebb('freeze', '--all', '--for', '1h', '--reason', 'import')).stderr).toBe('');
      const dumped = await ebb('store', 'dump', '--out', 'store.jsonl');
      expect(dumped).toMatchObject({ status: 0, stderr: '' });
      expect(dumped.lines).toEqual([expect.stringMatching(/^store.jsonl: holds 0, freezes 1, records 1, /)]);
      expect((await fetch(`${daemon.url}/dump`)).status).toBe(401);
    } finally {
      await daemon.stop();
      await platform.close();
    }
    const other = { ...env, EBB_QUEUE_URL: `embedded:${join(folder.path, 'other')}` };
    const load = startEbb(['store', 'load', 'store.jsonl', '--yes'], { cwd: folder.path, env: other });
    expect([await load.ended, load.stderr()]).toEqual([0, '']);
    expect(load.lines).toEqual([expect.stringMatching(/^written: holds 0, freezes 1, records 1, /)]);
    await folder.remove();
  });
});
