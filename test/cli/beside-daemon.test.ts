/** Commands beside a daemon that has the embedded store for itself: they ask it for what is stored. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';

const POLICIES = `version: 1
sources: { counts: { from: prometheus, url: "http://127.0.0.1:9", query: 'sum(c{id="$compute"})' } }
policies:
  - name: room
    kind: headroom
    select: { projects: ["*"], min_age: 0s }
    connections: counts
    target: 70%
    max_size: 2
  - name: always-one
    kind: schedule
    select: { projects: ["web-blog"], min_age: 0s }
    windows: [{ at: always, size: 1 }]
    otherwise: leave
`;

describe('beside a daemon that has the embedded store for itself', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let cwd = '';
  let env: Record<string, string> = {};
  afterAll(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  beforeAll(async () => {
    const active = { state: 'active', suspendTimeoutSeconds: -1 } as const;
    const platform = await startTestPlatform({ 'web-shop': active, 'web-blog': active });
    undo.push(() => platform.close());
    const folder = await makeFolder();
    undo.push(() => folder.remove());
    cwd = folder.path;
    await writeFile(join(cwd, 'policy.yaml'), POLICIES);
    const { url, group } = await prepareQueue(cwd);
    const given = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: url, EBB_GROUP: group };
    env = { ...given, EBB_POLICIES: 'policy.yaml' };
    const read = readSettings({ env, cwd });
    const opened = read.ok ? await openStore(read.settings) : read;
    if (!opened.ok) throw new Error(JSON.stringify(opened));
    const nowMs = Date.now();
    const { store, close } = opened.value;
    await store.putSamples('ep-web-shop', [{ atMs: nowMs - 5_000, connections: 100, source: 'counts' }]);
    await store.putHold({
      ...{ id: 'h-1', projectId: 'web-blog', computeId: 'ep-web-blog', owner: 'anna', reason: 'import', freeze: true },
      ...{ createdAtMs: nowMs - 3_600_000, expiresAtMs: nowMs + 3_600_000 },
    });
    await close();
    const daemon = await startTestDaemon({ platform, folder: cwd, env: { EBB_MODE: 'observe' } });
    undo.push(() => daemon.stop());
    // What is stored is told by compute once the daemon has met it.
    const hasMetBoth = async () => {
      const { records } = (await (await fetch(`${daemon.url}/api/v1/records`)).json()) as { records: unknown[] };
      expect(records).toHaveLength(2);
    };
    await vi.waitFor(hasMetBoth, { timeout: 100_000, interval: 100 });
  });

  async function ebb(...args: string[]) {
    const run = startEbb(args, { cwd, env });
    const status = await run.ended;
    return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
  }

  it('ebb explain shows the arithmetic of what the daemon has counted', async () => {
    const { status, stdout, stderr } = await ebb('explain', 'ep-web-shop', '--live', '--json');
    const alone = 'note: only this project was read: how many others room restarts now (at_once) is in ebb plan';
    expect({ status, stderr }).toEqual({ status: 0, stderr: alone });
    const { trace } = JSON.parse(stdout) as { trace: { code: string; message: string }[] };
    expect(trace.find(({ code }) => code === 'headroom')?.message).toContain(
      'peak 100 connections, 143 needed, 225 usable',
    );
  });

  it('ebb forecast and ebb diff count its holds', async () => {
    const forecast = await ebb('forecast', 'ep-web-blog', '--live', '--days', '1', '--json');
    expect([forecast.status, forecast.stderr]).toEqual([0, '']);
    const [{ segments }] = JSON.parse(forecast.stdout).computes;
    expect(segments[0]).toMatchObject({ max_cu: 0.25, policies: ['hold by anna'] });
    expect(segments[1]).toMatchObject({ max_cu: 1, policies: ['always-one'] });
    const diff = await ebb('diff', 'policy.yaml', 'policy.yaml', '--live', '--days', '1', '--json');
    expect([diff.status, diff.stderr]).toEqual([0, '']);
  });
});
