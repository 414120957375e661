import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { type DaemonEvent, type RunningDaemon, runDaemon } from '../../src/compose.ts';
import { loadPolicySet } from '../../src/policy/load.ts';
import { readSettings } from '../../src/settings.ts';
import { boundarySoon, makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function runOn(
  platform: Platform,
  folder: string,
  onEvent?: (event: DaemonEvent) => void,
): Promise<RunningDaemon> {
  const queue = await prepareQueue(folder);
  const env = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: platform.apiKey,
    EBB_MODE: 'enforce',
    EBB_QUEUE_URL: queue.url,
    EBB_GROUP: queue.group,
    EBB_LISTEN: '127.0.0.1:0',
  };
  const read = readSettings({ env, cwd: folder });
  const loaded = await loadPolicySet({ paths: [join(folder, 'policy.yaml')] });
  if (!read.ok || !loaded.ok) throw new Error(JSON.stringify([read, loaded]));
  const started = await runDaemon({
    settings: read.settings,
    policies: loaded.set,
    version: 'test',
    rhythm: { inventoryMs: 200, keeperMs: 500, waitingMs: 300 },
    logTo: new Writable({ write: (_chunk, _encoding, done) => done() }),
    ...(onEvent && { onEvent }),
  });
  if (!started.ok) throw new Error(started.problem);
  undo.push(() => started.daemon.stop());
  return started.daemon;
}

describe('a boundary', () => {
  it('changes each selected compute exactly once, and later passes change nothing', async () => {
    const platform = await startTestPlatform(
      {
        one: {},
        two: {},
        three: { state: 'active', connections: 3 },
        four: { state: 'active', connections: 1 },
        five: { maxCu: 2, minCu: 1 },
      },
      { operationTimeMs: 300 },
    );
    undo.push(() => platform.close());
    const folder = await makeFolder();
    undo.push(() => folder.remove());
    await prepareQueue(folder.path);
    await writeFile(join(folder.path, 'policy.yaml'), boundarySoon(6_000));
    const ended: DaemonEvent[] = [];
    const daemon = await runOn(platform, folder.path, (event) => {
      if (event.kind === 'operation_ended') ended.push(event);
    });

    const sizes = async () =>
      (await platform.writes()).map(({ path, body }) => [path.split('/').at(-1), JSON.stringify(body)]);
    await expect.poll(sizes, { timeout: 50_000, interval: 100 }).toHaveLength(6);
    await expect.poll(() => ended.length, { timeout: 50_000 }).toBeGreaterThanOrEqual(4);
    const lists = async () =>
      (await platform.requests()).filter(({ path }) => path.split('?')[0] === '/api/v2/projects').length;
    const listsBefore = await lists();
    await expect.poll(lists, { timeout: 50_000 }).toBeGreaterThan(listsBefore + 5);
    await daemon.stop();

    const again = await runOn(platform, folder.path);
    await expect.poll(lists, { timeout: 50_000 }).toBeGreaterThan(listsBefore + 10);
    await again.stop();

    const writes = await sizes();
    const wanted = '{"endpoint":{"autoscaling_limit_min_cu":1,"autoscaling_limit_max_cu":2}}';
    const toTheWindow = writes.filter(([, body]) => body === wanted).map(([compute]) => compute);
    expect(toTheWindow.toSorted()).toEqual(['ep-five', 'ep-four', 'ep-one', 'ep-three', 'ep-two']);
    // Before the boundary the sleeping compute that was too large went down at once; nothing else ever happened.
    expect(writes).toHaveLength(6);
  }, 120_000);
});
