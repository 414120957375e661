import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startTestDaemon } from '../support/daemon.ts';
import { askRedis } from '../support/engine-daemon.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const WAIT = { timeout: 60_000, interval: 100 };
const SIZED = `version: 1
policies:
  - name: sized
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: 1-2 }]
    otherwise: leave
`;

describeWith('redis-server', 'a stored record that cannot be read', () => {
  it('keeps its compute untouched and the daemon not ready, by its name, until it is gone; the others are changed', async () => {
    const redis = await startRedisServer();
    onTestFinished(() => redis.close());
    const platform = await startTestPlatform({ one: {}, two: {} }, { operationTimeMs: 100 });
    onTestFinished(() => platform.close());
    const folder = await makeFolder();
    onTestFinished(() => folder.remove());
    await writeFile(join(folder.path, 'policy.yaml'), SIZED);
    const key = '{ebb-test}:store:records:one';
    await askRedis(redis.url, async (client) => {
      await client.hset(key, 'ep-one', '{"version":99,"record":{}}');
      await client.sadd('{ebb-test}:store:projects', 'one');
    });
    const daemon = await startTestDaemon({ platform, folder: folder.path, env: { EBB_QUEUE_URL: redis.url } });
    onTestFinished(() => daemon.stop());
    const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
    const ready = async () => {
      const answer = await fetch(`${daemon.url}/readyz`);
      const { checks } = (await answer.json()) as { checks: { name: string; ok: boolean; message: string }[] };
      const red = checks.filter(({ ok }) => !ok).map(({ name, message }) => `${name}: ${message}`);
      return [answer.status, ...red];
    };
    await expect.poll(changed, WAIT).toEqual(['ep-two']);
    await expect.poll(ready, WAIT).toEqual([503, expect.stringMatching(/^records: .* ep-one;/)]);
    expect(daemon.logs.filter(({ event }) => event === 'ebb.record_unreadable')).toHaveLength(1);
    expect(await askRedis(redis.url, (client) => client.hget(key, 'ep-one'))).toBe('{"version":99,"record":{}}');
    expect(await changed()).toEqual(['ep-two']);
    await askRedis(redis.url, (client) => client.hdel(key, 'ep-one'));
    await expect.poll(ready, WAIT).toEqual([200]);
  });
});
