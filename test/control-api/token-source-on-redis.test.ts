import { expect, test } from 'vitest';
import { createGroupBudget } from '../../src/adapters/control-api/group-budget.ts';
import { createRedisTokens } from '../../src/adapters/control-api/redis-tokens.ts';
import { LONGEST_PAUSE_MS } from '../../src/adapters/control-api/token-bucket.ts';
import { openTestEngine, redisTestEngine } from '../support/engines.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { BUCKET, describeTokenSource } from './token-source.contract.ts';

const NEVER = new AbortController().signal;

describeWith('redis-server', 'tokens on Redis', () => {
  describeTokenSource(async () => {
    const { engine, reset, close } = await redisTestEngine();
    if (engine.kind !== 'redis') throw new Error('not a Redis');
    return { open: async () => createRedisTokens({ engine, bucket: BUCKET }), reset, close };
  });

  test('a bucket is forgotten once it is full and its slowdowns are over, and survives a flush of scripts', async () => {
    const { engine, close } = await redisTestEngine();
    if (engine.kind !== 'redis') throw new Error('not a Redis');
    const tokens = createRedisTokens({ engine, bucket: BUCKET });
    await tokens.take('main', 1);
    await engine.commands.script('FLUSH');
    await tokens.take('main', 1);
    const [key = ''] = await engine.commands.keys('*budget*');
    expect(key).toMatch(/^\{ebb-test\}:api-budget:main$/);
    expect(await engine.commands.pttl(key)).toBeGreaterThan(0);
    await close();
  });

  test('a pause that an older version left behind ends with the longest one, whether it is read or added to', async () => {
    const { engine, close } = await redisTestEngine();
    if (engine.kind !== 'redis') throw new Error('not a Redis');
    const tokens = createRedisTokens({ engine, bucket: BUCKET });
    const longestMs = LONGEST_PAUSE_MS + BUCKET.intervalMs + 1;
    const leavePause = async (account: string) => {
      await tokens.take(account, 1);
      const key = `${engine.prefix}:api-budget:${account}`;
      await engine.commands.hset(key, 'full_at_ms', String(Date.now() + 30 * 86_400_000));
    };
    await leavePause('read');
    expect((await tokens.take('read', 1)).waitMs).toBeLessThanOrEqual(longestMs);
    await leavePause('slowed');
    await tokens.slowDown('slowed', 0);
    expect((await tokens.take('slowed', 1)).waitMs).toBeLessThanOrEqual(longestMs + BUCKET.intervalMs);
    await close();
  });

  test('while Redis is away requests go on slowly, and share again once it is back', async () => {
    const server = await startRedisServer();
    const { engine } = await openTestEngine(server.url);
    const budget = await createGroupBudget({ engine });
    const request = { account: 'main', route: 'GET /projects', priority: 'read' } as const;
    await budget.acquire(request, NEVER);
    await server.kill();
    await budget.acquire(request, NEVER);
    await budget.throttled('main', 0);
    await server.start();
    await expect.poll(async () => engine.kind === 'redis' && engine.commands.status).toBe('ready');
    await budget.acquire(request, NEVER);
    if (engine.kind === 'redis') expect(await engine.commands.keys('*budget*')).toHaveLength(1);
    await engine.close();
    await server.close();
  });
});
