import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askRedis } from '../support/engine-daemon.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import {
  CASE_MS,
  eventually,
  type FaultCase,
  hourIn,
  NEVER,
  sizedAt,
  startFaultCase,
  timeRecovery,
} from './fault-case.ts';

interface Point {
  point: string;
  /** Resolves when the daemon is there; armed before the daemon can be. */
  reach(at: FaultCase): Promise<unknown>;
  /** How many PATCHes have arrived by then. */
  arrived: number;
}

const INTENT = /"intent":\{/;
const AFTER_A_WRITE = /^(?!.*"intent":\{).*"lastSentAtMs"/s;
const OPERATIONS_KNOWN = /^(?!.*"intent":\{).*"openOperations":\[\{/s;
const OPERATIONS_OVER =
  /^(?!.*"intent":\{).*"lastSentAtMs".*"openOperations":\[\]|^(?!.*"intent":\{).*"openOperations":\[\].*"lastSentAtMs"/s;

const LOOK = /^GET \S*\/operations/;

const ASLEEP: Point[] = [
  {
    point: 'it holds the lease, and its intent is on the way to the store',
    reach: ({ redis }) => redis.stopAt(INTENT),
    arrived: 0,
  },
  {
    point: 'its intent is stored, and the PATCH is on the way',
    reach: ({ api }) => api.stopAt(/^PATCH /),
    arrived: 0,
  },
  {
    point: 'the PATCH is carried out, and the answer is on the way',
    reach: ({ api }) => api.stopAnswer(/"endpoint":\{/),
    arrived: 1,
  },
  {
    point: 'the answer is there, and the record is on the way to the store',
    reach: ({ redis }) => redis.stopAt(AFTER_A_WRITE),
    arrived: 1,
  },
];

const AWAKE: Point[] = [
  {
    point: 'the answer of a change that started operations is on the way',
    reach: ({ api }) => api.stopAnswer(/"endpoint":\{/),
    arrived: 2,
  },
  {
    point: 'it has been told of operations, and they are on the way to the store',
    reach: ({ redis }) => redis.stopAt(OPERATIONS_KNOWN),
    arrived: 2,
  },
  {
    point: 'it is about to look at operations',
    reach: ({ api }) => api.stopAt(LOOK),
    arrived: 2,
  },
  {
    point: 'it has seen operations end, and that is on the way to the store',
    reach: operationsOver,
    arrived: 2,
  },
];

async function operationsOver({ api, redis }: FaultCase): Promise<void> {
  await api.stopAt(LOOK);
  const over = redis.stopAt(OPERATIONS_OVER);
  api.open();
  await over;
}

describeWith('redis-server', 'a daemon that is killed when', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedisServer();
  });
  afterAll(() => server.close());

  /** The successor finds everything as it is, ends what was begun, and then owes nothing. */
  async function succeed(at: FaultCase): Promise<void> {
    await at.start();
    await eventually(async () => expect(await at.sizes()).toEqual({ 'ep-one': '1-2' }));
    await eventually(async () => {
      const { intent, openOperations, lastApplied } = (await at.record('one')) ?? {};
      expect([intent, openOperations, lastApplied?.maxCu]).toEqual([undefined, [], 2]);
    });
  }

  for (const { point, reach, arrived } of ASLEEP) {
    const title = `${point}, is succeeded by one that makes the change once`;
    it.concurrent(title, { timeout: CASE_MS }, async (test) => {
      const at = await startFaultCase({ redisPort: server.port, computes: { one: {} }, test });
      const there = reach(at);
      const first = await at.start();
      await there;
      expect(await at.appliedMaxima()).toHaveLength(arrived);
      await first.kill('SIGKILL');
      const recovered = timeRecovery(`killed when ${point}`);
      await succeed(at);
      recovered();
      expect(await at.appliedMaxima()).toEqual([['ep-one', 2]]);
      await at.expectNothingForbidden();
    });
  }

  for (const { point, reach, arrived } of AWAKE) {
    const title = `${point}, is succeeded by one that follows what was begun and sends nothing twice`;
    it.concurrent(title, { timeout: CASE_MS }, async (test) => {
      const at = await startFaultCase({
        ...{ redisPort: server.port, test, policies: sizedAt('0.25') },
        computes: { one: { maxCu: 0.5 } },
      });
      const first = await at.start();
      await eventually(async () => expect((await at.record('one'))?.lastApplied.maxCu).toBe(0.25));
      await at.wake('one');
      const there = reach(at);
      await at.writePolicies(sizedAt('1-2'));
      await there;
      expect(await at.appliedMaxima()).toHaveLength(arrived);
      await first.kill('SIGKILL');
      const recovered = timeRecovery(`killed when ${point}`);
      await succeed(at);
      recovered();
      expect((await at.appliedMaxima()).map(([, maxCu]) => maxCu)).toEqual([0.25, 2]);
      await at.expectNothingForbidden();
    });
  }

  const fanOut = 'it fans out a boundary, is succeeded by one that changes each compute once';
  it.concurrent(fanOut, { timeout: CASE_MS }, async (test) => {
    const names = Array.from({ length: 12 }, (_, index) => `web-${index}`);
    const at = await startFaultCase({
      ...{ redisPort: server.port, policies: sizedAt('1-2', NEVER) },
      computes: Object.fromEntries(names.map((name) => [name, {}])),
      test,
    });
    const first = await at.start();
    await eventually(async () => expect(await at.record('web-11')).toBeDefined());
    const { startMs, at: hour } = hourIn(20_000);
    const fanningOut = at.redis.stopAt(new RegExp(`:crossings:.*"projectId":"web-5".*"instantMs":${startMs}`, 's'));
    await at.writePolicies(sizedAt('1-2', hour));
    await fanningOut;
    await first.kill('SIGKILL');
    const recovered = timeRecovery('killed when it fans out a boundary');
    await at.start();
    const wanted = names.map((name) => [`ep-${name}`, 2]).toSorted();
    await eventually(async () => expect((await at.appliedMaxima()).toSorted()).toEqual(wanted));
    recovered();
    await at.expectNothingForbidden();
  });

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const waiting = `has taken the projects of a boundary and waits for the instant, by ${signal}, is succeeded by one that changes each compute once`;
    it.concurrent(waiting, { timeout: CASE_MS }, async (test) => {
      const names = Array.from({ length: 5 }, (_, index) => `web-${index}`);
      const group = randomUUID();
      const at = await startFaultCase({
        ...{ redisPort: server.port, group, policies: sizedAt('1-2', NEVER), test },
        computes: Object.fromEntries(names.map((name) => [name, {}])),
      });
      const first = await at.start();
      await eventually(async () => expect(await at.record('web-4')).toBeDefined());
      const { at: hour } = hourIn(20_000);
      await at.writePolicies(sizedAt('1-2', hour));
      const taken = () => askRedis(server.url, (client) => client.llen(`{ebb-${group}}:crossings:active`));
      await eventually(async () => expect(await taken()).toBeGreaterThanOrEqual(names.length));
      await first.kill(signal);
      expect(await at.appliedMaxima()).toEqual([]);
      // One that is asked to stop gives back what it has taken; the triggers of one that is killed come back by themselves.
      if (signal === 'SIGTERM') expect(await taken()).toBe(0);
      const recovered = timeRecovery(`${signal} while it waits for a boundary`);
      await at.start();
      const wanted = names.map((name) => [`ep-${name}`, 2]).toSorted();
      await eventually(async () => expect((await at.appliedMaxima()).toSorted()).toEqual(wanted));
      recovered();
      await at.expectNothingForbidden();
    });
  }
});
