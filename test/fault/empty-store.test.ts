import { expect, it, type TestContext } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { EbbProcess } from '../support/ebb-process.ts';
import { askRedis } from '../support/engine-daemon.ts';
import { openTestEngine } from '../support/engines.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { printSeed, SEED } from '../support/seed.ts';
import { bounded } from '../support/selectors.ts';
import { CASE_MS, eventually, type FaultCase, hourIn, NEVER, sizedAt, startFaultCase } from './fault-case.ts';

/** How often the store is lost: each point once unless more is asked for. */
const RUNS = Number(process.env.EBB_STORE_LOSSES ?? 8);

/** Where the daemon is when the store is lost; armed before it can be there. */
const POINTS: Record<string, (at: FaultCase) => Promise<unknown>> = {
  'it takes the lease of the frozen compute': ({ redis }) => redis.stopAt(/store:lease:project-frozen/),
  'it reads the records of the held compute': ({ redis }) => redis.stopAnswerTo(/store:records:held/),
  'it is told what people said': ({ redis }) => redis.stopAnswerTo(/store:freezes:revision/),
  'it asks whether its policies are the newest': ({ redis }) => redis.stopAt(/store:generation/),
  'its intent is on the way to the store': ({ redis }) => redis.stopAt(/"intent":\{/),
  'a PATCH is on the way': ({ api }) => api.stopAt(/^PATCH /),
  'the answer to a PATCH is on the way': ({ api }) => api.stopAnswer(/"endpoint":\{/),
  'the record of a change is on the way to the store': ({ redis }) =>
    redis.stopAt(/^(?!.*"intent":\{).*"lastSentAtMs"/s),
};

/** How the store is lost. The third time nobody is there who remembers, but for what the daemon has kept on its machine. */
const LOSSES: Record<string, (world: World) => Promise<unknown>> = {
  'it is flushed': ({ server }) => flush(server),
  'it is killed and starts empty': ({ server }) => flush(server).then(server.kill).then(server.start),
  'it is flushed while no daemon runs': async (world) => {
    await world.daemon.kill();
    await flush(world.server);
    world.daemon = await world.at.start();
  },
};

interface World {
  server: RedisServer;
  at: FaultCase;
  daemon: EbbProcess;
}

const flush = ({ url }: RedisServer) => askRedis(url, (client) => client.flushall());

const COMMON = { owner: 'zoe', reason: 'incident', createdAtMs: Date.now(), expiresAtMs: Date.now() + 12 * 3_600_000 };
const FREEZE: Freeze = { ...COMMON, id: 'f-1', select: bounded({ projects: ['frozen'] }), allowRaise: false };
const HOLDS: Hold[] = [
  { ...COMMON, id: 'h-1', projectId: 'held', computeId: 'ep-held', freeze: true },
  { ...COMMON, id: 'h-2', projectId: 'held-at', computeId: 'ep-held-at', size: { minCu: 4, maxCu: 4 } },
];

/** A daemon that has heard of a freeze and two holds, on a Redis of its own. */
async function aWorld(test: TestContext) {
  const server = await startRedisServer();
  test.onTestFinished(() => server.close());
  const { engine, log } = await openTestEngine(server.url);
  test.onTestFinished(() => engine.close());
  const store = await createStore({ engine, log });
  await store.putFreeze(FREEZE);
  for (const hold of HOLDS) await store.putHold(hold);
  const at = await startFaultCase({
    ...{ redisPort: server.port, group: 'test', test, policies: sizedAt('1-2', NEVER) },
    computes: { one: {}, frozen: {}, held: {}, 'held-at': {} },
  });
  const world: World = { server, at, daemon: await at.start() };
  await eventually(async () => expect(await at.sizes()).toMatchObject({ 'ep-held-at': '4-4' }));
  await eventually(async () => expect(await at.record('frozen')).toBeDefined());
  return { world, store };
}

const time = (runs: number) => CASE_MS + runs * 60_000;

describeWith('redis-server', 'while a freeze and holds are active, a store that is lost', () => {
  const title = `${RUNS} times, at each point of a change, lets nothing be written to what is frozen or held`;
  it(title, { timeout: time(RUNS) }, async (test) => {
    printSeed();
    const { world, store } = await aWorld(test);
    const throwDie = seededRandom(SEED);
    const kinds = Object.entries(LOSSES);
    const points = Object.entries(POINTS);
    for (let run = 0; run < RUNS; run += 1) {
      const { at } = world;
      const [point, reach] = points[run % points.length] ?? [];
      const [kind, lose] = kinds[Math.floor(throwDie() * kinds.length)] ?? [];
      if (!reach || !lose) throw new Error('neither may be empty');
      const size = run % 2 === 0 ? '1-2' : '0.5-1';
      process.stdout.write(`run ${run + 1} of ${RUNS}: when ${point}, ${kind}\n`);
      const there = reach(at);
      await at.writePolicies(sizedAt(size));
      await there;
      await lose(world);
      at.api.open();
      at.redis.open();
      await eventually(async () => {
        expect([await store.freezes(Date.now()), await store.holds(Date.now())]).toEqual([[FREEZE], HOLDS]);
        expect(await at.sizes()).toMatchObject({ 'ep-one': size });
      });
      expect((await at.appliedMaxima()).filter(([id]) => id !== 'ep-one')).toEqual([['ep-held-at', 4]]);
    }
    await world.at.expectNothingForbidden();
  });

  it('before a boundary lets nothing be written at it to what is frozen or held', {
    timeout: CASE_MS,
  }, async (test) => {
    const { world } = await aWorld(test);
    const { at, server } = world;
    const { startMs, at: hour } = hourIn(20_000);
    await at.writePolicies(sizedAt('1-2', hour));
    const leases = ['one', 'frozen'].map((name) => `{ebb-test}:store:lease:project-${name}`);
    const locked = () => askRedis(server.url, (client) => client.exists(...leases));
    await eventually(async () => expect(await locked()).toBe(leases.length));
    await flush(server);
    await eventually(() => expect(Date.now()).toBeGreaterThan(startMs));
    await eventually(async () => expect(await at.sizes()).toMatchObject({ 'ep-one': '1-2' }));
    expect((await at.appliedMaxima()).filter(([id]) => id !== 'ep-one')).toEqual([['ep-held-at', 4]]);
    await at.expectNothingForbidden();
  });
});
