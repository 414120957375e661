/** The parts of a policy set by team. Each team's files are loaded, refused and approved independently. */

import type { ComputeIdentity } from '../compute/compute.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import type { Policy, PolicySet } from './policy.ts';
import { policySet } from './policy-set.ts';
import { allWithinScope, withinScope } from './selector.ts';

/** A team, with globs on the projects that its policies may select. */
export interface TeamScope {
  name: string;
  projects: readonly string[];
}

/** The name that stands for the files that belong to no team. */
export const NO_TEAM = '';

/** The part of a team, or of files without a team; the whole set if there are no teams. */
export function teamPart({ policies, sources, hash }: PolicySet, team: string): PolicySet {
  if (team === NO_TEAM && policies.every((policy) => policy.team === undefined)) return { policies, sources, hash };
  const isOfTeam = (part: { team?: string }) => (part.team ?? NO_TEAM) === team;
  return policySet(policies.filter(isOfTeam), new Map([...sources].filter(([, source]) => isOfTeam(source))), team);
}

/** Replaces the parts of these teams in a set. */
export function withParts(set: PolicySet, parts: ReadonlyMap<string, PolicySet>): PolicySet {
  const withoutTeam = parts.get(NO_TEAM);
  const isKept = (part: { team?: string }) => !parts.has(part.team ?? NO_TEAM);
  const kept = set.policies.filter(isKept);
  if (withoutTeam && parts.size === 1 && kept.length === 0) return withoutTeam;
  const all = [...parts.values()];
  const sources = [
    ...[...set.sources].filter(([, source]) => isKept(source)),
    ...all.flatMap((part) => [...part.sources]),
  ];
  return policySet([...kept, ...all.flatMap(({ policies }) => policies)], new Map(sources));
}

/** Stands for a team without a valid version of its files: a freeze, so that nothing is written to its computes. */
export function unloadedPart({ name, projects }: TeamScope): PolicySet {
  const base = { name: `${name}/not-loaded`, file: 'ebb.yaml', owner: name, team: name };
  const freeze = { kind: 'freeze', mode: 'enforce', priority: 0, at: [{ kind: 'always' }], allowRaise: false } as const;
  return policySet([{ ...base, ...freeze, select: allWithinScope(projects) }], new Map(), name);
}

export function hasUnloaded(set: PolicySet): boolean {
  return unloadedTeams(set).length > 0;
}

/** The teams that have an {@link unloadedPart} in the set. */
export function unloadedTeams({ policies }: PolicySet): string[] {
  return policies.flatMap((policy) => (isNotLoaded(policy) ? (policy.team ?? []) : []));
}

/** True if the policy's team has an {@link unloadedPart} in the set, so that the policy may still exist. */
export function mayBeOfUnloadedTeam({ policies }: PolicySet, name: string): boolean {
  return policies.some((policy) => isNotLoaded(policy) && name.startsWith(`${policy.team}/`));
}

/** The team whose {@link unloadedPart} selects the compute, so that the wishes of its policies are unknown; undefined if there is none. */
export function unloadedTeamOf(
  { set, selecting }: Pick<CompiledPolicies, 'set' | 'selecting'>,
  compute: ComputeIdentity,
): string | undefined {
  if (!hasUnloaded(set)) return undefined;
  const selects = new Set(selecting(compute));
  return set.policies.find((policy, index) => selects.has(index) && isNotLoaded(policy))?.team;
}

/** True for the policy of an {@link unloadedPart}. */
export function isNotLoaded({ name, file, team }: Pick<Policy, 'name' | 'file' | 'team'>): boolean {
  return file === 'ebb.yaml' && name === `${team}/not-loaded`;
}

/** The policy of an {@link unloadedPart} among these freezes. */
export function notLoadedAmong<P extends Pick<Policy, 'name' | 'file' | 'team'>>(
  freezes: readonly { policy: P }[],
): P | undefined {
  return freezes.find(({ policy }) => isNotLoaded(policy))?.policy;
}

/** The freezes by policies, without those that only stand for an {@link unloadedPart}. */
export function withoutNotLoaded<F extends { policy: Pick<Policy, 'name' | 'file' | 'team'> }>(
  freezes: readonly F[],
): F[] {
  return freezes.filter(({ policy }) => !isNotLoaded(policy));
}

/** Restricts each team's policies to the team's projects. Returns the same set if nothing changes. */
export function withScopes(set: PolicySet, teams: readonly TeamScope[]): PolicySet {
  const scopes = new Map(teams.map(({ name, projects }) => [name, projects]));
  let isChanged = false;
  const policies = set.policies.map((policy) => {
    const scope = scopes.get(policy.team ?? NO_TEAM);
    if (!scope || scope.join('\n') === policy.select.scope?.join('\n')) return policy;
    isChanged = true;
    return { ...policy, select: withinScope(policy.select, scope) };
  });
  return isChanged ? policySet(policies, set.sources) : set;
}
