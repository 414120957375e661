/**
 * Jobs are triggers only: a job says that something should be checked. The check decides; so a lost, late or doubled job costs time, never
 * correctness. See docs/architecture.md.
 */
export const QUEUE_NAMES = ['inventory', 'boundaries', 'crossings', 'reconcile', 'operations'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

export interface JobData {
  /** The project concerned; absent where a job concerns the whole fleet. */
  projectId?: string;
  /** The instant that the job is about, milliseconds since the epoch. */
  instantMs?: number;
  /** The project is not looked at before this instant by the clock of the daemon that takes the job, milliseconds since the epoch. */
  notBeforeMs?: number;
}

export interface Job {
  queue: QueueName;
  id: string;
  data: JobData;
}

/**
 * A handler ends with `done`, asks to be called again (the job moves back to delayed and holds no worker slot), or leaves the job as it
 * was to the next worker.
 */
export type JobOutcome = { kind: 'done' } | { kind: 'again'; atMs: number } | { kind: 'left' };

/** Aborted when the worker closes; a handler then returns as soon as it can. */
export type JobHandler = (job: Job, signal: AbortSignal) => Promise<JobOutcome>;

export type JobCounts = Record<'waiting' | 'active' | 'delayed' | 'failed', number>;

export interface JobQueue {
  /**
   * Ensures that a job of this queue comes every `intervalMs` real milliseconds, once for all daemons of a group.
   * Idempotent; calling it again repairs a queue that lost its scheduler.
   */
  every(queue: QueueName, intervalMs: number): Promise<void>;
  /**
   * Ensures one job with this id at this (simulated) instant. An id that is already known, also one that completed within the last
   * hour, is not added again. An id may hold neither a colon nor only digits.
   */
  addAt(queue: QueueName, job: { id: string; atMs: number; data: JobData }): Promise<void>;
  /**
   * Ensures a run soon, or at a (simulated) instant. While one with this key waits, it is merged; while one runs, one more follows it;
   * nothing is remembered of one that is done. It saves work and is no mutex: two jobs of one key may overlap.
   */
  add(queue: QueueName, job: { key: string; atMs?: number; data: JobData }): Promise<void>;
  /** Ids of the jobs that wait for their instant. */
  delayedIds(queue: QueueName): Promise<string[]>;
  /** Removes a job that waits; does nothing if it is gone or running. */
  remove(queue: QueueName, id: string): Promise<void>;
  counts(): Promise<Record<QueueName, JobCounts>>;
  /**
   * Starts to work a queue. A handler that throws fails its job (one attempt; nothing is retried blindly) and `onFailed`
   * is called.
   */
  work(queue: QueueName, handler: JobHandler, options: { concurrency: number }): Promise<void>;
  /** Takes no more jobs of a queue until `resume`, so that other daemons take them. Resolves when those that run are done. */
  pause(queue: QueueName): Promise<void>;
  /** Takes jobs of a queue again. */
  resume(queue: QueueName): Promise<void>;
  /**
   * Stops taking jobs, aborts the running handlers' signal and waits for them, at most `graceMs`. A job whose handler then
   * throws has not failed: the next daemon takes it again.
   */
  close(graceMs: number): Promise<void>;
}
