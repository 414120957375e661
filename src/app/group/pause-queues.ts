import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, QueueName } from '../../ports/job-queue.ts';
import type { RunInBackground } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { requestReconcile, type TriggerDeps } from '../triggers.ts';
import type { StoreClock } from './clock-skew.ts';
import type { LeaderLease, WriteBlock } from './leader.ts';

/** Queues whose jobs a blocked daemon can't do. Operations are followed under any policies, but not with a wrong clock. */
const PAUSED_WHILE_BLOCKED: Readonly<Record<'superseded' | 'clock_off', readonly QueueName[]>> = {
  superseded: ['reconcile', 'boundaries', 'crossings'],
  clock_off: ['reconcile', 'boundaries', 'crossings', 'operations'],
};

/** The wait before a job is left to others, in real milliseconds: a single daemon would otherwise take the job again at once. */
const WAIT_BEFORE_RETURN_MS = 1_000;

/** Wraps a handler so that a daemon with a wrong clock leaves its jobs to other daemons: it would decide for a wrong time. */
export function withRightClock(
  { clock, storeClock }: { clock: Clock; storeClock: StoreClock },
  handler: JobHandler,
): JobHandler {
  return async (job, signal) => {
    if ((await storeClock.excessiveOffsetMs()) === undefined) return handler(job, signal);
    await clock.wait(WAIT_BEFORE_RETURN_MS, signal);
    return { kind: 'left' };
  };
}

/** Wraps the handler of the inventory so that only the leader runs it: if daemons took turns, none would know the whole fleet. */
export function onlyAsLeader({ leaderLease }: { leaderLease: LeaderLease }, handler: JobHandler): JobHandler {
  return async (job, signal) => (leaderLease.isHeld() ? handler(job, signal) : { kind: 'done' });
}

export interface PauseQueuesDeps extends TriggerDeps {
  fleet: Fleet;
  leaderLease: LeaderLease;
  runInBackground: RunInBackground;
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
}

/**
 * Returns a function that pauses and resumes queues. It must be called whenever the leader or the permission to write may have changed. A
 * daemon that is superseded or has a wrong clock leaves the triggers to others. When it may write again, it reconciles all projects that it
 * knows. Only the leader takes the inventory; a new leader does so at once.
 */
export function pauseQueues(deps: PauseQueuesDeps): () => void {
  const { queue, fleet } = deps;
  /** The paused queues; after a change that has failed half-way, all that may be paused. */
  let paused: readonly QueueName[] = [];
  let isComplete = true;
  let changing: Promise<void> | undefined;

  async function change(toPause: readonly QueueName[]): Promise<void> {
    const resumed = paused.filter((name) => !toPause.includes(name));
    paused = [...resumed, ...toPause];
    isComplete = false;
    for (const name of resumed) await queue.resume(name);
    for (const name of toPause) await queue.pause(name);
    if (resumed.includes('inventory')) await queue.add('inventory', { key: 'taken-over', data: {} });
    if (resumed.includes('reconcile'))
      for (const projectId of fleet.projectIds()) await requestReconcile(deps, projectId);
    paused = toPause;
    isComplete = true;
  }

  return () => {
    const toPause = queuesToPause(deps);
    if (changing || (isComplete && toPause.join() === paused.join())) return;
    changing = deps
      .runInBackground('queue_pause', () => change(toPause))
      .finally(() => {
        changing = undefined;
      });
  };
}

function queuesToPause({ leaderLease, ...deps }: PauseQueuesDeps): QueueName[] {
  const blocked = deps.blocked();
  // With a staged set, other daemons may write, but there may be none: this daemon must still reconcile.
  const paused = blocked === 'superseded' || blocked === 'clock_off' ? PAUSED_WHILE_BLOCKED[blocked] : [];
  return leaderLease.isHeld() ? [...paused] : [...paused, 'inventory'];
}
