import { expect, it, type TestContext } from 'vitest';
import { createLeaderLease } from '../../src/app/group/leader.ts';
import type { Store } from '../../src/ports/store.ts';
import { engineDaemon } from '../support/engine-daemon.ts';
import { memoryLog } from '../support/memory-log.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

/** What of a daemon matters to the lease: its clock and its policies are right unless said otherwise. */
function aDaemon(store: Store, holder: string) {
  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const clock = { offMs: undefined as number | undefined };
  const blocked = () => (clock.offMs === undefined ? undefined : ('clock_off' as const));
  const lease = createLeaderLease({ isAlone: false, store, holder, telemetry: { log, metrics }, blocked });
  const attend = async () => {
    await lease.attend();
    return lease.isHeld();
  };
  return { lease, log, clock, attend };
}

/** On one store, which can be killed. */
async function twoDaemons({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const { store, close } = await engineDaemon(redis.url);
  onTestFinished(close);
  return { redis, one: aDaemon(store, 'one'), two: aDaemon(store, 'two') };
}

describeWith('redis-server', 'the leader lease', () => {
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
    await two.lease.release();
    expect(await one.attend()).toBe(true);
    expect(one.log.lines.map(({ fields }) => fields)).toMatchObject([
      { event: 'ebb.leader_acquired' },
      { event: 'ebb.leader_lost' },
      { event: 'ebb.leader_acquired' },
    ]);
  });

  it('stays with its holder while the store cannot be asked', async (test) => {
    const { redis, one, two } = await twoDaemons(test);
    await one.attend();
    await redis.kill();
    await expect(one.attend()).rejects.toThrow();
    await expect(two.attend()).rejects.toThrow();
    expect([one.lease.isHeld(), two.lease.isHeld()]).toEqual([true, false]);
  });
});
