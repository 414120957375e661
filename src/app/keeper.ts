import { scheduleBoundaries } from './boundaries.ts';
import type { Context } from './context.ts';
import { countSavings } from './fleet-metrics.ts';
import { requestFollowing, requestReconcile } from './triggers.ts';

/** Something that runs by itself until it is closed. */
export interface Running {
  close(): Promise<void>;
}

/**
 * The local timers of a daemon. They ensure, again and again, what must be in the queue: a queue that lost everything is
 * as before within one round.
 */
export function startKeeper(context: Context): Running {
  const { clock, rhythm } = context;
  let countedAtMs = clock.now();
  const rounds = [
    clock.every(rhythm.keeperMs, () => ensureTriggers(context)),
    clock.every(rhythm.waitingMs, () => lookAtWaiting(context)),
    clock.every(Math.min(rhythm.keeperMs, rhythm.waitingMs), async () => {
      const nowMs = clock.now();
      countSavings(context, (nowMs - countedAtMs) / 1000);
      countedAtMs = nowMs;
    }),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

/** Ensures the inventory's schedule and the next boundaries in the queue. */
export async function ensureTriggers(context: Context): Promise<void> {
  try {
    await context.queue.every('inventory', context.rhythm.inventoryMs);
    await scheduleBoundaries(context, context.fleet.conclusions());
    context.outages.up('queue');
  } catch (error) {
    context.outages.down('queue', error instanceof Error ? error.message : String(error));
  }
}

/** Looks again at what waits for something that has no known instant: a compute falling asleep, an operation ending. */
async function lookAtWaiting(context: Context): Promise<void> {
  const waiting = new Set<string>();
  const followed = new Set<string>();
  for (const { compute, plan, record } of context.fleet.conclusions()) {
    const observed = plan.reasons.some(({ code }) => code === 'observe');
    if (plan.verdict === 'wait' && !observed) waiting.add(compute.projectId);
    if (record.openOperations.length > 0) followed.add(compute.projectId);
  }
  try {
    for (const projectId of waiting) await requestReconcile(context, projectId);
    for (const projectId of followed) await requestFollowing(context, projectId);
  } catch (error) {
    context.outages.down('queue', error instanceof Error ? error.message : String(error));
  }
}
