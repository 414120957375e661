import { RECOVERY } from '../../../src/domain/records/recovery-times.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { type JobQueue, QUEUE_NAMES, type QueueName } from '../../../src/ports/job-queue.ts';
import { after, createSharedQueue, delayMsOf, type GroupTime, type SharedQueue, type Worker } from './shared-queue.ts';

/** The longest time until the job of a dead daemon is found: its lock runs out, and the next search finds it stalled. */
const STALL_MS = RECOVERY.jobLockMs + RECOVERY.stalledJobsMs;

/** A daemon of the group. */
interface Daemon {
  /** Its own, by which its instants are meant; it may differ from that of others. */
  clock: Clock;
  onFailed?: Worker['onFailed'];
}

export interface MemoryBroker {
  /** The queue of one more daemon of the group. */
  connect(daemon: Daemon): JobQueue;
  /**
   * The daemon of this queue dies: it gets no job any more, its calls have no effect and get no answer, and others get its jobs once they are
   * found stalled. Signals of running handlers are not aborted, since a dead process sees nothing.
   */
  kill(queue: JobQueue): void;
  /** All jobs, schedules and remembered ids are lost, as when the data of the engine is. */
  clear(): void;
}

/**
 * The job queues of a group of daemons, in memory, as `createJobQueue` gives them on an engine. It has no time but that of its clocks and
 * draws nothing at random: on stepped time the same calls give the same order.
 */
export function createMemoryBroker(time: GroupTime): MemoryBroker {
  const queues: Record<QueueName, SharedQueue> = {
    inventory: createSharedQueue('inventory', time),
    boundaries: createSharedQueue('boundaries', time),
    crossings: createSharedQueue('crossings', time),
    reconcile: createSharedQueue('reconcile', time),
    operations: createSharedQueue('operations', time),
  };
  const kills = new Map<JobQueue, () => void>();
  return {
    connect(daemon) {
      const { queue, kill } = connect({ queues, time }, daemon);
      kills.set(queue, kill);
      return queue;
    },
    kill: (queue) => kills.get(queue)?.(),
    clear() {
      for (const queue of Object.values(queues)) queue.clear();
    },
  };
}

interface Group {
  queues: Record<QueueName, SharedQueue>;
  time: GroupTime;
}

function connect({ queues, time }: Group, { clock, onFailed = () => {} }: Daemon): { queue: JobQueue; kill(): void } {
  const own: { queue: SharedQueue; worker: Worker }[] = [];
  const runs = () => own.flatMap(({ worker }) => [...worker.runs]);
  const workersOf = (name: QueueName) => own.filter(({ queue }) => queue === queues[name]).map(({ worker }) => worker);
  let isKilled = false;
  let closing: Promise<void> | undefined;

  function stopTaking(): void {
    for (const { queue, worker } of own) {
      const index = queue.workers.indexOf(worker);
      if (index >= 0) queue.workers.splice(index, 1);
    }
  }

  /** What still runs counts for nothing from now on; its jobs are found stalled. */
  function lose(): void {
    stopTaking();
    for (const run of runs()) run.isLost = true;
    const lost = own.map(({ queue, worker }) => ({ queue, runs: [...worker.runs] }));
    if (runs().length === 0) return;
    after(time, STALL_MS, () => {
      for (const each of lost) each.queue.giveBack(each.runs);
    });
  }

  async function close(graceMs: number): Promise<void> {
    stopTaking();
    for (const { controller } of runs()) controller.abort();
    // Without a grace there is still a turn, as on a timer of 0 ms: time may stand still.
    const grace = graceMs > 0 ? clock.wait(graceMs) : clock.nextTurn();
    await Promise.race([Promise.all(runs().map(({ ended }) => ended)), grace]);
    lose();
  }

  /** A call of a daemon: those of a dead one have no effect and get no answer. */
  const call =
    <A extends unknown[], T>(work: (...args: A) => T | Promise<T>) =>
    async (...args: A): Promise<T> =>
      isKilled ? new Promise<never>(() => {}) : work(...args);

  const queue: JobQueue = {
    every: call((name, intervalMs) => queues[name].every(intervalMs)),
    addAt: call((name, job) => queues[name].addAt(job, delayMsOf(clock, job.atMs))),
    add: call((name, { key, atMs, data }) =>
      queues[name].add(key, data, atMs === undefined ? 0 : delayMsOf(clock, atMs)),
    ),
    delayedIds: call((name) => queues[name].delayedIds()),
    remove: call((name, id) => queues[name].remove(id)),
    counts: call(() => {
      const counts = QUEUE_NAMES.map((name) => [name, queues[name].counts()]);
      return Object.fromEntries(counts) as Awaited<ReturnType<JobQueue['counts']>>;
    }),
    work: call((name, handler, { concurrency }) => {
      const queue = queues[name];
      const worker = {
        ...{ handler, concurrency, onFailed, clock },
        isPaused: false,
        runs: new Set<never>(),
        lastTaken: 0,
      };
      own.push({ queue, worker });
      queue.workers.push(worker);
      queue.wake();
    }),
    pause: call(async (name) => {
      for (const worker of workersOf(name)) worker.isPaused = true;
      await Promise.all(workersOf(name).flatMap(({ runs }) => [...runs].map(({ ended }) => ended)));
    }),
    resume: call((name) => {
      for (const worker of workersOf(name)) worker.isPaused = false;
      queues[name].wake();
    }),
    async close(graceMs) {
      if (isKilled) return;
      closing ??= close(graceMs);
      await closing;
    },
  };
  return {
    queue,
    kill() {
      isKilled = true;
      lose();
    },
  };
}
