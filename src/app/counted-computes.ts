import type { Compute } from '../domain/compute.ts';
import { windowOf } from '../domain/connection-samples.ts';
import type { ConnectionSource } from '../domain/connection-source.ts';
import type { Policy } from '../domain/policy.ts';
import type { Context } from './context.ts';

/** A source that some policy takes counts from, and of which computes. */
export interface CountedComputes {
  source: ConnectionSource;
  computes: Compute[];
  /** How long policies look back, in milliseconds. */
  windowMs: number;
}

/**
 * What is to be counted: of computes that a headroom policy selects, by its source. Where a policy only wants to know whether few are
 * connected, and none selects the compute for headroom, the set's only source is asked; of several none could be chosen.
 */
export function countedComputes(context: Context): CountedComputes[] {
  const { sources, policies } = context.policies.set;
  if (sources.size === 0) return [];
  const nowMs = context.clock.now();
  const counted = new Map<string, CountedComputes>();
  for (const source of sources.values()) {
    counted.set(source.name, { source, computes: [], windowMs: windowOf(source.name, policies) });
  }
  const only = sources.size === 1 ? [...sources.keys()] : [];
  for (const { computes } of context.fleet.pictures()) {
    for (const compute of computes) {
      for (const name of sourcesOf(selecting(context, compute, nowMs), only)) counted.get(name)?.computes.push(compute);
    }
  }
  return [...counted.values()].filter(({ computes }) => computes.length > 0);
}

function sourcesOf(policies: readonly Policy[], only: readonly string[]): Iterable<string> {
  const names = new Set(policies.flatMap((policy) => (policy.kind === 'headroom' ? [policy.connections] : [])));
  return names.size === 0 && policies.some(asksWhetherFew) ? only : names;
}

function selecting({ policies }: Context, compute: Compute, nowMs: number): Policy[] {
  return policies
    .selecting(compute)
    .filter((index) => policies.selects(index, compute, nowMs))
    .flatMap((index) => policies.set.policies[index] ?? []);
}

function asksWhetherFew(policy: Policy): boolean {
  if (policy.kind === 'restart' && policy.connectionsBelow !== undefined) return true;
  const { raise, lower } = policy.disruption ?? {};
  return raise?.when === 'quiet' || lower?.when === 'quiet';
}
