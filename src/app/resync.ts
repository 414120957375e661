import type { ReasonCode } from '../domain/compute/reasons.ts';
import { searchAgainAt } from '../domain/decide/boundaries.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import { gatesOf } from '../domain/plan/plan.ts';
import type { Running } from './background.ts';
import { type AdoptDeps, adoptProject } from './evaluate-project/evaluate.ts';
import { isAtBoundary } from './fleet/at-boundary.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { SharedReadings } from './fleet/stored-readings.ts';
import type { StoreClock } from './group/clock-skew.ts';
import type { WriteBlock } from './group/leader.ts';
import { type CountSavingsDeps, countSavings } from './operator/fleet-metrics.ts';
import { type EnsureTriggersDeps, ensureTriggers, requestFollowing, requestReconcile } from './triggers.ts';

export interface ResyncDeps extends EnsureTriggersDeps, CountSavingsDeps, AdoptDeps {
  fleet: Fleet;
  storeClock: StoreClock;
  /** Absent: no other daemon has the store. */
  sharedReadings?: Pick<SharedReadings, 'take'>;
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
  rhythm: EnsureTriggersDeps['rhythm'] & {
    /** Interval of the resync loop, in real milliseconds. */
    resyncMs: number;
    /** Interval between reconciles of a compute whose change waits, in real milliseconds. */
    waitingMs: number;
  };
}

/** Starts the timers of the resync loop. It adds the queue's jobs again, so that a queue that lost jobs is complete within one round. */
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
 * Requests a reconcile of every project with an unfinished compute (see {@link isUnfinished}): a wait for sleep has no known end, and triggers
 * may be lost. A project is left out if the records of other daemons, which are taken over first, show that it is finished. At the end, projects
 * that only other daemons have read or reconciled are evaluated, since limits such as `at_once` are shares of the whole fleet.
 */
export async function reconcileUnfinished(deps: ResyncDeps): Promise<void> {
  const nowMs = deps.clock.now();
  // While this daemon may not write, a reconcile would only cost requests. Once it may, every project is reconciled.
  const isBlocked = deps.mode === 'enforce' && deps.blocked() !== undefined;
  const unfinished = new Set<string>();
  const withOperations = new Set<string>();
  for (const evaluatedCompute of deps.fleet.evaluatedComputes()) {
    const { projectId } = evaluatedCompute.compute;
    if (!isBlocked && isUnfinished(deps, evaluatedCompute, nowMs)) unfinished.add(projectId);
    if (evaluatedCompute.record.openOperations.length > 0) withOperations.add(projectId);
  }
  await deps.runInBackground('resync', async () => {
    for (const projectId of unfinished) {
      await adoptProject(deps, projectId);
      const evaluated = latestEvaluations(deps, projectId);
      if (evaluated.some((one) => isUnfinished(deps, one, nowMs))) await requestReconcile(deps, projectId);
    }
    for (const projectId of withOperations) await requestFollowing(deps, projectId);
    await takeUnread(deps);
    for (const projectId of neverEvaluated(deps.fleet)) await adoptProject(deps, projectId);
  });
}

/**
 * Takes other daemons' readings of projects that this daemon has not read, however old. They are enough to count computes. No write is decided
 * by them before they are confirmed.
 */
async function takeUnread({ fleet, sharedReadings }: ResyncDeps): Promise<void> {
  for (const projectId of fleet.projectIds()) {
    const listed = fleet.listed(projectId);
    if (listed && !fleet.cachedProject(projectId)) await sharedReadings?.take(listed, Number.POSITIVE_INFINITY);
  }
}

function neverEvaluated(fleet: Fleet): string[] {
  return [...fleet.cachedProjects()]
    .filter(({ computes }) => computes.some(({ computeId }) => fleet.latestEvaluation(computeId) === undefined))
    .map(({ project }) => project.projectId);
}

/** Gates that wait for a known instant or for a person: a reconcile in each round would change nothing. */
const NOT_RECHECKED: ReadonlySet<ReasonCode> = new Set([
  'observe',
  'frozen',
  'not_loaded',
  'held',
  'manual_change',
  'fight_stopped',
  'retry_later',
  'degraded',
]);

/**
 * Returns true if a change of the compute waits for something that may end at any time, or if a change or a boundary is due. At a boundary of the
 * account, due computes are left to the boundary reconciles.
 */
function isUnfinished(
  { fleet }: ResyncDeps,
  { compute, plan, decision, ...evaluation }: EvaluatedCompute,
  nowMs: number,
): boolean {
  if (gatesOf(plan).some((code) => !NOT_RECHECKED.has(code))) return true;
  const dueMs = evaluation.nextBoundaryMs ?? searchAgainAt(decision.instantMs, evaluation);
  const isDue = plan.verdict === 'act' || (dueMs !== undefined && dueMs <= nowMs);
  return isDue && !isAtBoundary(fleet, nowMs, { account: compute.account });
}

function latestEvaluations({ fleet }: ResyncDeps, projectId: string): EvaluatedCompute[] {
  const computes = fleet.cachedProject(projectId)?.computes ?? [];
  return computes.flatMap(({ computeId }) => fleet.latestEvaluation(computeId) ?? []);
}
