import { expect, it } from 'vitest';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, sizedAt, startFaultCase, timeRecovery } from './fault-case.ts';

describeWith('redis-server', 'two daemons with different policy sets', () => {
  it('do what the newer one says, once, and the older one takes over when it has loaded that too', {
    timeout: CASE_MS,
  }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const names = ['one', 'two', 'three'];
    const at = await startFaultCase({
      ...{ redisPort: redis.port, test, policies: sizedAt('1-2') },
      computes: Object.fromEntries(names.map((name) => [name, {}])),
    });
    const each = (...sizes: string[]) => Object.fromEntries(names.map((name) => [`ep-${name}`, sizes.join()]));
    const older = await at.start();
    await eventually(async () => expect(await at.sizes()).toEqual(each('1-2')));
    const newer = await at.start(sizedAt('3'));
    await eventually(async () => expect(await at.sizes()).toEqual(each('3-3')));
    await eventually(() => expect(older.logs().filter(({ event }) => event === 'ebb.superseded')).toHaveLength(1));
    await newer.kill('SIGKILL');

    await at.writePolicies(sizedAt('4'));
    await eventually(async () => expect(await at.sizes()).toEqual(each('4-4')));
    const given = (id: string, all: [string, number | undefined][]) =>
      all.filter(([compute]) => compute === id).map(([, maxCu]) => maxCu);
    const all = await at.appliedMaxima();
    for (const name of names) expect(given(`ep-${name}`, all)).toEqual([2, 3, 4]);
    await at.expectNothingForbidden();
  });

  it('go back to the older set once the only daemon with the newer one has been killed', {
    timeout: CASE_MS,
  }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const at = await startFaultCase({
      ...{ redisPort: redis.port, test, policies: sizedAt('1-2') },
      computes: { one: {}, two: {} },
    });
    const each = (size: string) => ({ 'ep-one': size, 'ep-two': size });
    const older = await at.start();
    await eventually(async () => expect(await at.sizes()).toEqual(each('1-2')));
    const newer = await at.start(sizedAt('3'));
    await eventually(async () => expect(await at.sizes()).toEqual(each('3-3')));
    await newer.kill('SIGKILL');
    const asDesired = timeRecovery('the only daemon with the newest policies was killed');
    await eventually(async () => expect(await at.sizes()).toEqual(each('1-2')));
    asDesired();
    const events = older.logs().map(({ event }) => event);
    expect(events.filter((event) => event === 'ebb.generation_taken_over')).toHaveLength(1);
    await at.expectNothingForbidden();
  });
});
