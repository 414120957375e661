import { setMaxListeners } from 'node:events';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Job, JobCounts, JobData, JobHandler, JobOutcome, QueueName } from '../../../src/ports/job-queue.ts';
import type { SteppedClock } from './clock.ts';

const HOUR_MS = 3_600_000;

/**
 * Before a handler gets a job back that it has left, or has asked to be called for again at once, in milliseconds: a round trip to the
 * engine. Without it a handler could hold the time of a test at one instant for ever.
 */
const ROUND_TRIP_MS = 1;

const TICK = 'tick';

/** The time of the engine, which no daemon's clock changes; `at` is cheaper than a wait that is called off. */
export type GroupTime = Pick<Clock, 'now' | 'monotonicMs' | 'wait'> & Partial<Pick<SteppedClock, 'at'>>;

/** Calls back after so many milliseconds; returns how to call that off. */
export function after(time: GroupTime, ms: number, callback: () => void): () => void {
  if (time.at) return time.at(time.now() + ms, callback);
  const off = new AbortController();
  time.wait(ms, off.signal, { ref: false }).then(callback, () => {});
  return () => off.abort();
}

/** Takes jobs of one queue for one daemon. */
export interface Worker {
  handler: JobHandler;
  concurrency: number;
  onFailed(queue: QueueName, job: Job, error: Error): void;
  /** The clock of its daemon, by which its handler asks to be called again. */
  clock: Pick<Clock, 'realDelayMs'>;
  isPaused: boolean;
  runs: Set<Run>;
  /** The place of its last job among all that were taken: the worker that has waited longest is the next. */
  lastTaken: number;
}

export interface Run {
  controller: AbortController;
  /** Its daemon is gone: nothing of it begins or counts any more. */
  isLost: boolean;
  /** Resolves when the handler has ended, whatever came of it. */
  ended: Promise<void>;
  entry: Entry;
}

/** A job as all daemons of the group see it. */
interface Entry {
  id: string;
  /** Its data, which no two daemons share. */
  json: string;
  state: 'waiting' | 'delayed' | 'active';
  key?: string;
  /** Its id is remembered for an hour after it completed. */
  isRemembered?: boolean;
  /** Comes after it: asked for with the same key while it ran. */
  next?: { json: string; delayMs: number } | undefined;
  /** The run that has it; the outcome of any other counts for nothing. */
  run?: Run | undefined;
  /** Has just left it, so that another worker takes it if there is one. */
  leftBy?: Worker | undefined;
  /** Calls off the end of its delay. */
  cancel?: () => void;
}

export type SharedQueue = ReturnType<typeof createSharedQueue>;

