import { expect, it } from 'vitest';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, hourIn, NEVER, sizedAt, startFaultCase, timeRecovery } from './fault-case.ts';

const COMPUTES = 200;

describeWith('redis-server', 'three daemons', () => {
  it(`change each of ${COMPUTES} computes once at a boundary at which one of them is killed`, {
    timeout: CASE_MS,
  }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const names = Array.from({ length: COMPUTES }, (_, index) => `web-${index}`);
    const at = await startFaultCase({
      ...{ redisPort: redis.port, test, policies: sizedAt('1-2', NEVER) },
      computes: Object.fromEntries(names.map((name) => [name, {}])),
      // The limit of the API is another test's matter.
      settings: 'api_requests_per_minute: 20000\nlog_level: debug\n',
    });
    const daemons = await Promise.all([at.start(), at.start(), at.start()]);
    await eventually(async () => expect((await at.records()).size).toBeGreaterThanOrEqual(COMPUTES));
    const { at: hour } = hourIn(20_000);
    await at.writePolicies(sizedAt('1-2', hour));

    await eventually(async () => expect(await at.appliedMaxima()).not.toEqual([]));
    const [busiest] = daemons.toSorted((a, b) => writesOf(b) - writesOf(a));
    await busiest?.kill('SIGKILL');
    const recovered = timeRecovery('killed, one of three daemons, at a boundary of 200 computes');

    const wanted = names.map((name) => `ep-${name}`).toSorted();
    await eventually(async () =>
      expect((await at.appliedMaxima()).map(([compute]) => compute).toSorted()).toEqual(wanted),
    );
    await eventually(async () => {
      const known = [...(await at.records())].filter(
        ([, { intent, lastApplied }]) => !intent && lastApplied.maxCu === 2,
      );
      expect(known).toHaveLength(COMPUTES);
    });
    recovered();
    expect(await at.appliedMaxima()).toHaveLength(COMPUTES);
    await at.expectNothingForbidden();
  });
});

function writesOf(daemon: { logs(): { event?: string }[] }): number {
  return daemon.logs().filter(({ event }) => event === 'ebb.write').length;
}
