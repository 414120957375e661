/** What `ebb explain` costs a large fleet: it reads one project, whatever is to be done there. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedisBudgets } from '../../src/adapters/control-api/redis-budget.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import { startEbb } from '../support/ebb-process.ts';
import { openTestEngine } from '../support/engines.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const PROJECTS = 300;
const MAX_REQUESTS = 5;

const POLICY = `version: 1
policies:
  - name: larger
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: always, size: 2 }]
    otherwise: leave
    disruption: { raise: { when: any }, at_once: 10% }
`;

describe('ebb explain on 300 projects, without a daemon', () => {
  let platform: Platform;
  let cwd = '';
  let remove = async () => {};

  beforeAll(async () => {
    const fleet = Array.from({ length: PROJECTS }, (_, nth) => [`shop-${nth}`, { state: nth < 9 ? 'active' : 'idle' }]);
    platform = await startTestPlatform(Object.fromEntries(fleet));
    const folder = await makeFolder({ 'policy.yaml': POLICY });
    ({ path: cwd, remove } = folder);
  });
  afterAll(async () => {
    await platform.close();
    await remove();
  });

  async function explain(name: string) {
    const before = (await platform.requests()).length;
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_POLICIES: 'policy.yaml' };
    const run = startEbb(['explain', name, '--json'], { cwd, env });
    expect(await run.ended).toBe(0);
    const answer = JSON.parse(run.lines.join('\n')) as { verdict: string };
    return { ...answer, notes: run.stderr(), requests: (await platform.requests()).length - before };
  }

  it('an idle compute', async () => {
    const { requests, verdict } = await explain('shop-100/ep-shop-100');
    expect(verdict).toBe('act');
    expect(requests).toBeLessThanOrEqual(MAX_REQUESTS);
  });

  it('an active compute, which is restarted: what only the whole fleet shows is said', async () => {
    const { requests, notes } = await explain('shop-7/ep-shop-7');
    expect(notes).toContain('at_once');
    expect(requests).toBeLessThanOrEqual(MAX_REQUESTS);
  });
});

describeWith('redis-server', 'ebb explain beside daemons that have used all of the limit but the reserve', () => {
  it('does not wait until a minute has passed', async ({ onTestFinished }) => {
    const platform = await startTestPlatform({ shop: {} });
    onTestFinished(platform.close);
    const redis = await startRedisServer();
    onTestFinished(redis.close);
    const { path: cwd, remove } = await makeFolder({ 'policy.yaml': POLICY });
    onTestFinished(remove);
    const { engine } = await openTestEngine(redis.url);
    onTestFinished(engine.close);
    if (engine.kind !== 'redis') throw new Error('not a Redis');
    const logged = () => engine.commands.llen(`${engine.prefix}:api-log:default:minute`);
    const daemons = limitsOf(700, 0.05);
    let nowMs = Date.now();
    const budgets = createRedisBudgets({ engine, limits: daemons, clock: () => nowMs });
    const grant = (count: number) => budgets.grant('default', { route: 'GET', count, priority: 'read' });
    await grant(1);
    // The first minute of a log goes at the steady rate; from the second on all is granted within 17 s, so 43 s are left.
    nowMs += 61_000;
    for (let left = daemons.perMinute; left > 0; ) {
      const granted = await grant(left);
      left -= granted.afterMs.length;
      nowMs += granted.waitMs;
    }
    expect(await logged()).toBe(daemons.perMinute);

    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_POLICIES: 'policy.yaml' };
    const args = ['explain', 'shop/ep-shop', '--json'];
    const run = startEbb(args, { cwd, env: { ...env, EBB_QUEUE_URL: redis.url, EBB_GROUP: 'test' } });
    expect(await run.ended).toBe(0);
    expect(await logged()).toBeGreaterThan(daemons.perMinute);
  });
});
