import type { Compute } from '../compute/compute.ts';
import type { UsageUnit } from '../usage/usage.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import { compileGlob } from './select.ts';

/** What belongs to nobody that is known. */
export const UNOWNED = 'unowned';

/** What belongs to a project whose computes have not been read yet: its owner may follow from them. */
export const NOT_READ = 'not read yet';

/** A glob on ids and names of projects, or on `PROJECT/BRANCH`, and what counts for what it matches. */
export type GlobRule<T> = readonly [glob: string, value: T];

/** Who owns what a glob matches. */
export type OwnerRule = GlobRule<string>;

/** Policies whose owner owns what they select: those of others only protect or restrict for a time. */
const OWNING_KINDS: ReadonlySet<string> = new Set(['schedule', 'limits']);

/**
 * Who owns a unit: by the first rule that matches, else by the policy of highest priority, among schedules and limits with an
 * owner, that selects one of its computes, however young; else {@link UNOWNED}. `names` has the names of projects by id, also of those
 * without computes. A project of which only the list is known (`unread`) is {@link NOT_READ} unless a rule on projects alone says more.
 */
export function ownersOf(options: {
  rules: readonly OwnerRule[];
  policies: CompiledPolicies | undefined;
  computes: readonly Compute[];
  names?: ReadonlyMap<string, string>;
  unread?: ReadonlySet<string>;
}): (unit: UsageUnit) => string {
  const { rules, policies, computes, names, unread } = options;
  const ownerBy = firstMatch(rules);
  const areOnProjects = !rules.some(([glob]) => glob.includes('/'));
  const byProject = new Map<string, Compute[]>();
  for (const compute of computes) {
    const known = byProject.get(compute.projectId);
    if (known) known.push(compute);
    else byProject.set(compute.projectId, [compute]);
  }
  return ({ projectId, branchId }) => {
    const ofProject = byProject.get(projectId) ?? [];
    const projectNames = [projectId, ofProject[0]?.projectName ?? names?.get(projectId) ?? projectId];
    if (unread?.has(projectId)) return (areOnProjects && ownerBy(projectNames, [])) || NOT_READ;
    const ofUnit = branchId === null ? ofProject : ofProject.filter((compute) => compute.branchId === branchId);
    const branchNames = branchId === null ? [] : [branchId, ...ofUnit.flatMap(({ branchName }) => branchName ?? [])];
    return ownerBy(projectNames, branchNames) ?? policyOwner(policies, ofUnit) ?? UNOWNED;
  };
}

/** What the first rule gives that matches a compute; undefined if none does. */
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

/** Who owns computes by these policies, as long as the rules are the same too. A compute that is read again is another object. */
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

function policyOwner(policies: CompiledPolicies | undefined, computes: readonly Compute[]): string | undefined {
  if (policies === undefined) return undefined;
  const indexes = new Set(computes.flatMap((compute) => policies.selecting(compute)));
  const owning = [...indexes]
    .flatMap((index) => policies.set.policies[index] ?? [])
    .filter(({ kind, owner }) => owner !== undefined && OWNING_KINDS.has(kind));
  return owning.reduce<(typeof owning)[number] | undefined>(
    (best, policy) => (best === undefined || policy.priority > best.priority ? policy : best),
    undefined,
  )?.owner;
}
