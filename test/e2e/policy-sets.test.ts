import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import { startTestDaemon, type TestDaemon, type TestDaemonOptions } from '../support/daemon.ts';
import { openTestEngine } from '../support/engines.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { replaceFile } from '../support/replace-file.ts';
import { describeWith } from '../support/requirements.ts';

const WAIT = { timeout: 40_000, interval: 30 };

/** Every compute at this size always; with a window in 2099, whose start is a boundary. */
const always = (size: string, extra = '') => `version: 1
policies:
  - name: always
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: ${size} }]
    otherwise: leave
${extra}`;

const TOMORROW_MS = Math.ceil(Date.now() / 1000) * 1000 + 24 * 3_600_000;
const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
const windowTomorrow = `
  - name: tomorrow
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    priority: 5
    windows: [{ at: ${iso(TOMORROW_MS)}/${iso(TOMORROW_MS + 3_600_000)}, size: 3 }]
    otherwise: leave
`;

async function aGroup(computes: number, usual: Partial<FleetCompute> = {}) {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const names = Array.from({ length: computes }, (_, index) => `web-${index}`);
  const platform = await startTestPlatform(Object.fromEntries(names.map((name) => [name, usual])), {
    operationTimeMs: 50,
  });
  onTestFinished(() => platform.close());
  const start = async (policies: string, options: Partial<TestDaemonOptions> = {}) => {
    const folder = await makeFolder({ 'policy.yaml': policies });
    onTestFinished(() => folder.remove());
    const env = { EBB_QUEUE_URL: redis.url, ...options.env };
    const daemon = await startTestDaemon({ platform, folder: folder.path, reloads: true, ...options, env });
    onTestFinished(() => daemon.stop());
    return { ...daemon, write: (text: string) => replaceFile(join(folder.path, 'policy.yaml'), text) };
  };
  const sizes = async () => {
    const writes = (await platform.writes()).filter(({ status }) => status === 200);
    return writes.map(({ body }) => (body as { endpoint: Record<string, number> }).endpoint.autoscaling_limit_max_cu);
  };
  return { redis, platform, names, start, sizes };
}

async function openRedisOf({ url }: RedisServer) {
  const { engine, log } = await openTestEngine(url);
  const store = await createStore({ engine, log });
  const queue = createJobQueue({ engine, clock: systemClock(), log, onFailed: () => {} });
  onTestFinished(async () => {
    await queue.close(0);
    await engine.close();
  });
  return { engine, store, queue };
}

const metric = async (daemon: TestDaemon, line: RegExp) => {
  const text = await (await request(`${daemon.url}/metrics`)).body.text();
  return line.exec(text)?.[1];
};
const said = (daemon: TestDaemon, event: string) => daemon.logs.filter((line) => line.event === event);
const times = (count: number, size: number) => Array.from({ length: count }, () => size);

