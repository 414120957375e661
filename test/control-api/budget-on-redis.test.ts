import { expect, test } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createGroupBudget } from '../../src/adapters/control-api/group-budget.ts';
import { createRedisBudgets } from '../../src/adapters/control-api/redis-budget.ts';
import { openTestEngine, redisTestEngine } from '../support/engines.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { describeBudgetStore, LIMITS } from './budget-store.contract.ts';

const NEVER = new AbortController().signal;

describeWith('redis-server', 'budgets on Redis', () => {
  describeBudgetStore(
    async () => {
      const { engine, reset, close } = await redisTestEngine();
      if (engine.kind !== 'redis') throw new Error('not a Redis');
      return {
        open: async (limits, clock) => createRedisBudgets({ engine, limits, ...(clock && { clock }) }),
        reset,
        close,
      };
    },
    { runs: 40 },
  );

  test('a log survives a flush of scripts, is in one slot of a Cluster, and every key of it ends by itself', async () => {
    const { engine, close } = await redisTestEngine();
    if (engine.kind !== 'redis') throw new Error('not a Redis');
    const budgets = createRedisBudgets({ engine, limits: LIMITS });
    const wanted = { route: 'GET /projects', count: 1, priority: 'read' } as const;
    await budgets.grant('main', wanted);
    await engine.commands.script('FLUSH');
    await budgets.grant('main', wanted);
    const keys = (await engine.commands.keys('*api-log*')).sort();
    expect(keys).toEqual([
      '{ebb-test}:api-log:main',
      '{ebb-test}:api-log:main:minute',
      '{ebb-test}:api-log:main:route:GET /projects',
    ]);
    for (const key of keys) expect(await engine.commands.pttl(key)).toBeGreaterThan(0);
    await close();
  });

  test('while Redis is away requests go on slowly, and share again once it is back', async () => {
    const server = await startRedisServer();
    const { engine } = await openTestEngine(server.url);
    const budget = await createGroupBudget({ engine, limits: LIMITS, clock: systemClock() });
    const request = { account: 'main', route: 'GET /projects', priority: 'read' } as const;
    await budget.acquire(request, NEVER);
    await server.kill();
    await budget.acquire(request, NEVER);
    await budget.throttled('main', 0);
    await server.start();
    await expect.poll(async () => engine.kind === 'redis' && engine.commands.status).toBe('ready');
    await budget.acquire(request, NEVER);
    if (engine.kind === 'redis') expect(await engine.commands.keys('*:minute')).toHaveLength(1);
    await engine.close();
    await server.close();
  });
});