/** One queue that several daemons share, with the semantics that BullMQ gives to `createJobQueue`. */
export function createSharedQueue(name: QueueName, time: GroupTime) {
  const workers: Worker[] = [];
  const jobs = createSharedJobs(time, wake);
  let isWaking = false;
  let taken = 0;

  /** Hands out jobs once those who now add some are done. */
  function wake(): void {
    if (isWaking) return;
    isWaking = true;
    void Promise.resolve().then(() => {
      isWaking = false;
      while (handOut());
    });
  }

  /** The first job that waits goes to the worker that has waited longest; returns if there was such a pair. */
  function handOut(): boolean {
    const free = workers
      .filter(({ isPaused, runs, concurrency }) => !isPaused && runs.size < concurrency)
      .toSorted((one, other) => one.lastTaken - other.lastTaken);
    for (const entry of jobs.waiting) {
      const worker = free.find((one) => one !== entry.leftBy);
      if (worker === undefined) continue;
      taken += 1;
      worker.lastTaken = taken;
      if (jobs.isTick(entry)) jobs.takeTick();
      else start(entry, worker);
      return true;
    }
    return false;
  }

  function start(entry: Entry, worker: Worker): void {
    const run: Run = { controller: new AbortController(), isLost: false, ended: Promise.resolve(), entry };
    // A job may have many calls under way.
    setMaxListeners(0, run.controller.signal);
    jobs.take(entry, run);
    worker.runs.add(run);
    run.ended = perform(run, worker).finally(() => {
      worker.runs.delete(run);
      wake();
    });
  }

  async function perform(run: Run, worker: Worker): Promise<void> {
    const { entry } = run;
    const { signal } = run.controller;
    // Never within the call that has added the job.
    await Promise.resolve();
    if (run.isLost) return;
    const job: Job = { queue: name, id: entry.id, data: JSON.parse(entry.json) as JobData };
    const outcome = await outcomeOf(job, worker.handler, signal);
    if (run.isLost || entry.run !== run) return;
    entry.run = undefined;
    if (outcome.kind === 'again') jobs.delay(entry, Math.max(ROUND_TRIP_MS, delayMsOf(worker.clock, outcome.atMs)));
    else if (outcome.kind === 'left') jobs.leave(entry, worker);
    else jobs.finish(entry, outcome.kind === 'done');
    if (outcome.kind === 'failed') worker.onFailed(name, job, outcome.error);
  }

  return {
    ...{ workers, wake, every: jobs.every, addAt: jobs.addAt, add: jobs.add, remove: jobs.remove, clear: jobs.clear },
    counts: jobs.counts,
    delayedIds: jobs.delayedIds,
    /** What these runs held waits again, before all others and in the order in which it was taken. */
    giveBack(runs: readonly Run[]): void {
      for (const run of runs.toReversed()) {
        if (run.entry.run !== run) continue;
        run.entry.run = undefined;
        jobs.wait(run.entry, 'first');
      }
    },
  };
}

type Outcome = JobOutcome | { kind: 'failed'; error: Error };

