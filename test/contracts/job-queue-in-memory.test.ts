import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { RECOVERY } from '../../src/domain/records/recovery-times.ts';
import type { Job, JobHandler } from '../../src/ports/job-queue.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryBroker } from '../support/simulated/group-queue.ts';
import { describeJobQueue } from './job-queue.contract.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const STALL_MS = RECOVERY.jobLockMs + RECOVERY.stalledJobsMs;
const ONE_AT_A_TIME = { concurrency: 1 };

describe('job queue in memory', () => {
  describeJobQueue(async () => {
    const broker = createMemoryBroker(systemClock());
    const reset = async () => broker.clear();
    return { open: (clock, onFailed) => broker.connect({ clock, onFailed }), reset, close: reset };
  });
});

describe('a group of daemons on stepped time', () => {
  it('gives jobs in the order in which they came to the workers in turn', async () => {
    const { connect, pass, seen } = aGroup();
    for (const name of ['a', 'b', 'c']) await connect(name).work('reconcile', seen(name), ONE_AT_A_TIME);
    const { add } = connect('adds');
    for (let i = 0; i < 7; i += 1) await add('reconcile', { key: `p-${i}`, data: {} });
    await pass(1);
    expect(seen.all).toEqual(['a 1', 'b 2', 'c 3', 'a 4', 'b 5', 'c 6', 'a 7']);
  });

  it('gives the jobs of a daemon that died to others after the stall time, and nothing of it counts', async () => {
    const { connect, kill, pass, seen, failed } = aGroup();
    const [dead, living] = [connect('dead'), connect('living')];
    let fail = (_error: Error) => {};
    let wasAborted = false;
    const untilFailed: JobHandler = (_job, signal) => {
      signal.addEventListener('abort', () => {
        wasAborted = true;
      });
      return new Promise((_, reject) => {
        fail = reject;
      });
    };
    await dead.work('reconcile', untilFailed, ONE_AT_A_TIME);
    await dead.add('reconcile', { key: 'p-1', data: { projectId: 'p-1' } });
    await pass(1);
    await living.work('reconcile', seen('living'), ONE_AT_A_TIME);
    kill(dead);
    fail(new Error('after its death'));
    let isAnswered = false;
    void dead.add('reconcile', { key: 'p-dead', data: {} }).then(() => {
      isAnswered = true;
    });
    await living.add('reconcile', { key: 'p-2', data: { projectId: 'p-2' } });
    await pass(STALL_MS - 1);
    expect(seen.all).toEqual(['living 2']);
    await pass(1);
    expect(seen.all).toEqual(['living 2', 'living 1']);
    expect([failed, isAnswered, wasAborted]).toEqual([[], false, false]);
    expect((await living.counts()).reconcile).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    await dead.close(MINUTE_MS);
  });

  it('gives a job that did not end within the grace of a daemon that closed to another, after the stall time', async () => {
    const { connect, pass, seen } = aGroup();
    const [closing, other] = [connect('closing'), connect('other')];
    await closing.work('reconcile', () => new Promise(() => {}), ONE_AT_A_TIME);
    await closing.add('reconcile', { key: 'p-1', data: {} });
    await pass(1);
    await other.work('reconcile', seen('other'), ONE_AT_A_TIME);
    const closed = closing.close(1_000);
    await pass(1_000);
    await closed;
    await pass(STALL_MS - 1);
    expect(seen.all).toEqual([]);
    await pass(1);
    expect(seen.all).toEqual(['other 1']);
  });

  it('has one schedule, at once and at every interval, which outlives the daemon that has ensured it', async () => {
    const { connect, kill, pass, seen, clock } = aGroup();
    const [first, second] = [connect('first'), connect('second')];
    const ticks: number[] = [];
    for (const queue of [first, second]) {
      await queue.work(
        'inventory',
        seen('any', () => ticks.push(clock.now())),
        ONE_AT_A_TIME,
      );
      await queue.every('inventory', MINUTE_MS);
    }
    await pass(MINUTE_MS);
    kill(first);
    await pass(2 * MINUTE_MS);
    expect(ticks).toEqual([0, 1, 2, 3].map((minutes) => minutes * MINUTE_MS));
  });

  it('gives a job that was left to another worker, or back where there is none', async () => {
    const { connect, pass, seen } = aGroup();
    const [leaving, other] = [connect('leaving'), connect('other')];
    let left = 0;
    const leaves: JobHandler = async () => {
      left += 1;
      return { kind: 'left' };
    };
    await leaving.work('boundaries', leaves, { concurrency: 2 });
    await leaving.addAt('boundaries', { id: 'b-x', atMs: 0, data: {} });
    await pass(3);
    expect(left).toBeGreaterThan(1);
    await other.work('boundaries', seen('other'), ONE_AT_A_TIME);
    await pass(3);
    expect(seen.all).toEqual(['other b-x']);
  });

  it('remembers the id of a completed job for an hour', async () => {
    const { connect, pass, seen } = aGroup();
    const queue = connect('one');
    await queue.work('boundaries', seen('one'), ONE_AT_A_TIME);
    const add = async () => {
      await queue.addAt('boundaries', { id: 'b-1', atMs: 0, data: {} });
      await pass(1);
    };
    await add();
    await pass(HOUR_MS - 2);
    await add();
    expect(seen.all).toEqual(['one b-1']);
    await pass(1);
    await add();
    expect(seen.all).toEqual(['one b-1', 'one b-1']);
  });
});

function aGroup() {
  const clock = createSteppedClock(0, () => false);
  const broker = createMemoryBroker(clock);
  const failed: Job[] = [];
  const all: string[] = [];
  const seen = (daemon: string, onJob = () => {}): JobHandler => {
    return async ({ id }) => {
      all.push(`${daemon} ${id}`);
      onJob();
      return { kind: 'done' };
    };
  };
  return {
    ...{ clock, failed, seen: Object.assign(seen, { all }) },
    kill: broker.kill,
    connect: (_name: string) => broker.connect({ clock, onFailed: (_queue, job) => failed.push(job) }),
    pass: (ms: number) => clock.runTo(clock.now() + ms),
  };
}
