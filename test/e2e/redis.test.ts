import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { openOnceMet, startTestDaemon } from '../support/daemon.ts';
import { boundarySoon, makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

async function start(opensInMs: number, daemons: number, more: Record<string, string> = {}) {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const names = Array.from({ length: 12 }, (_, index) => `web-${index}`);
  const computes = Object.fromEntries(
    names.map((name, index) => [name, index % 3 === 0 ? { state: 'active' as const } : {}]),
  );
  const platform = await startTestPlatform(computes, { operationTimeMs: 300 });
  onTestFinished(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': boundarySoon(3_600_000) });
  onTestFinished(() => folder.remove());
  const env = { EBB_QUEUE_URL: redis.url, ...more };
  const running = await Promise.all(
    Array.from({ length: daemons }, () => startTestDaemon({ platform, folder: folder.path, env, reloads: true })),
  );
  for (const daemon of running) onTestFinished(() => daemon.stop());
  await openOnceMet(folder.path, running, { computes: names.length, inMs: opensInMs, token: more.EBB_TOKEN });
  const changed = async () =>
    (await platform.writes()).filter(({ status }) => status === 200).map(({ path }) => path.split('/').at(-1));
  return { redis, platform, daemons: running, names: names.map((name) => `ep-${name}`).toSorted(), changed };
}

describeWith('redis-server', 'daemons on one Redis', () => {
  it('change each compute once at a boundary, though one of them stops just then', async () => {
    const { daemons, names, changed } = await start(4_000, 3);
    await expect.poll(changed, { timeout: 50_000, interval: 20 }).not.toEqual([]);
    await daemons[0]?.stop();
    await expect.poll(async () => (await changed()).toSorted(), { timeout: 50_000 }).toEqual(names);
  });

  it('live through a Redis that goes away and comes back, and then change what is due', async () => {
    const { redis, daemons, names, changed } = await start(8_000, 1);
    const metrics = async () => (await request(`${daemons[0]?.url}/metrics`)).body.text();
    const ready = async () => (await request(`${daemons[0]?.url}/readyz`)).statusCode;
    await expect.poll(ready).toBe(200);
    await redis.kill();
    await expect.poll(ready).toBe(503);
    expect(await metrics()).toMatch(/^ebb_outages_total\{dependency="Redis"\} 1$/m);
    await redis.start();
    await expect.poll(ready).toBe(200);
    await expect.poll(async () => (await changed()).toSorted(), { timeout: 50_000 }).toEqual(names);
  });

  it('show what they last knew with its age while Redis is away, and refuse to be told anything', async () => {
    const token = 'a-token-of-some-length';
    const { redis, daemons } = await start(3_600_000, 1, { EBB_TOKEN: token });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const ask = (path: string, init = {}) => fetch(`${daemons[0]?.url}${path}`, { headers, ...init });
    const body = { compute: 'ep-web-0', owner: 'ann', reason: 'import', for_seconds: 3600, freeze: true };
    const hold = () => ask('/api/v1/holds', { method: 'POST', body: JSON.stringify(body) });
    type Status = { computes: Record<string, number>; stale?: object };
    const status = async () => (await (await ask('/api/v1/status')).json()) as Status;
    await expect.poll(async () => (await hold()).status).toBe(201);
    await expect.poll(async () => (await status()).computes.held).toBe(1);
    await redis.kill();
    await expect.poll(async () => (await status()).stale).toBeDefined();
    expect(await status()).toMatchObject({
      holds: [{ compute_id: 'ep-web-0', owner: 'ann' }],
      readiness: { ready: false },
      stale: { since: expect.any(String), seconds: expect.any(Number) },
    });
    const page = await ask('/', { headers: { ...headers, accept: 'text/html' } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('The store is unavailable.')]);
    const told = await hold();
    expect([told.status, await told.json()]).toMatchObject([503, { code: 'unavailable' }]);
  });
});