async function outcomeOf(job: Job, handler: JobHandler, signal: AbortSignal): Promise<Outcome> {
  try {
    return await handler(job, signal);
  } catch (error) {
    if (signal.aborted) return { kind: 'left' };
    return { kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** Real milliseconds until an instant by the clock of a daemon, whole ones as for the real queue. */
export function delayMsOf(clock: Pick<Clock, 'realDelayMs'>, instantMs: number): number {
  return Math.ceil(clock.realDelayMs(instantMs));
}

/** The jobs of one queue that are known to the group, and when they come. */
function createSharedJobs(time: GroupTime, onWaiting: () => void) {
  const waiting: Entry[] = [];
  const byId = new Map<string, Entry>();
  const byKey = new Map<string, Entry>();
  const completedAtMs = new Map<string, number>();
  let schedule: { intervalMs: number; nextMs: number; entry: Entry } | undefined;
  let keyed = 0;

  function wait(entry: Entry, place: 'first' | 'last'): void {
    entry.state = 'waiting';
    if (place === 'first') waiting.unshift(entry);
    else waiting.push(entry);
    onWaiting();
  }

  /** Real milliseconds. */
  function delay(entry: Entry, ms: number): void {
    if (ms <= 0) {
      wait(entry, 'last');
      return;
    }
    entry.state = 'delayed';
    entry.cancel = after(time, ms, () => wait(entry, 'last'));
  }

  function withdraw(entry: Entry): void {
    entry.cancel?.();
    const index = waiting.indexOf(entry);
    if (index >= 0) waiting.splice(index, 1);
  }

  function forget(entry: Entry): void {
    byId.delete(entry.id);
    if (entry.key !== undefined && byKey.get(entry.key) === entry) byKey.delete(entry.key);
  }

  function put(entry: Entry, delayMs: number): void {
    byId.set(entry.id, entry);
    if (entry.key !== undefined) byKey.set(entry.key, entry);
    delay(entry, delayMs);
  }

  function putKeyed(key: string, json: string, delayMs: number): void {
    keyed += 1;
    put({ id: String(keyed), key, json, state: 'waiting' }, delayMs);
  }

  function isKnown(id: string): boolean {
    const doneAtMs = completedAtMs.get(id) ?? Number.NEGATIVE_INFINITY;
    return byId.has(id) || time.monotonicMs() - doneAtMs <= HOUR_MS;
  }

  function scheduleTick(intervalMs: number, nextMs: number): void {
    const entry: Entry = { id: `repeat:${TICK}:${nextMs}`, json: '{}', state: 'waiting' };
    schedule = { intervalMs, nextMs, entry };
    delay(entry, nextMs - time.monotonicMs());
  }

  return {
    ...{ waiting, wait, delay },
    /** A schedule's own job comes at once, and then at every interval; taking one schedules the next. */
    every(intervalMs: number): void {
      if (schedule?.intervalMs === intervalMs) return;
      if (schedule) withdraw(schedule.entry);
      scheduleTick(intervalMs, time.monotonicMs());
    },
    isTick: (entry: Entry) => entry === schedule?.entry,
    /** The schedule's own job only adds the real one, none while one waits or runs. Intervals that were missed are skipped. */
    takeTick(): void {
      if (!schedule) return;
      const { intervalMs, nextMs, entry } = schedule;
      withdraw(entry);
      const lateMs = time.monotonicMs() - nextMs;
      scheduleTick(intervalMs, nextMs + intervalMs * Math.max(1, Math.ceil(lateMs / intervalMs)));
      if (!byKey.has(TICK)) putKeyed(TICK, '{}', 0);
    },
    addAt({ id, data }: { id: string; data: JobData }, delayMs: number): void {
      if (/:|^\d+$/.test(id)) throw new Error(`BullMQ refuses a job with the id ${id}`);
      if (!isKnown(id)) put({ id, json: JSON.stringify(data), state: 'waiting', isRemembered: true }, delayMs);
    },
    add(key: string, data: JobData, delayMs: number): void {
      const same = byKey.get(key);
      const json = JSON.stringify(data);
      if (same === undefined) putKeyed(key, json, delayMs);
      else if (same.state === 'active') same.next = { json, delayMs };
    },
    remove(id: string): void {
      const entry = byId.get(id);
      if (entry === undefined || entry.state === 'active') return;
      withdraw(entry);
      forget(entry);
    },
    take(entry: Entry, run: Run): void {
      withdraw(entry);
      Object.assign(entry, { state: 'active', run, leftBy: undefined });
    },
    leave(entry: Entry, worker: Worker): void {
      entry.leftBy = worker;
      wait(entry, 'first');
      after(time, ROUND_TRIP_MS, () => {
        if (entry.leftBy === worker) entry.leftBy = undefined;
        onWaiting();
      });
    },
    finish(entry: Entry, isCompleted: boolean): void {
      forget(entry);
      if (isCompleted && entry.isRemembered) completedAtMs.set(entry.id, time.monotonicMs());
      for (const [id, atMs] of completedAtMs) {
        if (time.monotonicMs() - atMs <= HOUR_MS) break;
        completedAtMs.delete(id);
      }
      // Its delay was reckoned when it was asked for, and begins only now: so does BullMQ.
      if (entry.key !== undefined && entry.next) putKeyed(entry.key, entry.next.json, entry.next.delayMs);
    },
    delayedIds: () => [...byId.values()].filter(({ state }) => state === 'delayed').map(({ id }) => id),
    counts(): JobCounts {
      const counts = { waiting: 0, active: 0, delayed: 0, failed: 0 };
      for (const { state } of [...byId.values(), ...(schedule ? [schedule.entry] : [])]) counts[state] += 1;
      return counts;
    },
    /** Everything is lost, as with the data of the engine; what runs does so in vain. */
    clear(): void {
      for (const entry of [...byId.values(), ...(schedule ? [schedule.entry] : [])]) {
        withdraw(entry);
        entry.run = undefined;
      }
      for (const all of [byId, byKey, completedAtMs]) all.clear();
      schedule = undefined;
    },
  };
}
