/** The queue of a group of daemons in memory. It passes the contract of the real ones, and draws nothing at random. */

import { RECOVERY } from '../../../src/domain/records/recovery-times.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import {
  type Job,
  type JobCounts,
  type JobData,
  type JobHandler,
  type JobQueue,
  QUEUE_NAMES,
  type QueueName,
} from '../../../src/ports/job-queue.ts';
import type { SteppedClock } from './clock.ts';

const HOUR_MS = 3_600_000;

/** A dead worker's job is taken by another one so long after, in milliseconds. */
const STALLED_MS = RECOVERY.jobLockMs + 2 * RECOVERY.stalledJobsMs;

/** A job; with a key it is merged with others of that key. */
interface Entry extends Job {
  key?: string;
}

interface Worker {
  client: Client;
  handler: JobHandler;
  concurrency: number;
  running: Map<Entry, AbortController>;
  isPaused: boolean;
}

interface Client {
  clock: Clock;
  onFailed(queue: QueueName, job: Job, error: Error): void;
  isClosed: boolean;
  isKilled: boolean;
}

/** The jobs of one queue, as all daemons of the group see them. */
interface Line {
  waiting: Entry[];
  delayed: Map<Entry, () => void>;
  active: Set<Entry>;
  /** By key, the job that follows the one that runs. */
  next: Map<string, { data: JobData; atMs: number | undefined }>;
  /** When jobs with an instant were done, by id, in the time of the group. */
  doneAtMs: Map<string, number>;
  workers: Worker[];
  schedule: (() => void) | undefined;
}

export interface MemoryBroker {
  connect(options: { clock: Clock; onFailed?: Client['onFailed'] }): JobQueue;
  /** The daemon of this queue is gone: others take its jobs after a while. */
  kill(queue: JobQueue): void;
  /** Everything is lost. */
  clear(): void;
}

/** That of the group, which no daemon's clock changes; `at` calls back at an instant, and is cheaper than a wait that is called off. */
type GroupTime = Pick<Clock, 'now' | 'monotonicMs' | 'wait'> & Partial<Pick<SteppedClock, 'at'>>;

