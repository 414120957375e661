import { setImmediate as nextTurn } from 'node:timers/promises';
import { isNoted } from '../../domain/overrides/restore.ts';
import type { Store } from '../../ports/store.ts';
import { type EvaluateProjectDeps, evaluateProject } from '../evaluate/evaluate.ts';
import type { CachedProject } from '../fleet/fleet.ts';
import { FRESH_MS } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import { requestReconcile, type ScheduleDeps, scheduleBoundaries } from '../triggers.ts';
import { lacksBranches } from './disruption-impact.ts';

/** How many projects are evaluated before others get their turn. */
const PROJECTS_A_TURN = 20;

export interface ReevaluateDeps extends EvaluateProjectDeps, ScheduleDeps {
  store: Store;
  overrides: Overrides;
  rhythm: { resyncMs: number };
}

/**
 * Draws the evaluations of other rules: every compute that this daemon knows is evaluated again, from what was last seen of it; whose
 * plan holds anything is looked at, and so is what only other daemons know. Boundaries that nobody has any more leave the
 * queue. May be called again where it failed.
 */
export async function reevaluateFleet(deps: ReevaluateDeps): Promise<void> {
  const { fleet, store, overrides, clock } = deps;
  await overrides.refresh(store, clock.now());
  const reevaluated = new Set<string>();
  let turn = 0;
  for (const cachedProject of [...fleet.cachedProjects()]) {
    turn += 1;
    if (turn % PROJECTS_A_TURN === 0) await nextTurn();
    if (reevaluate(deps, cachedProject)) reevaluated.add(cachedProject.project.projectId);
  }
  await removeOldBoundaries(deps);
  await scheduleBoundaries(deps, fleet.evaluatedComputes());
  const known = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  for (const projectId of known) if (!reevaluated.has(projectId)) await requestReconcile(deps, projectId);
}

/** True if nothing is to be done, or stored, in the project. Its evaluations are exchanged all the same. */
function reevaluate(deps: ReevaluateDeps, cachedProject: CachedProject): boolean {
  const { fleet, clock } = deps;
  const { projectId } = cachedProject.project;
  if (lacksBranches(deps, projectId)) {
    // No list may confirm it either.
    fleet.see({ ...cachedProject, readAtMs: 0, readAtMonotonicMs: clock.monotonicMs() - FRESH_MS - 1 });
    return false;
  }
  const before = fleet.evaluatedOf(projectId);
  const records = new Map(before.map(({ compute, record }) => [compute.computeId, record]));
  const computes = before.map(({ compute }) => compute);
  const evaluatedComputes = evaluateProject(deps, computes, records);
  for (const evaluatedCompute of evaluatedComputes) fleet.putEvaluated(evaluatedCompute);
  return (
    before.length === cachedProject.computes.length &&
    evaluatedComputes.every(
      ({ plan, record, compute, decision }) => plan.verdict === 'none' && isNoted(record, compute, decision),
    )
  );
}

/**
 * Those that come soon stay, since other daemons may have put them there, for projects of their own, and would be late to put
 * them back. A boundary that is none any more makes nobody do anything.
 */
async function removeOldBoundaries({
  queue,
  fleet,
  clock,
  rhythm,
  scheduledBoundaries,
}: ReevaluateDeps): Promise<void> {
  const soonMs = clock.now() + 2 * rhythm.resyncMs;
  const wanted = new Set([...fleet.evaluatedComputes()].map(({ nextBoundaryMs }) => nextBoundaryMs));
  for (const id of await queue.delayedIds('boundaries')) {
    const instantMs = Number(/^b-(\d+)$/.exec(id)?.[1]);
    // Wake jobs of single projects have no such id: they stay.
    if (Number.isNaN(instantMs) || instantMs <= soonMs || wanted.has(instantMs)) continue;
    scheduledBoundaries.delete(instantMs);
    await queue.remove('boundaries', id);
  }
}
