import { Redis } from 'ioredis';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { EngineState } from '../../src/ports/engine.ts';
import type { JobQueue } from '../../src/ports/job-queue.ts';
import { openTestEngine } from './engines.ts';
import { eventually } from './eventually.ts';

/** A queue and a store as a daemon has them, and what came of it. */
export async function engineDaemon(url: string) {
  const { engine, log } = await openTestEngine(url);
  const states: EngineState[] = [];
  engine.onStateChange((state) => states.push(state));
  /** The projects whose jobs were worked. */
  const done: string[] = [];
  const failed: string[] = [];
  const queue = createJobQueue({
    engine,
    log,
    clock: systemClock(),
    onFailed: (_queue, job) => failed.push(job.id),
  });
  const handler = async ({ data }: { data: { projectId?: string } }) => {
    done.push(data.projectId ?? '');
    return { kind: 'done' as const };
  };
  await queue.work('reconcile', handler, { concurrency: 2 });
  const store = await createStore({ engine, log });
  return {
    log,
    states,
    done,
    failed,
    queue,
    store,
    addJob: (projectId: string) => queue.add('reconcile', { key: projectId, data: { projectId } }),
    close: async () => {
      await queue.close(2000);
      await engine.close();
    },
  };
}

/** Waits until the end of every job is stored: one whose end is not, when its server dies, runs again, as it should. */
export async function untilWorkedOff(queue: JobQueue): Promise<void> {
  await eventually(async () => (await queue.counts()).reconcile).toMatchObject({ waiting: 0, active: 0 });
}

/** Asks a Redis something on a connection of its own. */
export async function askRedis<Answer>(url: string, question: (client: Redis) => Promise<Answer>): Promise<Answer> {
  const client = new Redis(url, { replyMapping: 'legacy' });
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}
