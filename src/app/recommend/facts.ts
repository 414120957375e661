import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import { byGlob, type GlobRule, type OwnerRule, ownersOf } from '../../domain/policy/owners.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import type { PastCompute } from './past.ts';

/** Facts from policies and people that findings depend on. */
export interface GivenByPeople {
  owners: readonly OwnerRule[];
  coldStartWorthMs: readonly GlobRule<number>[];
  /** Absent: there are none, or they can't be read. */
  policies: CompiledPolicies | undefined;
  holds: readonly Hold[];
  /** Of an account. */
  profileOf(account: string): ConnectionProfile;
}

/** The past of computes with what the settings, the present policies and active holds say of them, one after the other. */
export function* recommendFacts(past: readonly PastCompute[], given: GivenByPeople): Generator<RecommendFacts> {
  const { owners, policies, holds } = given;
  const ownerOf = ownersOf({ rules: owners, policies, computes: past.map(({ compute }) => compute) });
  const worthOf = byGlob(given.coldStartWorthMs);
  for (const { readHistory, ...one } of past) {
    const coldStartWorthMs = worthOf(one.compute);
    yield {
      ...one,
      ...(coldStartWorthMs !== undefined && { coldStartWorthMs }),
      ...{ history: readHistory(), profile: given.profileOf(one.compute.account), owner: ownerOf(one.compute) },
      decided: { ...(policies && byPolicy(one, policies)), ...byHold(one, holds) },
    };
  }
}

/** The policies that set the fields of a compute. Policies that observe set nothing. */
function byPolicy(
  { compute }: Pick<PastCompute, 'compute'>,
  { set, selecting }: CompiledPolicies,
): NonNullable<RecommendFacts['decided']> {
  const decided: NonNullable<RecommendFacts['decided']> = {};
  for (const index of selecting(compute)) {
    const policy = set.policies[index];
    if (policy?.mode !== 'enforce') continue;
    for (const group of ruleOf(policy).mayChange(policy)) decided[group] ??= `policy ${policy.name}`;
  }
  return decided;
}

/** A held compute stays as it is until the hold ends. */
function byHold(
  { compute }: Pick<PastCompute, 'compute'>,
  holds: readonly Hold[],
): NonNullable<RecommendFacts['decided']> {
  const decided: NonNullable<RecommendFacts['decided']> = {};
  for (const { computeId, size, suspendTimeoutSeconds, freeze, owner } of holds) {
    if (computeId !== compute.computeId) continue;
    const text = `the hold of ${owner}`;
    if (size || freeze) decided.size ??= text;
    if (suspendTimeoutSeconds !== undefined || freeze) decided.suspend_timeout ??= text;
  }
  return decided;
}
