import pLimit from 'p-limit';
import { isBoundary } from '../../domain/decide/boundaries.ts';
import { decide } from '../../domain/decide/decide.ts';
import { changesOf } from '../../domain/plan/change.ts';
import { compareRanks, LAST, type WriteRank } from '../../domain/plan/plan.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Job, JobHandler } from '../../ports/job-queue.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { EvaluateDeps } from '../evaluate/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { requestCrossing, requestReconcile, type TriggerDeps } from '../triggers.ts';

/** Triggers on their way to the queue at once: enough to keep it busy, and still in their order. */
const CONCURRENT_TRIGGERS = 32;

export interface BoundaryDeps extends TriggerDeps, Pick<EvaluateDeps, 'rules' | 'overrides'> {
  clock: Pick<Clock, 'now'>;
  fleet: Fleet;
  store: Pick<Store, 'projectIds'>;
  telemetry: Telemetry;
}

/** Handles what comes at an instant: a boundary of the fleet, or a single project that asked to be woken. */
export function createBoundaries(deps: BoundaryDeps): JobHandler {
  return async (job) => {
    if (job.data.projectId !== undefined) await requestReconcile(deps, job.data.projectId);
    else if (job.data.instantMs !== undefined) await crossBoundary(deps, job.data.instantMs);
    else deps.telemetry.log.error({ event: 'ebb.bad_job', job: describeJob(job) }, 'a boundary job without an instant');
    return { kind: 'done' };
  };
}

/** Whoever gets the trigger reads the project, and so each daemon reads what it will write to. */
async function crossBoundary(deps: BoundaryDeps, instantMs: number): Promise<void> {
  const { affected, unknown } = await projectsAt(deps, instantMs);
  const request = deps.clock.now() < instantMs ? requestCrossing : requestReconcile;
  await pLimit(CONCURRENT_TRIGGERS).map([...affected, ...unknown], (projectId) => request(deps, projectId, instantMs));
}

/**
 * The projects of which a compute has a boundary at this instant, in the order in which they are to be written to; and those
 * that only other daemons of the group have looked at, for which this one can't say.
 */
async function projectsAt(deps: BoundaryDeps, instantMs: number): Promise<{ affected: string[]; unknown: string[] }> {
  const { fleet, rules, store, overrides } = deps;
  const { policies } = rules.current;
  const affected = new Map<string, WriteRank>();
  const evaluated = new Set<string>();
  for (const { compute, record } of fleet.evaluatedComputes()) {
    const { projectId } = compute;
    evaluated.add(projectId);
    const { baseline, trials } = record;
    const input = { policies, compute, baseline, trials, holds: overrides.holds };
    if (!isBoundary(input, instantMs)) continue;
    const wanted = changesOf(decide({ ...input, instantMs }), compute);
    const rank = wanted.toSorted(compareRanks)[0] ?? LAST;
    const before = affected.get(projectId);
    affected.set(projectId, before && compareRanks(before, rank) <= 0 ? before : rank);
  }
  const known = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  return {
    affected: [...affected].toSorted(([, a], [, b]) => compareRanks(a, b)).map(([projectId]) => projectId),
    unknown: [...known].filter((projectId) => !evaluated.has(projectId)),
  };
}

function describeJob({ queue, id }: Job): string {
  return `${queue}/${id}`;
}
