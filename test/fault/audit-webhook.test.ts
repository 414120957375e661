import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { memoryLog } from '../support/memory-log.ts';
import { isFirst, receiving, takes } from '../support/receiving.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, hourIn, sizedAt, startFaultCase } from './fault-case.ts';

const COMPUTES = ['shop', 'blog', 'docs'];
/** Lines that the audit has before a daemon starts. */
const EARLIER = Array.from({ length: 40 }, (_, at) => `earlier-${String(at).padStart(2, '0')}`);

describeWith('redis-server', 'the audit at a webhook while daemons are killed and it misbehaves', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis.close());

  async function appendEarlier(group: string): Promise<void> {
    const opened = await openEngine({ url: redis.url, group, log: memoryLog() });
    if (!opened.ok) throw new Error(opened.error.message);
    const store = await createStore({ engine: opened.engine, log: memoryLog() });
    const startMs = Date.now() - 60_000;
    for (const [at, id] of EARLIER.entries()) {
      const about = { projectId: 'shop', computeId: 'ep-shop', setHash: 'abc', who: 'ann' };
      await store.appendHistory([{ id, atMs: startMs + at, kind: 'hold', ...about, reasons: [] }]);
    }
    await opened.engine.close();
  }

  it(
    'arrives all, in order, by one id each, and no change waits for it',
    async (test) => {
      const group = randomUUID();
      await appendEarlier(group);
      // It fails, cuts off, and then answers nothing until the daemon is killed.
      let hangs = true;
      const { got, url } = await receiving(test, (response, count) => {
        if (count === 1) response.writeHead(500).end();
        else if (count === 10) response.destroy();
        else if (count < 20 || !hangs) takes(response);
      });
      const { startMs, at } = hourIn(30_000);
      const awake = { state: 'active', connections: 2 } as const;
      const at0 = await startFaultCase({
        ...{ redisPort: Number(new URL(redis.url).port), group, policies: sizedAt('2-4', at), test },
        computes: Object.fromEntries(COMPUTES.map((name) => [name, awake])),
        settings: `disruption: { raise: { when: any }, newly_discovered: act }\naudit: { webhook: { url: "${url}", secret_env: EBB_NOTIFY_SECRET } }\n`,
      });
      const more = { EBB_NOTIFY_SECRET: 'of-the-audit' };
      const killed = await at0.start(undefined, more);
      await eventually(() => expect(got.length).toBeGreaterThanOrEqual(20));
      // Every change is made at the boundary, though the webhook answers nothing.
      await eventually(async () => expect((await at0.appliedMaxima()).length).toBe(COMPUTES.length));
      const latenessMs = (await at0.platform.writes()).map((write) => Date.parse(write.at) - startMs);
      process.stdout.write(`while the webhook hangs, writes came ${latenessMs.join(', ')} ms after the boundary\n`);
      await killed.kill('SIGKILL');
      hangs = false;
      await at0.start(undefined, more);
      const written = () => got.filter(({ body }) => JSON.parse(body).kind === 'write');
      await eventually(() => {
        expect(got.map(({ id }) => id)).toEqual(expect.arrayContaining(EARLIER));
        expect(new Set(written().map(({ body }) => JSON.parse(body).compute_id)).size).toBe(COMPUTES.length);
      });
      const once = got.filter(isFirst);
      expect(once.slice(0, EARLIER.length).map(({ id }) => id)).toEqual(EARLIER);
      for (const { id, body } of got)
        expect([JSON.parse(body).id, body]).toEqual([id, got.find((one) => one.id === id)?.body]);
      expect(JSON.stringify(got)).not.toContain('of-the-audit');
      process.stdout.write(`${once.length} lines, ${got.length - once.length} came again\n`);
      await at0.expectNothingForbidden();
    },
    CASE_MS,
  );
});
