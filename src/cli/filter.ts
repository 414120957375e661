import type { Command } from 'commander';
import { printable } from '../common/safe-text.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import { ownersOf } from '../domain/policy/owners.ts';
import { AT_ANY_AGE, compileGlob, compileSelector } from '../domain/policy/select.ts';
import { selectsByBranch } from '../domain/policy/selector.ts';
import type { Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import { collectValues, selectorOf } from './operator/parse-flags.ts';

export interface FilterFlags {
  owner?: string;
  select?: string[];
}

export function withFilterFlags(command: Command): Command {
  return command
    .option('--owner <name>', 'only computes of this owner')
    .option('--select <key=globs>', 'only these, such as projects=web-*; can be given several times', collectValues);
}

/** True if the flags select by branch, so that branches have to be read. */
export function filtersByBranch({ select }: FilterFlags): boolean {
  return select !== undefined && selectsByBranch(selectorOf(select));
}

/**
 * The computes that the flags select; all without flags. Owners come from `owners` of the settings, otherwise from the policies. Throws a
 * UserError if nothing belongs to the owner, no compute is selected, or the selector is invalid.
 */
export function filtered<T extends { compute: Compute }>(
  all: readonly T[],
  { owner, select }: FilterFlags,
  { settings, policies }: { settings: Pick<Settings, 'owners'>; policies: CompiledPolicies | undefined },
): T[] {
  const matches = select && compileSelector(selectorOf(select));
  const selected = matches ? all.filter(({ compute }) => matches(compute, AT_ANY_AGE) === 'yes') : [...all];
  if (select && selected.length === 0 && all.length > 0)
    throw new UserError(`--select: none of ${all.length} computes matches ${select.join(' ')}; check the globs`);
  if (owner === undefined) return selected;
  const ownerOf = ownersOf({ rules: settings.owners, policies, computes: all.map(({ compute }) => compute) });
  refuseUnknownOwner(
    owner,
    all.map(({ compute }) => ownerOf(compute)),
  );
  return selected.filter(({ compute }) => ownerOf(compute) === owner);
}

/** Throws a UserError unless something belongs to the owner. `owners` may have duplicates. */
export function refuseUnknownOwner(owner: string, owners: readonly string[]): void {
  if (owners.includes(owner)) return;
  throw new UserError(`--owner: nothing belongs to ${owner}; owners are ${[...new Set(owners)].join(', ')}`);
}

/** True if a person has named or filtered computes. */
export function isNarrowed(names: readonly string[], { owner, select }: FilterFlags): boolean {
  return names.length > 0 || owner !== undefined || select !== undefined;
}

/** Selects items by globs on their names; without globs all. Throws a UserError for a glob that matches no name. */
export function selectNamed<T>(
  all: readonly T[],
  globs: readonly string[],
  namesOf: (one: T) => readonly string[],
  complaint: (glob: string) => string,
): T[] {
  const unknown = globs.find((glob) => {
    const matches = compileGlob(glob);
    return !all.some((one) => namesOf(one).some(matches));
  });
  if (unknown !== undefined) throw new UserError(complaint(printable(unknown)));
  const isNamed = matcherOf(globs);
  return all.filter((one) => namesOf(one).some(isNamed));
}

/** Returns a test that is true for names that match one of the globs; without globs, for every name. */
export function matcherOf(globs: readonly string[]): (name: string) => boolean {
  const matchers = globs.map(compileGlob);
  return (name) => matchers.length === 0 || matchers.some((matches) => matches(name));
}

/** Selects computes by id, project id or project name. Names may be globs; without names all computes are selected. */
export function selectComputes<T extends { compute: Compute }>(subjects: readonly T[], names: readonly string[]): T[] {
  return selectNamed(
    subjects,
    names,
    ({ compute }) => [compute.computeId, compute.projectId, compute.projectName],
    (name) => `no compute or project is called ${name}; give an id, a name or a glob such as web-*`,
  );
}
