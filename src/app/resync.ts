import type { ReasonCode } from '../domain/compute/reasons.ts';
import { searchAgainAt } from '../domain/decide/boundaries.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import { gatesOf } from '../domain/plan/plan.ts';
import type { Running } from './background.ts';
import { type AdoptDeps, adoptProject } from './evaluate-project/adopt-project.ts';
import { isAtBoundary } from './fleet/at-boundary.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { StoreClock } from './group/clock-skew.ts';
import type { WriteBlock } from './group/leader.ts';
import { type CountSavingsDeps, countSavings } from './operator/fleet-metrics.ts';
import { type EnsureTriggersDeps, ensureTriggers, requestFollowing, requestReconcile } from './triggers.ts';

export interface ResyncDeps extends EnsureTriggersDeps, CountSavingsDeps, AdoptDeps {
  fleet: Fleet;
  storeClock: StoreClock;
  mode: 'enforce' | 'observe';
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
  rhythm: EnsureTriggersDeps['rhythm'] & {
    /** Between two rounds, in real milliseconds. */
    resyncMs: number;
    /** Between two reconciles of a compute whose change waits, in real milliseconds. */
    waitingMs: number;
  };
}

/**
 * The local timers of a daemon. They restore the queue's jobs again and again: a queue that lost everything is complete again within one
 * round.
 */
export function startResync(deps: ResyncDeps): Running {
  const { clock, rhythm } = deps;
  let countedAtMs = clock.now();
  const rounds = [
    clock.every(rhythm.resyncMs, () => ensureTriggers(deps)),
    clock.every(rhythm.resyncMs, () => deps.runInBackground('clock_check', () => deps.storeClock.compare())),
    clock.every(rhythm.waitingMs, () => reconcileUnfinished(deps)),
    clock.every(Math.min(rhythm.resyncMs, rhythm.waitingMs), async () => {
      const nowMs = clock.now();
      countSavings(deps, Math.max(0, nowMs - countedAtMs) / 1000);
      countedAtMs = nowMs;
    }),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

/**
 * Reconciles every compute that is not as wanted, or whose boundary has passed: a wait for sleep has no known end, and a lost trigger must
 * not matter. Changes of other daemons are in the store, and a boundary that is being handled for the same account is left alone: reading
 * either again would only cost requests.
 */
export async function reconcileUnfinished(deps: ResyncDeps): Promise<void> {
  const nowMs = deps.clock.now();
  // While nothing may be written, a reconcile would only cost requests; once it may, all are reconciled.
  const isIdle = deps.mode === 'enforce' && deps.blocked() !== undefined;
  const unfinished = new Set<string>();
  const followed = new Set<string>();
  for (const evaluatedCompute of deps.fleet.evaluatedComputes()) {
    const { projectId } = evaluatedCompute.compute;
    if (!isIdle && isUnfinished(deps, evaluatedCompute, nowMs)) unfinished.add(projectId);
    if (evaluatedCompute.record.openOperations.length > 0) followed.add(projectId);
  }
  await deps.runInBackground('resync', async () => {
    for (const projectId of unfinished) {
      await adoptProject(deps, projectId);
      const isStill = knownOf(deps, projectId).some((evaluated) => isUnfinished(deps, evaluated, nowMs));
      if (isStill) await requestReconcile(deps, projectId);
    }
    for (const projectId of followed) await requestFollowing(deps, projectId);
  });
}

/** These wait for a known instant, or for a person: a reconcile each minute would change nothing. */
const ENDS_BY_ITSELF: ReadonlySet<ReasonCode> = new Set([
  'observe',
  'frozen',
  'held',
  'manual_change',
  'fight_stopped',
  'retry_later',
  'degraded',
]);

function isUnfinished(
  { fleet }: ResyncDeps,
  { compute, plan, decision, ...ahead }: EvaluatedCompute,
  nowMs: number,
): boolean {
  const dueMs = ahead.nextBoundaryMs ?? searchAgainAt(decision.instantMs, ahead);
  const isDue = plan.verdict === 'act' || (dueMs !== undefined && dueMs <= nowMs);
  return (
    (isDue && !isAtBoundary(fleet, nowMs, compute.account)) || gatesOf(plan).some((code) => !ENDS_BY_ITSELF.has(code))
  );
}

function knownOf({ fleet }: ResyncDeps, projectId: string): EvaluatedCompute[] {
  const computes = fleet.cachedProject(projectId)?.computes ?? [];
  return computes.flatMap(({ computeId }) => fleet.known(computeId)?.evaluatedCompute ?? []);
}
