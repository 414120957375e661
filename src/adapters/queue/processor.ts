import { type Job as BullJob, DelayedError, WaitingError } from 'bullmq';
import type { Clock } from '../../ports/clock.ts';
import type { Job, JobData, JobHandler, JobOutcome, QueueName } from '../../ports/job-queue.ts';
import { TICK } from './job-names.ts';

export type EbbJob = BullJob<JobData, unknown, string>;

export interface ProcessorOptions {
  queue: QueueName;
  handler: JobHandler;
  clock: Clock;
  signal: AbortSignal;
  onTick(queue: QueueName): Promise<void>;
}

/**
 * What a worker does with a job. A tick only adds the real job, deduplicated, and ends: a scheduler's own jobs can't be
 * deduplicated, so that one which outlives its interval would overlap with the next.
 */
export async function processJob(job: EbbJob, token: string | undefined, options: ProcessorOptions): Promise<void> {
  const { queue, handler, clock, signal, onTick } = options;
  if (job.name === TICK) return onTick(queue);
  const outcome = await outcomeOf(toJob(queue, job), handler, signal);
  if (outcome.kind === 'done') return;
  if (outcome.kind === 'left') {
    await job.moveToWait(token);
    throw new WaitingError();
  }
  await job.moveToDelayed(Date.now() + Math.ceil(clock.realDelayMs(outcome.atMs)), token);
  throw new DelayedError();
}

/** A job that was stopped in the middle by the shutdown has not failed: the next daemon takes it up again. */
async function outcomeOf(job: Job, handler: JobHandler, signal: AbortSignal): Promise<JobOutcome> {
  try {
    return await handler(job, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return { kind: 'left' };
  }
}

export function toJob(queue: QueueName, job: EbbJob): Job {
  return { queue, id: job.id ?? '', data: job.data };
}
