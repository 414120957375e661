import type { Compute } from '../../domain/compute/compute.ts';
import { connectionNeeds, lookbackMs } from '../../domain/connections/connection-samples.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import { type ConnectionSource, countsConnections, type Policy } from '../../domain/policy/policy.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CurrentRules } from '../rules.ts';

/** A connection source that policies use, and the computes whose connections it counts. */
export interface CountedComputes {
  source: ConnectionSource;
  computes: Compute[];
  /** The longest lookback of the policies, in milliseconds. */
  windowMs: number;
}

export interface CountedComputesDeps {
  clock: Clock;
  fleet: Fleet;
  rules: CurrentRules;
}

/**
 * Returns the computes to count, by source. A headroom policy names its source. A policy that only waits for a quiet moment uses the source
 * of the policy set if there is exactly one.
 */
export function countedComputes({ clock, fleet, rules }: CountedComputesDeps): CountedComputes[] {
  const compiled = rules.current.policies;
  const { sources, policies } = compiled.set;
  const counting = [...sources.values()].filter(countsConnections);
  if (counting.length === 0) return [];
  const nowMs = clock.now();
  const counted = new Map<string, CountedComputes>();
  for (const source of counting) {
    counted.set(source.name, { source, computes: [], windowMs: lookbackMs(source.name, policies) });
  }
  const only = counting.length === 1 ? counting.map(({ name }) => name) : [];
  for (const { computes } of fleet.cachedProjects()) {
    for (const compute of computes) {
      for (const name of sourceNamesOf(policiesSelecting(compiled, compute, nowMs), only))
        counted.get(name)?.computes.push(compute);
    }
  }
  return [...counted.values()].filter(({ computes }) => computes.length > 0);
}

function sourceNamesOf(policies: readonly Policy[], only: readonly string[]): Iterable<string> {
  const names = new Set(connectionNeeds(policies).map(({ connections }) => connections));
  return names.size === 0 && policies.some(asksForQuiet) ? only : names;
}

function policiesSelecting(policies: CompiledPolicies, compute: Compute, nowMs: number): Policy[] {
  return policies
    .selecting(compute)
    .filter((index) => policies.selects(index, compute, nowMs))
    .flatMap((index) => policies.set.policies[index] ?? []);
}

function asksForQuiet(policy: Policy): boolean {
  if (ruleOf(policy).asksForConnections(policy)) return true;
  const { raise, lower } = policy.disruption ?? {};
  return raise?.when === 'quiet' || lower?.when === 'quiet';
}
