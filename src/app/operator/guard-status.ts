/** Describes the guards of the daemon's policies for the status and the page: verdicts, changes held back, watches after lowerings, floors. */

import { describeStep } from '../../domain/decide/trace.ts';
import { type Estimate, mapEstimate } from '../../domain/estimate.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { describeWatch, type GuardStates, verdictAt } from '../../domain/guards/state.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { Amount } from '../../domain/recommend/saving.ts';
import { toHundredths } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { MAX_LISTED, type StatusDocument } from '../../ports/documents.ts';
import { EngineUnavailableError } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import { readGuardStates } from '../guards/stored-states.ts';
import { floorCosts } from '../recommend/floor-costs.ts';
import type { DaemonView } from './parts.ts';

type GuardStatus = Pick<StatusDocument, 'guards' | 'guard_watches' | 'guard_floors'>;

export async function guardStatus(store: Store, daemon: DaemonView, nowMs: number): Promise<GuardStatus> {
  const { policies } = daemon.policies().set;
  const guards = policies.flatMap((one) => asKind(one, 'guard') ?? []);
  const computes = [...daemon.fleet.evaluatedComputes()];
  const states = guards.length === 0 ? new Map() : await readGuardStates(store);
  return {
    guards: guards
      .filter(({ mode }) => mode === 'enforce')
      .map((guard) => guardDocument(guard, computes, states, nowMs)),
    guard_watches: computes
      .flatMap((one) => watchesOf(one, states, (name) => guards.find((guard) => guard.name === name)?.watchMs))
      .slice(0, MAX_LISTED),
    guard_floors: await floorsOf(store, daemon, computes, nowMs),
  };
}

function guardDocument(
  policy: GuardPolicy,
  computes: readonly EvaluatedCompute[],
  states: GuardStates,
  nowMs: number,
): NonNullable<StatusDocument['guards']>[number] {
  const guard = policy.name;
  const statesOfGuard = computes.flatMap(
    ({ compute }) => states.get(compute.computeId)?.filter((one) => one.guard === guard) ?? [],
  );
  const verdicts = computes.flatMap(({ compute }) => verdictAt(states.get(compute.computeId), policy, nowMs) ?? []);
  const count = (state: string) => verdicts.filter((one) => one.state === state).length;
  const askedAtMs = Math.max(...verdicts.map(({ atMs = Number.NEGATIVE_INFINITY }) => atMs));
  const isObjecting = ({ plan }: EvaluatedCompute) =>
    gatesOf(plan).includes('guard') &&
    plan.guards?.some(
      ({ policy: name, isAskedFirst, verdict }) => isAskedFirst && name === guard && verdict.state !== 'healthy',
    );
  return {
    guard,
    asked_at: Number.isFinite(askedAtMs) ? isoInstant(askedAtMs) : null,
    healthy: count('healthy'),
    bad: count('bad'),
    unknown: count('unknown'),
    watched: statesOfGuard.filter(({ watch }) => watch !== undefined).length,
    held_back: computes.filter(isObjecting).length,
  };
}

function watchesOf(
  { compute: { projectId, computeId } }: EvaluatedCompute,
  states: GuardStates,
  watchMsOf: (guard: string) => number | undefined,
): NonNullable<StatusDocument['guard_watches']> {
  return (states.get(computeId) ?? []).flatMap(({ guard, watch }) => {
    const watchMs = watchMsOf(guard);
    if (!watch || watchMs === undefined) return [];
    return [
      {
        project_id: projectId,
        compute_id: computeId,
        guard,
        lowered_at: isoInstant(watch.loweredAtMs),
        sampled_seconds: Math.round(watch.sampledMs / 1000),
        bad_since: watch.badSinceMs === undefined ? null : isoInstant(watch.badSinceMs),
        message: describeWatch(watch, watchMs),
      },
    ];
  });
}

async function floorsOf(
  store: Store,
  { fleet, policies, costs }: DaemonView,
  computes: readonly EvaluatedCompute[],
  nowMs: number,
): Promise<NonNullable<StatusDocument['guard_floors']>> {
  const floored = computes
    .filter(({ decision }) => decision.trace.some(({ code }) => code === 'guard_floor'))
    .slice(0, MAX_LISTED);
  if (floored.length === 0) return [];
  const parts = { store, fleet, policies: policies(), costs: costs() };
  const costByCompute = await floorCosts(parts, floored, nowMs).catch((error) => {
    // While the store is unavailable, floors are shown without their costs, which need stored operations.
    if (error instanceof EngineUnavailableError) return new Map<string, Amount>();
    throw error;
  });
  const withCost = new Set<string>();
  return floored
    .flatMap(({ compute: { projectId, computeId }, decision }) =>
      decision.trace
        .filter(({ code }) => code === 'guard_floor')
        .map((step) => {
          // The cost is one sum for all floors of the compute, so only the first floor shows it.
          const cost = withCost.has(computeId) ? undefined : costByCompute.get(computeId);
          withCost.add(computeId);
          return {
            project_id: projectId,
            compute_id: computeId,
            message: describeStep(step),
            cost_month: cost ? costDocument(cost) : null,
          };
        }),
    )
    .slice(0, MAX_LISTED);
}

function costDocument({ cuSeconds, usd }: Amount): { cu_hours: Estimate; usd: Estimate | null } {
  return {
    cu_hours: mapEstimate(cuSeconds, (value) => toHundredths(value / 3600)),
    usd: usd ? mapEstimate(usd, toHundredths) : null,
  };
}