export function createMemoryBroker(time: GroupTime): MemoryBroker {
  const lines = new Map<QueueName, Line>(QUEUE_NAMES.map((name) => [name, newLine()]));
  const clients = new Map<JobQueue, Client>();
  const lineOf = (name: QueueName) => lines.get(name) as Line;
  let made = 0;

  /** Calls back after so long; returns how to call that off. */
  function after(ms: number, callback: () => void): () => void {
    if (time.at) return time.at(time.now() + Math.max(0, ms), callback);
    const over = new AbortController();
    time.wait(Math.max(0, ms), over.signal, { ref: false }).then(callback, () => {});
    return () => over.abort();
  }

  function enter(name: QueueName, entry: Entry, delayMs: number): void {
    const line = lineOf(name);
    if (delayMs <= 0) {
      line.waiting.push(entry);
      serve(name);
      return;
    }
    const cancel = after(delayMs, () => {
      if (!line.delayed.delete(entry)) return;
      line.waiting.push(entry);
      serve(name);
    });
    line.delayed.set(entry, cancel);
  }

  /** Gives the jobs that wait to workers with room, in the order in which they came. */
  function serve(name: QueueName): void {
    const line = lineOf(name);
    for (let entry = line.waiting[0]; entry; entry = line.waiting[0]) {
      const worker = line.workers
        .filter(
          ({ client, isPaused, running, concurrency }) => isOpen(client) && !isPaused && running.size < concurrency,
        )
        .toSorted((a, b) => a.running.size - b.running.size)[0];
      if (!worker) return;
      line.waiting.shift();
      void run(name, worker, entry);
    }
  }

  async function run(name: QueueName, worker: Worker, entry: Entry): Promise<void> {
    const line = lineOf(name);
    const { client } = worker;
    const stop = new AbortController();
    line.active.add(entry);
    worker.running.set(entry, stop);
    let outcome: Awaited<ReturnType<JobHandler>> | undefined;
    try {
      outcome = await worker.handler({ queue: name, id: entry.id, data: entry.data }, stop.signal);
    } catch (error) {
      if (client.isKilled) return;
      if (stop.signal.aborted) outcome = { kind: 'left' };
      else client.onFailed(name, entry, error as Error);
    }
    // What a dead daemon had was given to others.
    if (client.isKilled || !worker.running.delete(entry)) return;
    const isKnown = line.active.delete(entry);
    if (!isKnown) return serve(name);
    if (outcome?.kind === 'left') line.waiting.push(entry);
    else if (outcome?.kind === 'again') enter(name, entry, Math.ceil(client.clock.realDelayMs(outcome.atMs)));
    else end(name, entry, outcome !== undefined);
    serve(name);
  }

  function end(name: QueueName, entry: Entry, isDone: boolean): void {
    const line = lineOf(name);
    if (entry.key === undefined) {
      if (isDone) line.doneAtMs.set(entry.id, time.monotonicMs());
      return;
    }
    const next = line.next.get(entry.key);
    line.next.delete(entry.key);
    if (next) enter(name, { ...entry, id: newId(), data: next.data }, (next.atMs ?? 0) - time.monotonicMs());
  }

  function newId(): string {
    made += 1;
    return `job-${made}`;
  }

  function isKnown(line: Line, isIt: (entry: Entry) => boolean): boolean {
    return line.waiting.some(isIt) || [...line.delayed.keys()].some(isIt);
  }

  function addByKey(name: QueueName, key: string, data: JobData, delayMs: number): void {
    const line = lineOf(name);
    const isOfKey = (entry: Entry) => entry.key === key;
    if (isKnown(line, isOfKey)) return;
    if ([...line.active].some(isOfKey)) line.next.set(key, { data, atMs: time.monotonicMs() + delayMs });
    else enter(name, { queue: name, id: newId(), key, data }, delayMs);
  }

  function schedule(name: QueueName, intervalMs: number): void {
    const line = lineOf(name);
    const tick = (): void => {
      line.schedule = after(intervalMs, tick);
      if (line.workers.some(({ client }) => isOpen(client))) addByKey(name, 'tick', {}, 0);
    };
    line.schedule ??= after(intervalMs, tick);
  }

  function workersOf(client: Client): { name: QueueName; worker: Worker }[] {
    return QUEUE_NAMES.flatMap((name) =>
      lineOf(name)
        .workers.filter((worker) => worker.client === client)
        .map((worker) => ({ name, worker })),
    );
  }

  async function closeClient(client: Client, graceMs: number): Promise<void> {
    if (client.isClosed) return;
    client.isClosed = true;
    const own = workersOf(client);
    for (const { worker } of own) for (const stop of worker.running.values()) stop.abort();
    const over = new AbortController();
    const grace = time.wait(graceMs, over.signal).catch(() => {});
    const isIdle = () => own.every(({ worker }) => worker.running.size === 0);
    const idle = (async () => {
      while (!isIdle() && !over.signal.aborted) await time.wait(1, over.signal).catch(() => {});
    })();
    await Promise.race([idle, grace]);
    over.abort();
    for (const { name, worker } of own) handOver(name, worker);
  }

  function handOver(name: QueueName, worker: Worker): void {
    const line = lineOf(name);
    line.workers = line.workers.filter((one) => one !== worker);
    for (const entry of worker.running.keys()) if (line.active.delete(entry)) line.waiting.push(entry);
    worker.running.clear();
    serve(name);
  }

  function queueOf(client: Client): JobQueue {
    return {
      every: async (name, intervalMs) => schedule(name, intervalMs),
      async addAt(name, { id, atMs, data }) {
        const line = lineOf(name);
        const doneAtMs = line.doneAtMs.get(id);
        if (doneAtMs !== undefined && time.monotonicMs() - doneAtMs < HOUR_MS) return;
        const isIt = (entry: Entry) => entry.id === id && entry.key === undefined;
        if (isKnown(line, isIt) || [...line.active].some(isIt)) return;
        enter(name, { queue: name, id, data }, Math.ceil(client.clock.realDelayMs(atMs)));
      },
      add: async (name, { key, atMs, data }) =>
        addByKey(name, key, data, atMs === undefined ? 0 : Math.ceil(client.clock.realDelayMs(atMs))),
      delayedIds: async (name) => [...lineOf(name).delayed.keys()].map(({ id }) => id),
      async remove(name, id) {
        const line = lineOf(name);
        for (const [entry, cancel] of line.delayed) {
          if (entry.id !== id) continue;
          line.delayed.delete(entry);
          cancel();
        }
        line.waiting = line.waiting.filter((entry) => entry.id !== id);
      },
      counts: async () =>
        Object.fromEntries(
          QUEUE_NAMES.map((name): [QueueName, JobCounts] => {
            const { waiting, active, delayed } = lineOf(name);
            return [name, { waiting: waiting.length, active: active.size, delayed: delayed.size, failed: 0 }];
          }),
        ) as Record<QueueName, JobCounts>,
      async work(name, handler, { concurrency }) {
        lineOf(name).workers.push({ client, handler, concurrency, running: new Map(), isPaused: false });
        serve(name);
      },
      async pause(name) {
        for (const { worker } of workersOf(client).filter((one) => one.name === name)) worker.isPaused = true;
      },
      async resume(name) {
        for (const { worker } of workersOf(client).filter((one) => one.name === name)) worker.isPaused = false;
        serve(name);
      },
      close: (graceMs) => closeClient(client, graceMs),
    };
  }

  return {
    connect({ clock, onFailed = () => {} }) {
      const client: Client = { clock, onFailed, isClosed: false, isKilled: false };
      const queue = queueOf(client);
      clients.set(queue, client);
      return queue;
    },
    kill(queue) {
      const client = clients.get(queue);
      if (!client || client.isKilled) return;
      client.isKilled = true;
      for (const { name, worker } of workersOf(client)) after(STALLED_MS, () => handOver(name, worker));
    },
    clear() {
      for (const line of lines.values()) {
        for (const cancel of line.delayed.values()) cancel();
        line.schedule?.();
        Object.assign(line, newLine(), { workers: line.workers });
      }
    },
  };
}

function newLine(): Line {
  return {
    waiting: [],
    delayed: new Map(),
    active: new Set(),
    next: new Map(),
    doneAtMs: new Map(),
    workers: [],
    schedule: undefined,
  };
}

function isOpen({ isClosed, isKilled }: Client): boolean {
  return !isClosed && !isKilled;
}
