import type { Hold } from '../../domain/overrides/holds.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import { byGlob, ownersOf } from '../../domain/policy/owners.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import { publicHolidays } from '../../policy/calendars/public-holidays.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings.ts';
import type { PastCompute } from '../past/read-past.ts';

/**
 * The past of computes with what the settings, the present policies and active holds say of them, one after the other; policies are
 * not needed.
 */
export async function recommendFacts(
  settings: Settings,
  past: readonly PastCompute[],
  holds: readonly Hold[] = [],
): Promise<Iterable<RecommendFacts>> {
  const loaded = await loadPolicySet({ ...settings, paths: settings.policies });
  const policies = loaded.ok ? compilePolicies(loaded.set) : undefined;
  const ownerOf = ownersOf({ rules: settings.owners, policies, computes: past.map(({ compute }) => compute) });
  const worthOf = byGlob(settings.coldStartWorthMs);
  return (function* () {
    for (const { readHistory, ...one } of past) {
      const profile = accountFor(settings.accounts, one.compute.account)?.profile ?? settings.accounts[0]?.profile;
      if (profile === undefined) throw new Error('settings without an account');
      const decided = { ...(policies && byPolicy(one, policies)), ...byHold(one, holds) };
      const coldStartWorthMs = worthOf(one.compute);
      const worth = coldStartWorthMs === undefined ? {} : { coldStartWorthMs };
      yield { ...one, ...worth, history: readHistory(), profile, owner: ownerOf(one.compute), decided };
    }
  })();
}

/** Which policies set the fields of a compute. Those that observe set nothing. */
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

/** What a person holds stays as it is until the hold ends. */
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

/** Public holidays of a country as days since 1970-01-01. */
export function holidaysOf(country: string): readonly number[] | undefined {
  const found = publicHolidays({ country, state: undefined, region: undefined });
  return found.ok ? found.days : undefined;
}
