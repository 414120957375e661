/** Commands that read the control API beside daemons take each request from the log that the daemons share. */
import { expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { openTestEngine } from '../support/engines.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const POLICY = `version: 1
policies: [{ name: one, kind: schedule, select: { projects: ["*"], min_age: 0s }, windows: [{ at: always, size: 1 }], otherwise: leave }]
`;

describeWith('redis-server', 'the shared log of requests has all that a command sends', () => {
  it.each([
    [['report'], [0]],
    [['recommend', '--live'], [0]],
    [['plan'], [0, 2]],
    [['forecast', '--live'], [0]],
    // Without the id of an organization there is no usage.
    [['cost', '--live'], [1]],
    [['awake', '--live'], [0]],
    [['usage', 'export', '--out', 'usage', '--live'], [1]],
    [['snapshot', '--live', '--out', 'fleet.yaml'], [0]],
    [['explain', 'shop/ep-shop', '--live'], [0]],
    [['keys', 'create', '--org', 'org-other', '--project', 'shop', '--name', 'n'], [1]],
  ])('ebb %j', async (args, codes) => {
    const platform = await startTestPlatform({ shop: {}, blog: { state: 'active' } });
    const redis = await startRedisServer();
    const folder = await makeFolder({ 'policy.yaml': POLICY });
    const { engine } = await openTestEngine(redis.url);
    try {
      if (engine.kind !== 'redis') throw new Error('not a Redis');
      const env = {
        ...{ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_POLICIES: 'policy.yaml' },
        ...{ EBB_QUEUE_URL: redis.url, EBB_GROUP: 'test' },
      };
      const run = startEbb(args, { cwd: folder.path, env });
      expect(codes, run.stderr()).toContain(await run.ended);
      const { length } = await platform.requests();
      expect(length).toBeGreaterThan(0);
      expect(await engine.commands.llen(`${engine.prefix}:api-log:default:minute`)).toBe(length);
    } finally {
      await engine.close();
      await folder.remove();
      await redis.close();
      await platform.close();
    }
  });
});