describeWith('redis-server', 'a policy set that is reloaded', () => {
  it('waits for approval where it would disconnect many, and then takes its predecessor and its boundaries away', async () => {
    const { redis, platform, names, start, sizes } = await aGroup(8);
    const daemon = await start(always('0.5-1', windowTomorrow), { env: { EBB_STAGING: 'always' } });
    const { store, queue } = await openRedisOf(redis);
    await expect.poll(sizes, WAIT).toEqual(times(8, 1));
    const boundary = `b-${TOMORROW_MS}`;
    await expect.poll(() => queue.delayedIds('boundaries'), WAIT).toContain(boundary);
    for (const name of names) await platform.control(`computes/ep-${name}/connect`, { connections: 2 });
    const active = async () => {
      const text = await (await request(`${daemon.url}/metrics`)).body.text();
      return text.match(/^ebb_compute_state\{.*state="active"\} 1$/gm)?.length;
    };
    await expect.poll(active, WAIT).toBe(8);

    await daemon.write(always('2'));
    await expect.poll(() => metric(daemon, /^ebb_staged_changes (\d+)$/m), WAIT).toBe('8');
    const [staged] = said(daemon, 'ebb.policies_staged');
    expect(staged).toMatchObject({ disconnected: 8, computes: 8 });
    expect(staged?.msg).toContain(`ebb approve ${staged?.hash}`);
    expect((await request(`${daemon.url}/readyz`)).statusCode).toBe(200);
    expect(await sizes()).toEqual(times(8, 1));
    expect(await queue.delayedIds('boundaries')).toContain(boundary);

    await store.approve({ hash: String(staged?.hash), who: 'anna', atMs: Date.now() });
    await expect.poll(sizes, WAIT).toEqual([...times(8, 1), ...times(8, 2)]);
    expect(await queue.delayedIds('boundaries')).not.toContain(boundary);
    expect(await metric(daemon, /^ebb_staged_changes (\d+)$/m)).toBe('0');
    expect(await metric(daemon, /^(ebb_policy_info\{policy="tomorrow".*)$/m)).toBeUndefined();
    expect(said(daemon, 'ebb.policies_staged')).toHaveLength(1);
  });

  it('lets nothing be written where it is the first and would disconnect many, unless it was accepted', async () => {
    const { platform, start } = await aGroup(8, { state: 'active', connections: 1 });
    const first = await start(always('2'), { env: { EBB_STAGING: 'always' } });
    await expect.poll(() => metric(first, /^ebb_staged_changes (\d+)$/m), WAIT).toBe('8');
    expect(await metric(first, /^ebb_write_blocked\{reason="staged"\} (\d)$/m)).toBe('1');
    const hash = String(said(first, 'ebb.policies_staged')[0]?.hash);
    await first.stop();
    const second = await start(always('2'), { env: { EBB_STAGING: 'always' }, accept: hash.slice(0, 12) });
    await expect.poll(() => metric(second, /^ebb_write_blocked\{reason="staged"\} (\d)$/m), WAIT).toBe('0');
    expect(said(second, 'ebb.policies_staged')).toEqual([]);
    expect(await platform.writes()).toEqual([]);
  });

  it('keeps the daemons from writing that still have an older one, until they have read it too', async () => {
    const { start, sizes } = await aGroup(1);
    const older = await start(always('0.5-1'));
    await expect.poll(sizes, WAIT).toEqual([1]);
    const newer = await start(always('2'));
    await expect.poll(sizes, WAIT).toEqual([1, 2]);
    await expect.poll(() => said(older, 'ebb.superseded').length, WAIT).toBe(1);
    expect(await metric(older, /^ebb_write_blocked\{reason="superseded"\} (\d)$/m)).toBe('1');
    await older.write(always('2'));
    await expect.poll(() => metric(older, /^ebb_write_blocked\{reason="superseded"\} (\d)$/m), WAIT).toBe('0');
    await newer.write(always('3'));
    await older.write(always('3'));
    await expect.poll(sizes, WAIT).toEqual([1, 2, 3]);
  });

  it('does not count again where the store comes back with an older copy, whose newest set it was', async () => {
    const { redis, start, sizes } = await aGroup(1);
    const older = await start(always('0.5-1'));
    await expect.poll(sizes, WAIT).toEqual([1]);
    const { engine, store } = await openRedisOf(redis);
    if (engine.kind !== 'redis') throw new Error('not on Redis');
    const key = `${engine.prefix}:store:generation`;
    const copy = await engine.commands.hgetall(key);
    const newer = await start(always('2'));
    await expect.poll(sizes, WAIT).toEqual([1, 2]);
    await expect.poll(() => said(older, 'ebb.superseded').length, WAIT).toBe(1);
    const newest = await store.generation();
    await newer.stop();
    await engine.commands.multi().del(key).hset(key, copy).exec();
    await expect.poll(() => said(older, 'ebb.generation_restored').length, WAIT).toBe(1);
    expect(await store.generation()).toEqual(newest);
    expect(await sizes()).toEqual([1, 2]);
  });

  it('outlives a store that comes back empty, and so do the baselines', async () => {
    const { redis, start, sizes } = await aGroup(2);
    const daemon = await start(always('0.5-1'));
    await expect.poll(sizes, WAIT).toEqual([1, 1]);
    expect(said(daemon, 'ebb.store_new')).toHaveLength(1);
    const { engine, store } = await openRedisOf(redis);
    const settled = async () => (await store.records('web-0')).get('ep-web-0')?.openOperations;
    await expect.poll(settled, WAIT).toEqual([]);
    const generation = await store.generation();
    if (engine.kind !== 'redis') throw new Error('not on Redis');
    await engine.commands.flushall();
    const baseline = async () => (await store.records('web-1')).get('ep-web-1')?.baseline;
    await expect.poll(baseline, WAIT).toEqual({ minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: 300 });
    // A look that is under way may bring its record back before the store is looked after.
    await expect.poll(() => store.generation(), WAIT).toEqual(generation);
    await expect.poll(() => said(daemon, 'ebb.store_empty').length, WAIT).toBe(1);
    expect(await sizes()).toEqual([1, 1]);
  });
});
