import type { ReasonCode } from '../domain/reasons.ts';
import { scheduleBoundaries } from './boundaries.ts';
import type { DaemonContext } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { countSavings } from './fleet-metrics.ts';
import { cannotWrite } from './policy-sets.ts';
import { requestFollowing, requestReconcile } from './triggers.ts';
import { untilItWorks } from './until-it-works.ts';

/** Something that runs by itself until it is closed. */
export interface Running {
  close(): Promise<void>;
}

/**
 * The local timers of a daemon. They ensure, again and again, what must be in the queue: a queue that lost everything is
 * as before within one round.
 */
export function startKeeper(context: DaemonContext): Running {
  const { clock, rhythm } = context;
  let countedAtMs = clock.now();
  const rounds = [
    clock.every(rhythm.keeperMs, () => ensureTriggers(context)),
    clock.every(rhythm.keeperMs, () => untilItWorks(context, () => context.groupTime.compare())),
    clock.every(rhythm.waitingMs, () => lookAtUnfinished(context)),
    clock.every(Math.min(rhythm.keeperMs, rhythm.waitingMs), async () => {
      const nowMs = clock.now();
      countSavings(context, Math.max(0, nowMs - countedAtMs) / 1000);
      countedAtMs = nowMs;
    }),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

/** Ensures the inventory's schedule and the next boundaries in the queue. */
export async function ensureTriggers(context: DaemonContext): Promise<void> {
  await untilItWorks(context, async () => {
    await context.queue.every('inventory', context.rhythm.inventoryMs);
    context.scheduledBoundaries.clear();
    await scheduleBoundaries(context, context.fleet.conclusions());
  });
}

/**
 * Looks again at every compute that is not as it should be, or whose boundary has passed: what waits for sleep has no known
 * instant, and a trigger that was lost on the way must not matter.
 */
async function lookAtUnfinished(context: DaemonContext): Promise<void> {
  const nowMs = context.clock.now();
  // Where nothing may be written a look would only cost requests; when that ends, all is looked at.
  const isIdle = context.mode === 'enforce' && cannotWrite(context) !== undefined;
  const unfinished = new Set<string>();
  const followed = new Set<string>();
  for (const conclusion of context.fleet.conclusions()) {
    const { projectId } = conclusion.compute;
    if (!isIdle && isUnfinished(conclusion, nowMs)) unfinished.add(projectId);
    if (conclusion.record.openOperations.length > 0) followed.add(projectId);
  }
  await untilItWorks(context, async () => {
    for (const projectId of unfinished) await requestReconcile(context, projectId);
    for (const projectId of followed) await requestFollowing(context, projectId);
  });
}

/** What holds these back ends at a known instant, or by a person's word: a look each minute would tell nothing. */
const ENDS_BY_ITSELF: ReadonlySet<ReasonCode> = new Set([
  'observe',
  'frozen',
  'held',
  'manual_change',
  'fight_stopped',
  'retry_later',
  'degraded',
]);

function isUnfinished({ plan, nextBoundaryMs }: Conclusion, nowMs: number): boolean {
  if (nextBoundaryMs !== undefined && nextBoundaryMs <= nowMs) return true;
  return plan.verdict === 'act' || plan.heldBy.some((code) => !ENDS_BY_ITSELF.has(code));
}
