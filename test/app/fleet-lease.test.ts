import { expect, it, type TestContext } from 'vitest';
import type { DaemonContext } from '../../src/app/context.ts';
import { createFleetLease } from '../../src/app/fleet-lease.ts';
import { createPolicySets } from '../../src/app/policy-sets.ts';
import { engineDaemon } from '../support/engine-daemon.ts';
import { memoryLog } from '../support/memory-log.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

type Store = DaemonContext['store'];

/** What of a daemon matters to the lease: its clock and its policies are right unless said otherwise. */
function aDaemon(store: Store, holder: string) {
  const lease = createFleetLease({ isAlone: false });
  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const clock = { offMs: undefined as number | undefined };
  const context = {
    ...{ store, holder, telemetry: { log, metrics }, groupTime: { wasTooFarOff: () => clock.offMs } },
    sets: { ...createPolicySets({ stages: false, accepted: undefined }), generation: 1 },
  } as unknown as DaemonContext;
  const attend = async () => {
    await lease.attend(context);
    return lease.isHeld();
  };
  return { lease, log, context, clock, attend };
}

/** On one store, which can be killed. */
async function twoDaemons({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const { store, close } = await engineDaemon(redis.url);
  onTestFinished(close);
  return { redis, one: aDaemon(store, 'one'), two: aDaemon(store, 'two') };
}

describeWith('redis-server', "the fleet's lease", () => {
  it('is offered by a daemon whose clock is wrong, which goes on as long as nobody takes it', async (test) => {
    const { one, two } = await twoDaemons(test);
    expect([await one.attend(), await two.attend()]).toEqual([true, false]);
    one.clock.offMs = 60_000;
    const alone = [await one.attend(), await one.attend(), await one.attend()];
    expect(alone).toEqual([true, true, true]);
    // Free at this moment: the second takes it, and the first hears of it when it next wants it back.
    expect([await two.attend(), await one.attend(), await two.attend()]).toEqual([true, false, true]);
    one.clock.offMs = undefined;
    expect([await one.attend(), await two.attend()]).toEqual([false, true]);
    await two.lease.release(two.context);
    expect(await one.attend()).toBe(true);
    expect(one.log.lines.map(({ fields }) => fields)).toMatchObject([
      { event: 'ebb.fleet_taken' },
      { event: 'ebb.fleet_left' },
      { event: 'ebb.fleet_taken' },
    ]);
  });

  it('stays with its holder while the store can not be asked', async (test) => {
    const { redis, one, two } = await twoDaemons(test);
    await one.attend();
    await redis.kill();
    await expect(one.attend()).rejects.toThrow();
    await expect(two.attend()).rejects.toThrow();
    expect([one.lease.isHeld(), two.lease.isHeld()]).toEqual([true, false]);
  });
});
