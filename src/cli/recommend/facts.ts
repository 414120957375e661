import { recommendFacts as factsOf } from '../../app/recommend/facts.ts';
import type { PastCompute } from '../../app/recommend/past.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings.ts';

/** The facts of computes, with what the settings and the policies of this machine say of them; policies are not needed. */
export async function recommendFacts(
  settings: Settings,
  past: readonly PastCompute[],
  holds: readonly Hold[] = [],
): Promise<Iterable<RecommendFacts>> {
  const { owners, coldStartWorthMs, accounts } = settings;
  const loaded = await loadPolicySet({ ...settings, paths: settings.policies });
  const policies = loaded.ok ? compilePolicies(loaded.set) : undefined;
  const profileOf = (account: string) => {
    const profile = accountFor(accounts, account)?.profile ?? accounts[0]?.profile;
    if (profile === undefined) throw new Error('settings without an account');
    return profile;
  };
  return factsOf(past, { owners, coldStartWorthMs, policies, holds, profileOf });
}
