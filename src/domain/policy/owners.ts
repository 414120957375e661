import type { Compute, ComputeIdentity } from '../compute/compute.ts';
import { getOrAdd, groupBy } from '../grouping.ts';
import type { UsageUnit } from '../usage/usage.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { Policy, PolicySet } from './policy.ts';
import { compileGlob, compileProjectSelector, type ProjectNames } from './select.ts';
import type { SelectorKeys } from './selector.ts';

/** The owner of units that have none. */
export const UNOWNED = 'unowned';

/** The owner of units in a project whose computes were never read: they may determine the owner. */
export const NOT_READ = 'not read yet';

/** A glob on ids and names of projects, or on `PROJECT/BRANCH`, with the value for matches. */
export type GlobRule<T> = readonly [glob: string, value: T];

/** Globs on the projects of a team, with the name of the team. */
type ScopeRule = readonly [scope: readonly string[], team: string];

/** Assigns an owner to computes that match a glob. Or, if policies of teams do not decide, assigns a team to the projects of its scope. */
export type OwnerRule = GlobRule<string> | ScopeRule;

/** The rules of `owners`, without the scopes of teams. */
export function labelRules(rules: readonly OwnerRule[]): GlobRule<string>[] {
  return rules.filter((rule): rule is GlobRule<string> => typeof rule[0] === 'string');
}

/** True if a rule matches branches, so that their names must be read. */
export function ownersNameBranches(rules: readonly OwnerRule[]): boolean {
  return labelRules(rules).some(([glob]) => glob.includes('/'));
}

/** Facts about projects beyond their present computes. */
export interface KnownProjects {
  /** Names of projects, including deleted ones and those without computes. */
  projects?: Iterable<ProjectNames>;
  /** Deleted computes; their usage stays with their last owner. */
  past?: readonly ComputeIdentity[];
  /** Ids of projects whose computes this process has not read yet. */
  unread?: ReadonlySet<string>;
}

/**
 * Returns a function for the owner of a unit: the first of these that exists.
 * - The first label that matches.
 * - The owner of a team's schedule or limits, by priority, that select one of the unit's computes, whatever its age.
 * - The first team whose scope has the project, even if the policies of the team are not loaded.
 * - The owner of other schedules or limits that select one of the computes.
 * - {@link UNOWNED}.
 *
 * A unit without computes belongs to the owner of its deleted computes or, if these are unknown, of its whole project. Units of a project that was
 * never read belong to the owner of the last known computes. Without these, only labels decide, provided that none names branches; if none
 * matches, the owner is {@link NOT_READ}.
 */
export function ownersOf(
  options: {
    rules: readonly OwnerRule[];
    policies: CompiledPolicies | undefined;
    computes: readonly ComputeIdentity[];
  } & KnownProjects,
): (unit: UsageUnit) => string {
  const { rules, policies, computes, unread, projects = [], past = [] } = options;
  const { labelOf, teamOf } = getOrAdd(compiledOwners, rules, () => compileOwners(rules));
  const rulesNameProjectsOnly = !ownersNameBranches(rules);
  const presentOf = groupBy(computes, ({ projectId }) => projectId);
  const pastOf = groupBy(past, ({ projectId }) => projectId);
  const projectOf = new Map([...projects].map((project) => [project.projectId, project]));
  return ({ projectId, branchId }) => {
    const present = presentOf.get(projectId) ?? [];
    const project = present[0] ?? projectOf.get(projectId) ?? pastOf.get(projectId)?.[0];
    const projectNames = project ? [projectId, project.projectName] : [projectId];
    if (unread?.has(projectId) && !pastOf.has(projectId))
      return (rulesNameProjectsOnly && labelOf(projectNames, [])) || NOT_READ;
    const isInUnit = (compute: ComputeIdentity) => branchId === null || compute.branchId === branchId;
    const presentOfUnit = present.filter(isInUnit);
    const ofUnit = presentOfUnit.length > 0 ? presentOfUnit : (pastOf.get(projectId) ?? []).filter(isInUnit);
    const branchNames = branchId === null ? [] : [branchId, ...ofUnit.flatMap(({ branchName }) => branchName ?? [])];
    return labelOf(projectNames, branchNames) ?? unlabelledOwner({ policies, teamOf }, ofUnit, project);
  };
}

/** The value of the first rule that matches a compute; undefined if none does. */
export function valueByGlob<T>(rules: readonly GlobRule<T>[]): (compute: Compute) => T | undefined {
  const valueBy = firstMatch(rules);
  return ({ projectId, projectName, branchId, branchName = branchId }) =>
    valueBy([projectId, projectName], [branchId, branchName]);
}

