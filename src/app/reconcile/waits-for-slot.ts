import { evaluateNow } from '../../domain/evaluate/evaluate.ts';
import type { Plan } from '../../domain/plan/plan.ts';
import { type EvaluateDeps, situationOf, subjectsOf } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { LeaseDeps } from '../leases/locked-project.ts';
import { SLOT_RETRY_MS, type Slots } from '../operations/restart-slots.ts';
import type { Overrides } from '../overrides.ts';
import { type TriggerDeps, wakeAt } from '../triggers.ts';

/** If more projects than this wait for a slot, each tries less often than every {@link SLOT_RETRY_MS}: the rate limit allows fewer restarts. */
const TRIES_AT_A_TIME = 250;

/** A waiting project is still read at this interval, in real milliseconds: it may have been changed, or its computes may sleep by now. */
const READ_EVERY_MS = 60_000;

interface WaitDeps extends Omit<EvaluateDeps, 'overrides' | 'slots'>, Pick<LeaseDeps, 'store'>, TriggerDeps {
  fleet: Pick<Fleet, 'cachedProject' | 'latestEvaluation' | 'ageMs'>;
  overrides: Overrides;
  slots: Slots;
}

/**
 * Creates a function that returns true if a project only waits for slots (see {@link waitsForSlot}), and then schedules its next try. However
 * many triggers the project has, only one try is scheduled: otherwise each trigger would start its own series of tries.
 */
export function createSlotWaits(deps: WaitDeps): (projectId: string) => Promise<boolean> {
  const nextTriesMs = new Map<string, number>();
  return async (projectId) => {
    if (!(await waitsForSlot(deps, projectId))) {
      nextTriesMs.delete(projectId);
      return false;
    }
    const nowMs = deps.clock.now();
    if ((nextTriesMs.get(projectId) ?? 0) > nowMs) return true;
    const nextMs = nowMs + SLOT_RETRY_MS * Math.ceil((nextTriesMs.size + 1) / TRIES_AT_A_TIME);
    nextTriesMs.set(projectId, nextMs);
    await wakeAt(deps, projectId, nextMs);
    return true;
  };
}

/**
 * Returns true if all pending changes of a project, by its last reading and the present rules, are restarts that would be refused a slot.
 * Then the project is not read: readings for many waiting computes would use up the rate limit, which the computes with a slot need.
 */
async function waitsForSlot(deps: WaitDeps, projectId: string): Promise<boolean> {
  if (deps.fleet.ageMs(projectId) > READ_EVERY_MS) return false;
  const latest = (deps.fleet.cachedProject(projectId)?.computes ?? []).map(({ computeId }) =>
    deps.fleet.latestEvaluation(computeId),
  );
  const evaluated = latest.flatMap((one) => one ?? []);
  if (evaluated.length < latest.length || !evaluated.some(({ plan }) => needsOnlySlot(plan))) return false;
  await deps.overrides.refresh(deps.store, deps.clock.now());
  const records = new Map(evaluated.map(({ compute, record }) => [compute.computeId, record]));
  const computes = evaluated.map(({ compute }) => compute);
  const fixedDeps = { ...deps, overrides: deps.overrides.snapshot() };
  const unfinished = subjectsOf(computes, records)
    .map((subject) => ({ compute: subject.compute, ...evaluateNow(situationOf(fixedDeps, subject)) }))
    .filter(({ plan }) => plan.verdict !== 'none');
  for (const { compute, plan } of unfinished) {
    const action = nextAction(plan);
    if (!action || !needsOnlySlot(plan)) return false;
    if (await deps.slots.admits(deps.rules.current, compute.computeId, action)) return false;
  }
  return unfinished.length > 0;
}

const nextAction = ({ actions, held }: Plan) => actions[0] ?? held?.[0];

/** Returns true if the next change disconnects clients, and nothing but the limit on restarts at once (`at_once`) makes it wait. */
function needsOnlySlot(plan: Plan): boolean {
  return nextAction(plan)?.disconnects === true && plan.waiting.every(({ gate }) => gate.code === 'at_once');
}
