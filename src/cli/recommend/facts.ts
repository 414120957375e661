import type { PastCompute } from '../../app/recommend/facts.ts';
import { recommendFacts as factsOf } from '../../app/recommend/facts.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';

/** Undefined if the policies can't be read. */
export async function readablePolicies(settings: Settings): Promise<CompiledPolicies | undefined> {
  const loaded = await loadPolicySet({ ...settings, paths: settings.policies, isComplete: true });
  return loaded.ok ? compilePolicies(loaded.set) : undefined;
}

export function recommendFacts(
  settings: Settings,
  past: readonly PastCompute[],
  {
    policies,
    holds = [],
    records,
  }: {
    policies: CompiledPolicies | undefined;
    holds?: readonly Hold[];
    records?: ReadonlyMap<string, ComputeRecord> | undefined;
  },
): Iterable<RecommendFacts> {
  const { owners, coldStartWorthMs, accounts } = settings;
  const profileOf = (account: string) => {
    const profile = accountFor(accounts, account)?.profile ?? accounts[0]?.profile;
    if (profile === undefined) throw new Error('settings without an account');
    return profile;
  };
  const recordOf = (computeId: string) => records?.get(computeId);
  return factsOf(past, { owners, coldStartWorthMs, policies, holds, profileOf, recordOf });
}
