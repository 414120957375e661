import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, QueueName } from '../../ports/job-queue.ts';
import type { RunInBackground } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { requestReconcile, type TriggerDeps } from '../triggers.ts';
import type { StoreClock } from './clock-skew.ts';
import type { LeaderLease, WriteBlock } from './leader.ts';

/** Triggers that would come to nothing here. Operations are followed whichever policies count, but not by a wrong clock. */
const LEFT_WHILE_BLOCKED: Readonly<Record<'superseded' | 'clock_off', readonly QueueName[]>> = {
  superseded: ['reconcile', 'boundaries', 'crossings'],
  clock_off: ['reconcile', 'boundaries', 'crossings', 'operations'],
};

/** A daemon that is alone would otherwise take the jobs that it has left again and again. Real milliseconds. */
const BEFORE_LEAVING_MS = 1_000;

/**
 * A daemon with a wrong clock decides nothing: its decisions, and what it would store for the others, would be of another time. Triggers
 * are left to daemons whose clock is right.
 */
export function withRightClock(
  { clock, storeClock }: { clock: Clock; storeClock: StoreClock },
  handler: JobHandler,
): JobHandler {
  return async (job, signal) => {
    if ((await storeClock.tooFarOff()) === undefined) return handler(job, signal);
    await clock.wait(BEFORE_LEAVING_MS, signal);
    return { kind: 'left' };
  };
}

/** Only one daemon reads the list of projects: otherwise each would keep a part of the fleet, and none all of it. */
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
 * A daemon that may not write while others of its group may leaves the triggers to them; when it may again, it takes them again and checks
 * all projects that it knows. The inventory is left to the leader; a new leader reads it at once. To be called whenever any of this may
 * have changed.
 */
export function pauseQueues(deps: PauseQueuesDeps): () => void {
  const { queue, fleet } = deps;
  let paused: readonly QueueName[] = [];
  let changing: Promise<void> | undefined;

  async function change(toPause: readonly QueueName[]): Promise<void> {
    for (const name of paused) if (!toPause.includes(name)) await queue.resume(name);
    for (const name of toPause) await queue.pause(name);
    const resumes = (name: QueueName) => paused.includes(name) && !toPause.includes(name);
    if (resumes('inventory')) await queue.add('inventory', { key: 'taken-over', data: {} });
    if (resumes('reconcile')) for (const projectId of fleet.projectIds()) await requestReconcile(deps, projectId);
    // Set last: a change that failed half-way is repeated at the next call.
    paused = toPause;
  }

  return () => {
    const toPause = leftToOthers(deps);
    if (changing || toPause.join() === paused.join()) return;
    changing = deps
      .runInBackground('queue_pause', () => change(toPause))
      .finally(() => {
        changing = undefined;
      });
  };
}

function leftToOthers({ blocked: blockedNow, leaderLease }: PauseQueuesDeps): QueueName[] {
  const blocked = blockedNow();
  // A staged set does not keep others from writing, but there may be none: then this daemon must still reconcile.
  const left = blocked === 'superseded' || blocked === 'clock_off' ? LEFT_WHILE_BLOCKED[blocked] : [];
  return leaderLease.isHeld() ? [...left] : [...left, 'inventory'];
}
