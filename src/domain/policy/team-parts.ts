/** A policy set by team: the files of each team change, fail and wait independently. */

import type { Policy, PolicySet } from './policy.ts';
import { policySet } from './policy-set.ts';
import { allWithinScope } from './selector.ts';

/** A team, and globs on the projects that its policies may select. */
export interface TeamScope {
  name: string;
  projects: readonly string[];
}

/** The name that stands for files of no team. */
export const NO_TEAM = '';

/** The policies and sources of a team's files, or of those of no team. The whole set, where there are no teams. */
export function partOf({ policies, sources, hash }: PolicySet, team: string): PolicySet {
  if (team === NO_TEAM && policies.every((policy) => policy.team === undefined)) return { policies, sources, hash };
  const isOfTeam = (one: { team?: string }) => (one.team ?? NO_TEAM) === team;
  return policySet(policies.filter(isOfTeam), new Map([...sources].filter(([, source]) => isOfTeam(source))), team);
}

/** The set with these parts instead of its own, by team. */
export function withParts(set: PolicySet, parts: ReadonlyMap<string, PolicySet>): PolicySet {
  const common = parts.get(NO_TEAM);
  const isKept = (one: { team?: string }) => !parts.has(one.team ?? NO_TEAM);
  const kept = set.policies.filter(isKept);
  if (common && parts.size === 1 && kept.length === 0) return common;
  const all = [...parts.values()];
  const sources = [
    ...[...set.sources].filter(([, source]) => isKept(source)),
    ...all.flatMap((part) => [...part.sources]),
  ];
  return policySet([...kept, ...all.flatMap(({ policies }) => policies)], new Map(sources));
}

/** The set of a team while no version of its files is valid: nothing is written to its computes. */
export function frozenPart({ name, projects }: TeamScope): PolicySet {
  const of = { name: `${name}/not-loaded`, file: 'ebb.yaml', owner: name, team: name };
  const freeze = { kind: 'freeze', mode: 'enforce', priority: 0, at: [{ kind: 'always' }], allowRaise: false } as const;
  return policySet([{ ...of, ...freeze, select: allWithinScope(projects) }], new Map(), name);
}

/** True for a part as {@link frozenPart} makes it. */
export function isFrozen({ policies }: PolicySet): boolean {
  return policies.some(isNotLoaded);
}

/** True for the name of a policy whose team has a {@link frozenPart} in the set: it is unknown if it still exists. */
export function mayBeOfFrozen({ policies }: PolicySet, name: string): boolean {
  return policies.some((policy) => isNotLoaded(policy) && name.startsWith(`${policy.team}/`));
}

function isNotLoaded({ name, file, team }: Policy): boolean {
  return file === 'ebb.yaml' && name === `${team}/not-loaded`;
}

/** The set with each team's policies restricted to the team's scope; the same set where that has not changed. */
export function withScopes(set: PolicySet, teams: readonly TeamScope[]): PolicySet {
  const scopes = new Map(teams.map(({ name, projects }) => [name, projects]));
  let isChanged = false;
  const policies = set.policies.map((policy) => {
    const scope = scopes.get(policy.team ?? NO_TEAM);
    if (!scope || scope.join('\n') === policy.select.scope?.join('\n')) return policy;
    isChanged = true;
    return { ...policy, select: { ...policy.select, scope } };
  });
  return isChanged ? policySet(policies, set.sources) : set;
}
