/** Jobs are only triggers of a check, so a lost, late or repeated job costs time, never correctness. See docs/architecture.md. */
export const QUEUE_NAMES = ['inventory', 'boundaries', 'crossings', 'reconcile', 'operations'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

export interface JobData {
  /** The project concerned; absent where a job concerns the whole fleet. */
  projectId?: string;
  /** The instant that the job is about, milliseconds since the epoch. */
  instantMs?: number;
  /** The job doesn't begin before this instant by the clock of the daemon that takes it, milliseconds since the epoch. */
  notBeforeMs?: number;
}

export interface Job {
  queue: QueueName;
  id: string;
  data: JobData;
}

/** `again`: the job is delayed until `atMs`, without a worker slot. `left`: it stays unchanged for the next worker. */
export type JobOutcome = { kind: 'done' } | { kind: 'again'; atMs: number } | { kind: 'left' };

/** The signal aborts when the worker closes; the handler must then return soon. */
export type JobHandler = (job: Job, signal: AbortSignal) => Promise<JobOutcome>;

export type JobCounts = Record<'waiting' | 'active' | 'delayed' | 'failed', number>;

export interface JobQueue {
  /**
   * Ensures that a job of this queue runs every `intervalMs` real milliseconds, once for all daemons of a group.
   * Idempotent; another call repairs a queue that has lost its scheduler.
   */
  every(queue: QueueName, intervalMs: number): Promise<void>;
  /**
   * Ensures one job with this id at this instant of the clock port. An id that exists, or completed within the last hour, is not added again.
   * An id may neither contain a colon nor consist of digits only.
   */
  addAt(queue: QueueName, job: { id: string; atMs: number; data: JobData }): Promise<void>;
  /**
   * Ensures a run soon, or at an instant of the clock port. It is merged with a waiting job of this key, and follows a running one. This
   * only saves work: two jobs of one key may still overlap.
   */
  add(queue: QueueName, job: { key: string; atMs?: number; data: JobData }): Promise<void>;
  /** Ids of the jobs that wait for their instant. */
  delayedIds(queue: QueueName): Promise<string[]>;
  /** Removes a waiting job; does nothing if it is gone or running. */
  remove(queue: QueueName, id: string): Promise<void>;
  counts(): Promise<Record<QueueName, JobCounts>>;
  /** Starts to work a queue. A handler that throws fails its job (there are no retries) and `onFailed` is called. */
  work(queue: QueueName, handler: JobHandler, options: { concurrency: number }): Promise<void>;
  /** Takes no more jobs of a queue until `resume`, so that other daemons take them. Resolves when running ones have ended. */
  pause(queue: QueueName): Promise<void>;
  resume(queue: QueueName): Promise<void>;
  /**
   * Stops taking jobs, aborts the running handlers' signal and waits for them, at most `graceMs`. A job whose handler then
   * throws has not failed: the next daemon takes it again.
   */
  close(graceMs: number): Promise<void>;
}
