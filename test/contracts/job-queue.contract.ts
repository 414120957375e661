import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { wakeAt } from '../../src/app/triggers.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Job, JobHandler, JobQueue } from '../../src/ports/job-queue.ts';
import type { TestEngine } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';

const HOUR_MS = 3_600_000;
const GRACE_MS = 10_000;
const ONE_AT_A_TIME = { concurrency: 1 };

/** Where jobs are kept, and what daemons that share it work with. */
export interface TestQueues {
  open(clock: Clock, onFailed: (queue: string, job: Job, error: Error) => void): JobQueue;
  /** Everything is lost. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** The queues that run on an engine. */
export function queuesOn(open: () => Promise<TestEngine>): () => Promise<TestQueues> {
  return async () => {
    const on = await open();
    return {
      open: (clock, onFailed) => createJobQueue({ engine: on.engine, log: on.log, clock, onFailed }),
      reset: () => on.reset(),
      close: () => on.close(),
    };
  };
}

/** What every job queue must do. */
export function describeJobQueue(open: () => Promise<TestQueues>): void {
  let on: TestQueues;
  let queue: JobQueue;
  let failed: { job: Job; error: Error }[];
  const opened: JobQueue[] = [];

  function openQueue(aheadMs = 0): JobQueue {
    const onFailed = (_queue: string, job: Job, error: Error) => failed.push({ job, error });
    const own = systemClock();
    const clock = { ...own, realDelayMs: (ms: number) => Math.max(0, own.realDelayMs(ms) - aheadMs) };
    const made = on.open(clock, onFailed);
    opened.push(made);
    return made;
  }

  beforeAll(async () => {
    on = await open();
  });
  beforeEach(async () => {
    await on.reset();
    failed = [];
    queue = openQueue();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close(GRACE_MS)));
  });
  afterAll(() => on.close());

  const idle = async () => {
    const counts = Object.values(await queue.counts());
    return counts.every(({ waiting, active }) => waiting + active === 0);
  };

  describe('a job at an instant', () => {
    it('waits for its instant and then runs once, with its data', async () => {
      let startedAtMs = 0;
      const seen = recorder(() => {
        startedAtMs = Date.now();
        return { kind: 'done' };
      });
      await queue.work('boundaries', seen.handler, ONE_AT_A_TIME);
      await queue.addAt('boundaries', { id: 'b-later', atMs: Date.now() + HOUR_MS, data: {} });
      const instantMs = Date.now() + 200;
      await queue.addAt('boundaries', { id: 'b-soon', atMs: instantMs, data: { instantMs, projectId: 'p-1' } });
      await eventually(() => seen.jobs).toHaveLength(1);
      expect(startedAtMs).toBeGreaterThanOrEqual(instantMs);
      expect(seen.jobs[0]).toEqual({ queue: 'boundaries', id: 'b-soon', data: { instantMs, projectId: 'p-1' } });
      expect(await queue.delayedIds('boundaries')).toEqual(['b-later']);
    });

    it('runs at once when its instant has passed', async () => {
      const seen = recorder();
      await queue.work('boundaries', seen.handler, ONE_AT_A_TIME);
      await queue.addAt('boundaries', { id: 'b-past', atMs: Date.now() - HOUR_MS, data: {} });
      await eventually(() => seen.ids()).toEqual(['b-past']);
    });

    it('is not added again while its id is known: waiting, running, or completed', async () => {
      const gate = gated();
      await queue.work('boundaries', gate.handler, ONE_AT_A_TIME);
      const add = () => queue.addAt('boundaries', { id: 'b-1', atMs: Date.now() + 50, data: {} });
      await add();
      await add();
      await eventually(() => gate.running).toBe(1);
      await add();
      gate.open();
      await eventually(idle).toBe(true);
      await add();
      await queue.addAt('boundaries', { id: 'b-2', atMs: Date.now() + 100, data: {} });
      await eventually(() => gate.ids()).toEqual(['b-1', 'b-2']);
      expect(await queue.delayedIds('boundaries')).toEqual([]);
    });

    it('is removed while it waits, and only then', async () => {
      const gate = gated();
      await queue.work('boundaries', gate.handler, ONE_AT_A_TIME);
      await queue.addAt('boundaries', { id: 'b-never', atMs: Date.now() + HOUR_MS, data: {} });
      await queue.addAt('boundaries', { id: 'b-now', atMs: Date.now(), data: {} });
      await eventually(() => gate.running).toBe(1);
      await queue.remove('boundaries', 'b-never');
      await queue.remove('boundaries', 'b-now');
      await queue.remove('boundaries', 'b-unknown');
      expect(await queue.delayedIds('boundaries')).toEqual([]);
      expect((await queue.counts()).boundaries.active).toBe(1);
      gate.open();
      await eventually(idle).toBe(true);
      expect(failed).toEqual([]);
    });
  });

  describe('a job by key', () => {
    const look = (projectId: string) => ({ key: projectId, data: { projectId } });

    it('is merged while one waits', async () => {
      for (let i = 0; i < 5; i += 1) await queue.add('reconcile', look('p-1'));
      await queue.add('reconcile', look('p-2'));
      expect((await queue.counts()).reconcile.waiting).toBe(2);
    });

    it('runs exactly once more when it is asked for while one runs', async () => {
      const gate = gated();
      await queue.work('reconcile', gate.handler, { concurrency: 5 });
      await queue.add('reconcile', look('p-1'));
      await eventually(() => gate.running).toBe(1);
      for (let i = 0; i < 4; i += 1) await queue.add('reconcile', look('p-1'));
      await queue.add('reconcile', look('p-2'));
      await eventually(() => gate.running).toBe(2);
      expect(gate.projects()).toEqual(['p-1', 'p-2']);
      gate.open();
      await eventually(() => gate.projects()).toEqual(['p-1', 'p-2', 'p-1']);
      await eventually(idle).toBe(true);
      expect(gate.projects()).toHaveLength(3);
    });

    it('with an instant waits for it, and is merged while it waits', async () => {
      const seen = recorder();
      await queue.work('boundaries', seen.handler, ONE_AT_A_TIME);
      const instantMs = Date.now() + HOUR_MS;
      for (let i = 0; i < 3; i += 1) await queue.add('boundaries', { ...look('p-1'), atMs: instantMs });
      await queue.add('boundaries', look('p-2'));
      await eventually(() => seen.projects()).toEqual(['p-2']);
      await eventually(async () => (await queue.counts()).boundaries).toMatchObject({
        waiting: 0,
        active: 0,
        delayed: 1,
      });
    });

    it('that wakes a project comes again where it came too early, by the clock of another daemon', async () => {
      const gate = gated();
      const ahead = openQueue(HOUR_MS);
      await queue.work('boundaries', gate.handler, ONE_AT_A_TIME);
      const [whileItRuns, afterIt] = [Date.now() + 1_000, Date.now() + 1_001];
      for (const instantMs of [whileItRuns, afterIt]) await wakeAt({ queue: ahead }, 'p-1', instantMs);
      await eventually(() => gate.running).toBe(1);
      await wakeAt({ queue }, 'p-1', whileItRuns);
      gate.open();
      await eventually(() => gate.instants().slice(0, 2)).toEqual([whileItRuns, afterIt]);
      await eventually(idle).toBe(true);
      await wakeAt({ queue }, 'p-1', afterIt);
      await eventually(() => gate.instants().slice(2).toSorted()).toEqual([whileItRuns, afterIt]);
    });

    it('follows one that failed too, where it was asked for while that ran', async () => {
      const gate = gated((_job, nth) => {
        if (nth === 0) throw new Error('broken');
        return { kind: 'done' };
      });
      await queue.work('reconcile', gate.handler, ONE_AT_A_TIME);
      await queue.add('reconcile', look('p-1'));
      await eventually(() => gate.running).toBe(1);
      await queue.add('reconcile', look('p-1'));
      gate.open();
      await eventually(() => gate.projects()).toEqual(['p-1', 'p-1']);
      await eventually(idle).toBe(true);
      expect(failed).toHaveLength(1);
    });

    it('can be asked for again after it ran, and after it failed', async () => {
      const seen = recorder(({ id }, nth) => {
        if (nth === 1) throw new Error(`no luck with ${id}`);
        return { kind: 'done' };
      });
      await queue.work('reconcile', seen.handler, ONE_AT_A_TIME);
      for (const runs of [1, 2, 3]) {
        await queue.add('reconcile', look('p-1'));
        await eventually(() => seen.jobs).toHaveLength(runs);
        await eventually(idle).toBe(true);
      }
      expect(failed).toHaveLength(1);
    });
  });

  describe('a handler', () => {
    it('that asks to be called again holds no slot meanwhile, however often it asks', async () => {
      const seen = recorder(({ id }, nth) => {
        if (id === 'follow-far') return { kind: 'again', atMs: Date.now() + HOUR_MS };
        return nth < 5 ? { kind: 'again', atMs: Date.now() + 20 } : { kind: 'done' };
      });
      await queue.work('operations', seen.handler, ONE_AT_A_TIME);
      await queue.addAt('operations', { id: 'follow-far', atMs: 0, data: {} });
      await eventually(() => queue.delayedIds('operations')).toEqual(['follow-far']);
      await queue.addAt('operations', { id: 'follow-near', atMs: 0, data: { projectId: 'p-1' } });
      await eventually(() => seen.ids().filter((id) => id === 'follow-near')).toHaveLength(6);
      await eventually(idle).toBe(true);
      expect(await queue.delayedIds('operations')).toEqual(['follow-far']);
      expect(failed).toEqual([]);
    });

    it('that throws fails its job once: it is reported, not retried, and forgotten', async () => {
      const seen = recorder(() => {
        throw new Error('broken');
      });
      await queue.work('boundaries', seen.handler, ONE_AT_A_TIME);
      const add = () => queue.addAt('boundaries', { id: 'b-1', atMs: 0, data: { projectId: 'p-1' } });
      await add();
      await eventually(() => failed).toHaveLength(1);
      expect(failed[0]).toMatchObject({ job: { id: 'b-1', data: { projectId: 'p-1' } }, error: { message: 'broken' } });
      expect((await queue.counts()).boundaries).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
      await add();
      await eventually(() => seen.jobs).toHaveLength(2);
    });

    it('that leaves its job leaves it as it was: the next worker takes it', async () => {
      const seen = recorder((_job, nth) => (nth < 3 ? { kind: 'left' } : { kind: 'done' }));
      await queue.work('boundaries', seen.handler, ONE_AT_A_TIME);
      await queue.addAt('boundaries', { id: 'b-1', atMs: 0, data: { projectId: 'p-1' } });
      await eventually(() => seen.ids()).toEqual(['b-1', 'b-1', 'b-1', 'b-1']);
      await eventually(idle).toBe(true);
      expect(seen.jobs.map(({ data }) => data.projectId)).toEqual(['p-1', 'p-1', 'p-1', 'p-1']);
      expect(failed).toEqual([]);
    });

    it('is left to another daemon by one that rests, until it takes jobs again', async () => {
      const [resting, working] = [recorder(), recorder()];
      const other = openQueue();
      await queue.work('reconcile', resting.handler, ONE_AT_A_TIME);
      await other.work('reconcile', working.handler, ONE_AT_A_TIME);
      await queue.pause('reconcile');
      for (const key of ['one', 'two', 'three', 'four']) await queue.add('reconcile', { key, data: {} });
      await eventually(() => working.jobs).toHaveLength(4);
      expect(resting.jobs).toEqual([]);
      await other.pause('reconcile');
      await queue.resume('reconcile');
      await queue.add('reconcile', { key: 'five', data: {} });
      await eventually(() => resting.jobs).toHaveLength(1);
    });

    it('never works more jobs at once than its concurrency, and each job on one of two daemons only', async () => {
      const gate = gated();
      const other = openQueue();
      await queue.work('reconcile', gate.handler, { concurrency: 2 });
      await other.work('reconcile', gate.handler, { concurrency: 1 });
      const projects = Array.from({ length: 12 }, (_, i) => `p-${i}`);
      await Promise.all(projects.map((key) => queue.add('reconcile', { key, data: { projectId: key } })));
      await eventually(() => gate.running).toBe(3);
      gate.open();
      await eventually(() => gate.jobs).toHaveLength(projects.length);
      expect(gate.mostRunning).toBe(3);
      expect(gate.projects().toSorted()).toEqual(projects.toSorted());
    });
  });

  describe('a job that comes again and again', () => {
    it('comes every interval, from one schedule however often and by whomever it is ensured', async () => {
      const seen = recorder();
      const other = openQueue();
      await queue.work('inventory', seen.handler, ONE_AT_A_TIME);
      for (const each of [queue, other, queue]) await each.every('inventory', 50);
      await eventually(() => seen.jobs.length).toBeGreaterThan(3);
      // One schedule: one next tick at most, besides the job that a tick has added.
      const { waiting, delayed } = (await queue.counts()).inventory;
      expect(waiting + delayed).toBeLessThanOrEqual(2);
      expect(await queue.delayedIds('inventory')).toEqual([]);
    });

    it('comes at once when it is ensured for the first time, or with another interval', async () => {
      const seen = recorder();
      await queue.work('inventory', seen.handler, ONE_AT_A_TIME);
      for (const intervalMs of [HOUR_MS, HOUR_MS, 2 * HOUR_MS]) {
        await queue.every('inventory', intervalMs);
        await eventually(() => seen.jobs.length).toBeGreaterThan(0);
        await eventually(idle).toBe(true);
      }
      await eventually(() => seen.jobs).toHaveLength(2);
      expect((await queue.counts()).inventory).toMatchObject({ waiting: 0, active: 0, delayed: 1 });
    });

    it('does not overlap with itself when it outlives its interval', async () => {
      const gate = gated();
      await queue.work('inventory', gate.handler, { concurrency: 4 });
      await queue.every('inventory', 20);
      await eventually(() => gate.running).toBe(1);
      const ticked = recorder();
      await queue.work('boundaries', ticked.handler, ONE_AT_A_TIME);
      await queue.addAt('boundaries', { id: 'b-several-intervals-later', atMs: Date.now() + 200, data: {} });
      await eventually(() => ticked.jobs).toHaveLength(1);
      expect(gate.mostRunning).toBe(1);
      gate.open();
      await eventually(() => gate.jobs.length).toBeGreaterThan(2);
      expect(gate.mostRunning).toBe(1);
    });

    it('comes again after everything was lost, once it is ensured again', async () => {
      const seen = recorder();
      await queue.work('inventory', seen.handler, ONE_AT_A_TIME);
      await queue.every('inventory', 50);
      await eventually(() => seen.jobs.length).toBeGreaterThan(0);
      await on.reset();
      const before = seen.jobs.length;
      await queue.every('inventory', 50);
      await eventually(() => seen.jobs.length).toBeGreaterThan(before + 2);
    });
  });

  describe('closing', () => {
    it('aborts running handlers, waits for them, and leaves what they did not finish to the next daemon', async () => {
      const aborted: string[] = [];
      await queue.work('reconcile', untilAborted(aborted), ONE_AT_A_TIME);
      await queue.add('reconcile', { key: 'p-1', data: { projectId: 'p-1' } });
      await queue.add('reconcile', { key: 'p-2', data: { projectId: 'p-2' } });
      await eventually(async () => (await queue.counts()).reconcile.active).toBe(1);
      await queue.close(GRACE_MS);
      expect(aborted).toEqual(['p-1']);
      expect(failed).toEqual([]);
      const next = openQueue();
      const seen = recorder();
      await next.work('reconcile', seen.handler, ONE_AT_A_TIME);
      await eventually(() => seen.projects().toSorted()).toEqual(['p-1', 'p-2']);
    });

    it('gives up on a handler that does not stop within the grace', async () => {
      const gate = gated();
      await queue.work('reconcile', gate.handler, ONE_AT_A_TIME);
      await queue.add('reconcile', { key: 'p-1', data: {} });
      await eventually(() => gate.running).toBe(1);
      await queue.close(50);
      expect(gate.running).toBe(1);
      gate.open();
    });

    it('is idempotent, and fine for a queue that was never used', async () => {
      const unused = openQueue();
      await unused.close(GRACE_MS);
      await unused.close(GRACE_MS);
    });
  });
}

