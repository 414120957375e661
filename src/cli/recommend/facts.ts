import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings.ts';
import type { PastCompute } from '../past/read-past.ts';
import { UNOWNED } from './policies.ts';

/** The past of computes with what the settings and the present policies say of them; policies are not needed. */
export async function recommendFacts(settings: Settings, past: readonly PastCompute[]): Promise<RecommendFacts[]> {
  const loaded = await loadPolicySet({ paths: settings.policies, knownSources: settings.knownSources });
  const decidedFor = loaded.ok ? deciding(loaded.set) : () => ({ owner: undefined, decided: {} });
  return past.map((one): RecommendFacts => {
    const { owner = UNOWNED, decided } = decidedFor(one);
    const profile = accountFor(settings.accounts, one.compute.account)?.profile ?? settings.accounts[0]?.profile;
    if (profile === undefined) throw new Error('settings without an account');
    return { ...one, profile, owner, decided };
  });
}

/** Which policies set the fields of a compute, and who owns the first. Those that observe set nothing. */
function deciding(set: PolicySet) {
  const compiled = compilePolicies(set);
  return ({ compute }: PastCompute) => {
    const policies = compiled.selecting(compute).flatMap((index) => set.policies[index] ?? []);
    const decided: NonNullable<RecommendFacts['decided']> = {};
    for (const policy of policies.filter(({ mode }) => mode === 'enforce')) {
      for (const group of ruleOf(policy).mayChange(policy)) decided[group] ??= policy.name;
    }
    const owners = policies.filter(({ kind }) => kind === 'schedule' || kind === 'limits');
    return { owner: owners.toSorted((a, b) => b.priority - a.priority)[0]?.owner, decided };
  };
}
