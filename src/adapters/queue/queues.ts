import { type IQueueBackend, Queue } from 'bullmq';
import type { JobData, QueueName } from '../../ports/job-queue.ts';
import type { QueueBackend } from './backend.ts';

/** BullMQ writes a line for each event of each job, which nobody here reads. */
const EVENTS_KEPT = 100;

export type EbbQueue = Queue<JobData, unknown, string, JobData, unknown, string, IQueueBackend>;

export interface Queues {
  get(name: QueueName): EbbQueue;
  close(): Promise<void>;
}

export interface QueuesOptions {
  backend: QueueBackend;
  onError(error: Error): void;
}

/**
 * The producing side of BullMQ: one Queue per name. All are opened at once, while the engine is known to be up: a Queue that is
 * made during an outage waits for its end with every call.
 */
export function openQueues({ backend, onError }: QueuesOptions): Queues {
  const { connection, createBackend } = backend.forQueues;
  const options = { connection, prefix: backend.prefix, streams: { events: { maxLen: EVENTS_KEPT } } };

  function open(name: QueueName): EbbQueue {
    const queue: EbbQueue = new Queue(name, options, createBackend);
    queue.on('error', onError);
    return queue;
  }

  const queues: Record<QueueName, EbbQueue> = {
    inventory: open('inventory'),
    boundaries: open('boundaries'),
    crossings: open('crossings'),
    reconcile: open('reconcile'),
    operations: open('operations'),
  };
  return {
    get: (name) => queues[name],
    close: async () => {
      await Promise.allSettled(Object.values(queues).map((queue) => queue.close()));
    },
  };
}