/** Compiled globs by list of rules, which are needed for every write and every record. */
const compiledRules = new WeakMap<readonly GlobRule<unknown>[], readonly ReturnType<typeof compileGlob>[]>();

/** Returns a function for the value of the first rule that matches names of a project, or of a branch in it. */
function firstMatch<T>(rules: readonly GlobRule<T>[]) {
  const globs = getOrAdd(compiledRules, rules, () => rules.map(([glob]) => compileGlob(glob)));
  return (projects: readonly string[], branches: readonly string[]): T | undefined => {
    const names = [...projects, ...projects.flatMap((project) => branches.map((branch) => `${project}/${branch}`))];
    return rules[globs.findIndex((matches) => names.some(matches))]?.[1];
  };
}

interface CompiledOwners {
  labelOf: ReturnType<typeof firstMatch<string>>;
  /** The first team whose scope has the project. */
  teamOf: (project: ProjectNames) => string | undefined;
}

const compiledOwners = new WeakMap<readonly OwnerRule[], CompiledOwners>();

function compileOwners(rules: readonly OwnerRule[]): CompiledOwners {
  const scopes = rules.flatMap(([projects, team]) =>
    typeof projects === 'string' ? [] : [{ team, matches: compileProjectSelector({ projects }) }],
  );
  return {
    labelOf: firstMatch(labelRules(rules)),
    teamOf: (project) => scopes.find(({ matches }) => matches(project) === 'yes')?.team,
  };
}

/** Cached owners, valid while policies and rules are the same objects. A compute that is read again is a new object. */
const ownersByPolicies = new WeakMap<
  CompiledPolicies,
  { rules: readonly OwnerRule[]; owners: WeakMap<Compute, string> }
>();

/** Returns a function for the owner of a compute, by {@link ownersOf}, which caches owners. `computes` must contain whole projects. */
export function computeOwners(options: {
  rules: readonly OwnerRule[];
  policies: CompiledPolicies;
  computes: readonly Compute[];
}): (compute: Compute) => string {
  const { rules, policies } = options;
  const cached = ownersByPolicies.get(policies);
  const { owners } = cached?.rules === rules ? cached : { owners: new WeakMap<Compute, string>() };
  ownersByPolicies.set(policies, { rules, owners });
  let ownerOf: ((unit: UsageUnit) => string) | undefined;
  return (compute) =>
    getOrAdd(owners, compute, () => {
      ownerOf ??= ownersOf(options);
      return ownerOf(compute);
    });
}

function unlabelledOwner(
  { policies, teamOf }: { policies: CompiledPolicies | undefined } & Pick<CompiledOwners, 'teamOf'>,
  computes: readonly ComputeIdentity[],
  project: ProjectNames | undefined,
): string {
  const owning = owningPolicies(policies, computes, project);
  const ofTeam = owning.find(({ team }) => team !== undefined);
  return ofTeam?.owner ?? (project && teamOf(project)) ?? owning[0]?.owner ?? UNOWNED;
}

/**
 * The schedules and limits with an owner that select one of the computes, by descending priority; without computes, those that select the whole
 * project.
 */
function owningPolicies(
  policies: CompiledPolicies | undefined,
  computes: readonly ComputeIdentity[],
  project: ProjectNames | undefined,
): Policy[] {
  if (policies === undefined) return [];
  const indexes =
    computes.length > 0
      ? new Set(computes.flatMap((compute) => policies.selecting(compute)))
      : wholeProjectIndexes(policies, project);
  return [...indexes]
    .flatMap((index) => policies.set.policies[index] ?? [])
    .filter((policy) => policy.owner !== undefined && ruleOf(policy).owns)
    .toSorted((a, b) => b.priority - a.priority);
}

/** Compiled project selectors by policy set; undefined for a policy that selects by more than projects. */
const projectMatchers = new WeakMap<PolicySet, readonly (ReturnType<typeof compileProjectSelector> | undefined)[]>();

function wholeProjectIndexes({ set }: CompiledPolicies, project: ProjectNames | undefined): number[] {
  if (project === undefined) return [];
  const matchers = getOrAdd(projectMatchers, set, () =>
    set.policies.map(({ select }) => (selectsProjectsOnly(select) ? compileProjectSelector(select) : undefined)),
  );
  return [...matchers.keys()].filter((index) => matchers[index]?.(project) === 'yes');
}

function selectsProjectsOnly({ branches, branchRoles, computes, regions, types, share }: SelectorKeys): boolean {
  return [branches, branchRoles, computes, regions, types, share].every((key) => key === undefined);
}
