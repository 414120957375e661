import { type IQueueBackend, Queue } from 'bullmq';
import type { JobData, QueueName } from '../../ports/job-queue.ts';
import type { QueueBackend } from './backend.ts';

export type EbbQueue = Queue<JobData, unknown, string, JobData, unknown, string, IQueueBackend>;

export interface Queues {
  get(name: QueueName): EbbQueue;
  close(): Promise<void>;
}

export interface QueuesOptions {
  backend: QueueBackend;
  onError(error: Error): void;
}

/** The producing side of BullMQ: one Queue per name, opened at its first use. */
export function openQueues({ backend, onError }: QueuesOptions): Queues {
  const open = new Map<QueueName, EbbQueue>();

  function create(name: QueueName): EbbQueue {
    const { connection, createBackend } = backend.forQueues;
    const options = { connection, prefix: backend.prefix, streams: { events: { maxLen: 100 } } };
    const queue: EbbQueue = new Queue(name, options, createBackend);
    queue.on('error', onError);
    open.set(name, queue);
    return queue;
  }

  return {
    get: (name) => open.get(name) ?? create(name),
    close: async () => {
      await Promise.allSettled([...open.values()].map((queue) => queue.close()));
    },
  };
}
