import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, type FaultCase, sizedAt, startFaultCase } from './fault-case.ts';

interface Moment {
  /** Where the daemon is when it falls asleep. */
  moment: string;
  reach(at: FaultCase): Promise<void>;
  /** How many changes its own writing makes, whenever it wakes. */
  sends: number;
  /** Whether its intent has been stored by then. */
  intends: boolean;
}

const MOMENTS: Moment[] = [
  {
    moment: 'its intent is on the way to the store',
    reach: ({ redis }) => redis.stopAt(/"intent":\{/),
    sends: 0,
    intends: false,
  },
  {
    moment: 'the store is telling it that its intent is stored and its lease prolonged',
    reach: ({ redis }) => redis.stopAnswerTo(/"intent":\{/),
    sends: 0,
    intends: true,
  },
  {
    moment: 'the PATCH is on the way',
    reach: ({ api }) => api.stopAt(/^PATCH /),
    sends: 1,
    intends: true,
  },
];

describeWith('redis-server', 'a daemon that is stopped past its lease when', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedisServer();
  });
  afterAll(() => server.close());

  for (const { moment, reach, sends, intends } of MOMENTS) {
    const title = `${moment}, leaves the change to another, does not make it again when it wakes up, and works on`;
    it.concurrent(title, { timeout: CASE_MS }, async (test) => {
      const at = await startFaultCase({
        ...{ redisPort: server.port, test },
        computes: { one: {} },
      });
      const there = reach(at);
      const first = await at.start();
      await there;
      // The answer that is kept back may be that of an earlier command: the store gets to the intent in a moment.
      await eventually(async () => expect((await at.record('one'))?.intent !== undefined).toBe(intends));
      first.child.kill('SIGSTOP');
      at.api.open();
      at.redis.open();
      await eventually(async () => expect(await at.appliedMaxima()).toHaveLength(sends));
      const second = await at.start();
      await eventually(async () => {
        const { intent, lastApplied } = (await at.record('one')) ?? {};
        expect([intent, lastApplied?.maxCu]).toEqual([undefined, 2]);
      });
      second.child.kill('SIGTERM');
      expect(await second.ended).toBe(0);

      first.child.kill('SIGCONT');
      await at.writePolicies(sizedAt('3'));
      await eventually(async () => expect(await at.sizes()).toEqual({ 'ep-one': '3-3' }));
      expect((await at.appliedMaxima()).map(([, maxCu]) => maxCu)).toEqual([2, 3]);
      await at.expectNothingForbidden();
    });
  }
});