type Respond = (job: Job, nth: number) => Awaited<ReturnType<JobHandler>>;

/** A handler that remembers its jobs; `nth` counts the calls from 0. */
function recorder(respond: Respond = () => ({ kind: 'done' })) {
  const jobs: Job[] = [];
  const calls = new Map<string, number>();
  const handler: JobHandler = async (job) => {
    jobs.push(job);
    const key = job.data.projectId ?? job.id;
    const nth = calls.get(key) ?? 0;
    calls.set(key, nth + 1);
    return respond(job, nth);
  };
  return {
    ...{ handler, jobs, ids: () => jobs.map(({ id }) => id) },
    ...{
      projects: () => jobs.map(({ data }) => data.projectId),
      instants: () => jobs.map(({ data }) => data.instantMs),
    },
  };
}

/** A handler that stays in each job until the gate is opened, once for all. */
function gated(respond?: Respond) {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const seen = recorder(respond);
  const gate = {
    jobs: seen.jobs,
    ids: seen.ids,
    projects: seen.projects,
    instants: seen.instants,
    running: 0,
    mostRunning: 0,
    open: () => open(),
    handler: (async (job, signal) => {
      gate.running += 1;
      gate.mostRunning = Math.max(gate.mostRunning, gate.running);
      const outcome = seen.handler(job, signal);
      await Promise.allSettled([outcome, opened]);
      gate.running -= 1;
      return outcome;
    }) satisfies JobHandler,
  };
  return gate;
}

/** A handler that works until it is told to stop, and then fails as an aborted call does. */
function untilAborted(aborted: (string | undefined)[]): JobHandler {
  return ({ data }, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted.push(data.projectId);
        reject(signal.reason);
      });
    });
}
