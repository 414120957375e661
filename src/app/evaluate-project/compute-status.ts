import { type Compute, hasSettings } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type Freeze, mayConcern } from '../../domain/overrides/freezes.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import { withoutNotLoaded } from '../../domain/policy/team-parts.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';
import type { Mode } from './evaluate.ts';

/** Returns a test that is true for computes that a person's freeze may concern. */
export function frozenTest(freezes: readonly Freeze[], nowMs: number): (compute: Compute) => boolean {
  const tests = freezes.filter(({ expiresAtMs }) => nowMs < expiresAtMs).map(({ select }) => mayConcern(select));
  return (compute) => tests.some((test) => test(compute));
}

/** Returns the first status that applies: frozen, not_loaded, degraded, held, orphaned, unmatched, observed, enforced. */
export function statusOf(
  { mode }: { mode: Mode },
  { compute, decision, plan, record }: EvaluatedCompute,
  isFrozen: (compute: Compute) => boolean,
): ComputeStatus {
  if (isFrozen(compute) || withoutNotLoaded(decision.freezes).length > 0) return 'frozen';
  if (decision.freezes.length > 0) return 'not_loaded';
  if (gatesOf(plan).includes('degraded')) return 'degraded';
  if (decision.holds.length > 0) return 'held';
  if (!decision.isMatched) {
    const changed = Object.keys(record.lastApplied).length > 0;
    return changed && !hasSettings(compute, record.baseline) ? 'orphaned' : 'unmatched';
  }
  const onlyObserved = Object.keys(decision.enforcedDeciders).length === 0 && Object.keys(decision.deciders).length > 0;
  return mode === 'observe' || onlyObserved ? 'observed' : 'enforced';
}
