import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import type { Project } from '../../ports/control-api.ts';
import type { CurrentRules } from '../rules.ts';
import type { Fleet } from './fleet.ts';

/** An account whose key shows a single project, and what to tell of it. */
export interface NarrowKey {
  account: string;
  /** The number of policies that select no compute. */
  policies: number;
  message: string;
}

/**
 * Finds accounts whose key seems to be scoped to one project. The rest of such an account looks empty: no error says so, only policies
 * select nothing. An account with a single project whose policies all select something is not reported.
 */
export function narrowKeys(options: {
  projects: Iterable<Pick<Project, 'account' | 'projectId'>>;
  computes: readonly Compute[];
  policies: readonly Policy[];
}): NarrowKey[] {
  const { projects, computes, policies } = options;
  const selectsNothing = ({ select }: Policy) => {
    const matches = compileSelector(select);
    // Those that are too young today are selected one day.
    return computes.every((compute) => matches(compute, Number.POSITIVE_INFINITY) === 'no');
  };
  const idle = policies.filter(selectsNothing).length;
  if (idle === 0) return [];
  const listed = [...projects];
  const accounts = [...new Set(listed.map(({ account }) => account))];
  return accounts.flatMap((account) => {
    const [only, ...more] = listed.filter((project) => project.account === account);
    if (only === undefined || more.length > 0) return [];
    const message = `the key of account ${account} shows one project, ${only.projectId}, and ${idle} of ${policies.length} policies select nothing: if the account has more projects, the key is scoped to this one; use a key of the organization`;
    return [{ account, policies: idle, message }];
  });
}

/** The same of what a daemon knows. */
export function narrowKeysOf({ fleet, rules }: { fleet: Fleet; rules: CurrentRules }): NarrowKey[] {
  return narrowKeys({
    projects: fleet.projectIds().flatMap((projectId) => fleet.listed(projectId) ?? []),
    computes: [...fleet.cachedProjects()].flatMap(({ computes }) => computes),
    policies: rules.current.policies.set.policies,
  });
}
