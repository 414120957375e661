import type { Compute, ComputeIdentity } from '../compute/compute.ts';
import type { UsageUnit } from '../usage/usage.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { PolicySet } from './policy.ts';
import { compileGlob, compileProjectSelector, type ProjectNames } from './select.ts';
import type { SelectorKeys } from './selector.ts';

/** The owner of units that have none. */
export const UNOWNED = 'unowned';

/** The owner of units in a project whose computes have not been read yet: it may follow from them. */
export const NOT_READ = 'not read yet';

/** A glob on ids and names of projects, or on `PROJECT/BRANCH`, with the value for its matches. */
export type GlobRule<T> = readonly [glob: string, value: T];

/** Assigns an owner to computes that match a glob. */
export type OwnerRule = GlobRule<string>;

/** True if owners follow from names of branches, which have to be read for that. */
export function ownersNameBranches(rules: readonly OwnerRule[]): boolean {
  return rules.some(([glob]) => glob.includes('/'));
}

/** Facts about projects besides their present computes. */
export interface KnownProjects {
  /** Names of projects, also of deleted ones and those without computes. */
  projects?: Iterable<ProjectNames>;
  /** Deleted computes: their usage stays with who owned them. */
  past?: readonly ComputeIdentity[];
  /** Ids of projects whose computes have not been read yet. */
  unread?: ReadonlySet<string>;
}

/**
 * The owner of a unit: by the first rule that matches, else by the policy of highest priority, among schedules and limits with an owner,
 * that selects one of its computes, however young; else {@link UNOWNED}. A unit without computes belongs to the owner of its last ones
 * and, if these are unknown too, to the owner of its whole project. A project that is not read yet is {@link NOT_READ} unless a rule on
 * projects alone decides.
 */
export function ownersOf(
  options: {
    rules: readonly OwnerRule[];
    policies: CompiledPolicies | undefined;
    computes: readonly ComputeIdentity[];
  } & KnownProjects,
): (unit: UsageUnit) => string {
  const { rules, policies, computes, unread, projects = [], past = [] } = options;
  const ownerBy = firstMatch(rules);
  const areOnProjects = !ownersNameBranches(rules);
  const [presentOf, pastOf] = [byProject(computes), byProject(past)];
  const projectOf = new Map([...projects].map((project) => [project.projectId, project]));
  return ({ projectId, branchId }) => {
    const present = presentOf.get(projectId) ?? [];
    const project = present[0] ?? projectOf.get(projectId) ?? pastOf.get(projectId)?.[0];
    const projectNames = project ? [projectId, project.projectName] : [projectId];
    if (unread?.has(projectId)) return (areOnProjects && ownerBy(projectNames, [])) || NOT_READ;
    const isOfUnit = (compute: ComputeIdentity) => branchId === null || compute.branchId === branchId;
    const now = present.filter(isOfUnit);
    const ofUnit = now.length > 0 ? now : (pastOf.get(projectId) ?? []).filter(isOfUnit);
    const branchNames = branchId === null ? [] : [branchId, ...ofUnit.flatMap(({ branchName }) => branchName ?? [])];
    return ownerBy(projectNames, branchNames) ?? policyOwner(policies, ofUnit, project) ?? UNOWNED;
  };
}

function byProject(computes: readonly ComputeIdentity[]): Map<string, ComputeIdentity[]> {
  const found = new Map<string, ComputeIdentity[]>();
  for (const compute of computes) {
    const known = found.get(compute.projectId);
    if (known) known.push(compute);
    else found.set(compute.projectId, [compute]);
  }
  return found;
}

/** The value of the first rule that matches a compute; undefined if none does. */
export function byGlob<T>(rules: readonly GlobRule<T>[]): (compute: Compute) => T | undefined {
  const valueBy = firstMatch(rules);
  return ({ projectId, projectName, branchId, branchName = [] }) =>
    valueBy([projectId, projectName], [branchId, branchName].flat());
}

/** Compiled once for each list of rules: it is asked for again with every write and every record. */
const compiledRules = new WeakMap<readonly GlobRule<unknown>[], readonly ReturnType<typeof compileGlob>[]>();

function globsOf(rules: readonly GlobRule<unknown>[]) {
  const globs = compiledRules.get(rules) ?? rules.map(([glob]) => compileGlob(glob));
  compiledRules.set(rules, globs);
  return globs;
}

/** By ids and names of a project, and of a branch in it. */
function firstMatch<T>(rules: readonly GlobRule<T>[]) {
  const globs = globsOf(rules);
  return (projects: readonly string[], branches: readonly string[]): T | undefined => {
    const names = [...projects, ...projects.flatMap((project) => branches.map((one) => `${project}/${one}`))];
    return rules[globs.findIndex((matches) => names.some(matches))]?.[1];
  };
}

/** Owners of computes by these policies, as long as the rules are the same too. A compute that is read again is another object. */
const known = new WeakMap<CompiledPolicies, { rules: readonly OwnerRule[]; owners: WeakMap<Compute, string> }>();

/** As {@link ownersOf}, of computes, of which each is looked up once. `computes` has whole projects. */
export function computeOwners(options: {
  rules: readonly OwnerRule[];
  policies: CompiledPolicies;
  computes: readonly Compute[];
}): (compute: Compute) => string {
  const { rules, policies } = options;
  const before = known.get(policies);
  const { owners } = before?.rules === rules ? before : { owners: new WeakMap<Compute, string>() };
  known.set(policies, { rules, owners });
  let ownerOf: ((unit: UsageUnit) => string) | undefined;
  return (compute) => {
    const owner = owners.get(compute);
    if (owner !== undefined) return owner;
    ownerOf ??= ownersOf(options);
    const found = ownerOf(compute);
    owners.set(compute, found);
    return found;
  };
}

function policyOwner(
  policies: CompiledPolicies | undefined,
  computes: readonly ComputeIdentity[],
  project: ProjectNames | undefined,
): string | undefined {
  if (policies === undefined) return undefined;
  const indexes =
    computes.length > 0
      ? new Set(computes.flatMap((compute) => policies.selecting(compute)))
      : wholeProjectIndexes(policies, project);
  const owning = [...indexes]
    .flatMap((index) => policies.set.policies[index] ?? [])
    .filter((policy) => policy.owner !== undefined && ruleOf(policy).owns);
  return owning.reduce<(typeof owning)[number] | undefined>(
    (best, policy) => (best === undefined || policy.priority > best.priority ? policy : best),
    undefined,
  )?.owner;
}

/** Compiled once for each set; undefined for a policy that selects by more than projects. */
const projectMatchers = new WeakMap<PolicySet, readonly (ReturnType<typeof compileProjectSelector> | undefined)[]>();

/** Places of the policies that select a project, whatever is in it. */
function wholeProjectIndexes({ set }: CompiledPolicies, project: ProjectNames | undefined): number[] {
  if (project === undefined) return [];
  const matchers =
    projectMatchers.get(set) ??
    set.policies.map(({ select }) => (isOnProjects(select) ? compileProjectSelector(select) : undefined));
  projectMatchers.set(set, matchers);
  return [...matchers.keys()].filter((index) => matchers[index]?.(project) === 'yes');
}

function isOnProjects({ branches, branchRoles, computes, regions, types, share }: SelectorKeys): boolean {
  return [branches, branchRoles, computes, regions, types, share].every((key) => key === undefined);
}
