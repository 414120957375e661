import type { JobQueue } from '../../../src/ports/job-queue.ts';
import type { SteppedClock } from './clock.ts';
import { createMemoryBroker } from './group-queue.ts';

/** The queue of one daemon, as a group of its own. What fails is an error of the test. */
export function createMemoryQueue(clock: SteppedClock): JobQueue {
  const onFailed = (_queue: string, _job: unknown, error: Error) => void Promise.reject(error);
  return createMemoryBroker(clock).connect({ clock, onFailed });
}
