import { expect, it } from 'vitest';
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

interface Trouble {
  /** What Redis is for the daemon. */
  redis: string;
  begin(at: FaultCase, server: RedisServer): Promise<unknown>;
  end(at: FaultCase, server: RedisServer): Promise<unknown>;
}

const TROUBLES: Trouble[] = [
  {
    redis: 'is killed and started again',
    begin: (_, server) => server.kill(),
    end: (_, server) => server.start(),
  },
  {
    redis: 'comes back empty',
    begin: (_, { url, kill }) => askRedis(url, (client) => client.flushall()).then(kill),
    end: (_, server) => server.start(),
  },
  {
    redis: 'is cut off',
    begin: async ({ redis }) => redis.shut(),
    end: async ({ redis }) => redis.open(),
  },
  {
    redis: 'gets no message through, and then all of them',
    begin: async ({ redis }) => redis.silence(),
    end: async ({ redis }) => redis.open(),
  },
  {
    redis: 'is out of memory',
    begin: (_, { url }) => askRedis(url, (client) => client.config('SET', 'maxmemory', '100kb')),
    end: (_, { url }) => askRedis(url, (client) => client.config('SET', 'maxmemory', '0')),
  },
  {
    redis: 'can only be read',
    begin: (_, { url }) => askRedis(url, (client) => client.replicaof('127.0.0.1', 1)),
    end: (_, { url }) => askRedis(url, (client) => client.replicaof('NO', 'ONE')),
  },
];

describeWith('redis-server', 'while its Redis', () => {
  for (const { redis, begin, end } of TROUBLES) {
    it.concurrent(`${redis}, a daemon sends nothing, and makes the changes once when that is over`, {
      timeout: CASE_MS,
    }, async (test) => {
      const server = await startRedisServer();
      test.onTestFinished(() => server.close());
      const names = ['one', 'two', 'three'];
      const at = await startFaultCase({
        ...{ redisPort: server.port, test, policies: sizedAt('1-2', NEVER) },
        computes: Object.fromEntries(names.map((name) => [name, {}])),
      });
      const daemon = await at.start();
      const said = (event: string) => daemon.logs().filter((line) => line.event === event).length;
      await eventually(async () => {
        for (const name of names) expect(await at.record(name)).toBeDefined();
      });
      const { startMs, at: hour } = hourIn(20_000);
      await at.writePolicies(sizedAt('1-2', hour));
      await eventually(() => expect(said('ebb.policies_loaded')).toBe(1));

      await begin(at, server);
      await eventually(() => expect(said('ebb.outage')).toBe(1));
      await eventually(() => expect(Date.now()).toBeGreaterThan(startMs + 1000));
      const during = await at.appliedMaxima();
      await end(at, server);
      const recovered = timeRecovery(`the end of a trouble: Redis ${redis}`);

      await eventually(() => expect(said('ebb.recovered')).toBe(1));
      const wanted = names.map((name) => [`ep-${name}`, 2]).toSorted();
      await eventually(async () => expect((await at.appliedMaxima()).toSorted()).toEqual(wanted));
      recovered();
      expect(during).toEqual([]);
      await eventually(async () => {
        for (const name of names) expect(await at.record(name)).toMatchObject({ lastApplied: { maxCu: 2 } });
      });
      expect(await at.appliedMaxima()).toHaveLength(names.length);
      expect(said('ebb.outage')).toBe(1);
      await at.expectNothingForbidden();
    });
  }
});
