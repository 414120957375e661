import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { endServer, startServer } from '../support/child-server.ts';
import { startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const CHILD = fileURLToPath(new URL('./budget-child.ts', import.meta.url));
const PER_MINUTE = 700;
const MINUTE_MS = 60_000;

/** EBB_LONG=1 works for two minutes, so that a whole sliding minute can be looked at; else for some seconds. */
const isLong = process.env.EBB_LONG === '1';
const ENOUGH_REQUESTS = isLong ? 1_400 : 90;

describeWith('redis-server', 'two processes under one budget', () => {
  test(
    'are never answered 429, and use at least 95 % of the limit while there is work',
    async () => {
      const redis = await startRedisServer();
      onTestFinished(redis.close);
      const options = { apiKey: 'test-key', rateLimitPerMinute: PER_MINUTE, burstPerSecond: 40 };
      const platform = await startTestPlatform({ shop: {} }, options);
      onTestFinished(platform.close);
      const args = ['--import', 'tsx', CHILD, platform.url, redis.url];
      const children = await Promise.all([1, 2].map(() => startServer(process.execPath, args, /ready/)));
      onTestFinished(() => Promise.all(children.map((child) => endServer(child, 'SIGKILL'))).then(() => {}));
      await expect
        .poll(async () => (await platform.requests()).length, { interval: 500, timeout: 4 * MINUTE_MS })
        .toBeGreaterThanOrEqual(ENOUGH_REQUESTS);
      await Promise.all(children.map((child) => endServer(child, 'SIGTERM')));

      const requests = await platform.requests();
      expect(requests.filter(({ status }) => status !== 200)).toEqual([]);
      const atMs = requests.map(({ at }) => Date.parse(at));
      const lastMs = atMs.at(-1) ?? 0;
      const spanMs = Math.min(MINUTE_MS, lastMs - (atMs[0] ?? 0));
      const used = atMs.filter((instantMs) => instantMs > lastMs - spanMs).length / ((PER_MINUTE * spanMs) / MINUTE_MS);
      expect(used).toBeGreaterThanOrEqual(0.95);
    },
    5 * MINUTE_MS,
  );
});
