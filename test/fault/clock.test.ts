import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EbbProcess } from '../support/ebb-process.ts';
import { createFakedClock } from '../support/faked-clock.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, hourIn, NEVER, sizedAt, startFaultCase } from './fault-case.ts';

const HOUR_SECONDS = 3600;

describeWith('faketime', "a daemon's clock that is set", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedisServer();
  });
  afterAll(() => server.close());

  const said = (daemon: EbbProcess, event: string) => daemon.logs().filter((line) => line.event === event).length;

  for (const [where, aheadSeconds] of [
    ['an hour ahead', HOUR_SECONDS],
    ['an hour back', -HOUR_SECONDS],
  ] as const) {
    const title = `${where} brings no change early and loses none: made once, when it is time and the clock is right`;
    it.concurrent(title, { timeout: CASE_MS }, async (test) => {
      const clock = await createFakedClock();
      test.onTestFinished(() => clock.remove());
      const at = await startFaultCase({
        ...{ redisPort: server.port, test, policies: sizedAt('1-2', NEVER) },
        computes: { one: {}, two: {} },
      });
      const daemon = await at.start(undefined, clock.env);
      await eventually(async () => expect(await at.record('two')).toBeDefined());
      const { startMs, at: hour } = hourIn(20_000);
      await at.writePolicies(sizedAt('1-2', hour));
      await eventually(() => expect(said(daemon, 'ebb.policies_loaded')).toBe(1));

      await clock.setAhead(aheadSeconds);
      await eventually(() => expect(Date.now()).toBeGreaterThan(startMs + 1_000));
      await eventually(() => expect(said(daemon, 'ebb.clock_off')).toBe(1));
      expect(await at.appliedMaxima()).toEqual([]);

      await clock.setAhead(0);
      await eventually(async () => expect(await at.sizes()).toEqual({ 'ep-one': '1-2', 'ep-two': '1-2' }));
      expect((await at.appliedMaxima()).toSorted()).toEqual([
        ['ep-one', 2],
        ['ep-two', 2],
      ]);
      expect(said(daemon, 'ebb.clock_corrected')).toBe(1);
      await at.expectNothingForbidden();
    });
  }

  it.concurrent('an hour ahead leaves the boundary to a daemon whose clock is right', {
    timeout: CASE_MS,
  }, async (test) => {
    const clock = await createFakedClock();
    test.onTestFinished(() => clock.remove());
    await clock.setAhead(HOUR_SECONDS);
    const at = await startFaultCase({
      ...{ redisPort: server.port, test, policies: sizedAt('1-2', NEVER) },
      computes: { one: {}, two: {} },
    });
    const [wrong, right] = await Promise.all([at.start(undefined, clock.env), at.start()]);
    await eventually(() => expect(said(wrong, 'ebb.clock_off')).toBe(1));
    const { startMs, at: hour } = hourIn(20_000);
    await at.writePolicies(sizedAt('1-2', hour));
    await eventually(() => expect([wrong, right].map((one) => said(one, 'ebb.policies_loaded'))).toEqual([1, 1]));
    await eventually(async () => expect(await at.sizes()).toEqual({ 'ep-one': '1-2', 'ep-two': '1-2' }));
    expect(await at.appliedMaxima()).toHaveLength(2);
    const sentMs = (await at.platform.writes()).map((write) => Date.parse(write.at));
    expect(Math.min(...sentMs)).toBeGreaterThanOrEqual(startMs - 1);
    await at.expectNothingForbidden();
  });
});
