import { printable } from '../common/safe-text.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { compileGlob } from '../domain/policy/select.ts';
import { UserError } from './fail.ts';

/** The items with a name that matches one of the globs; all if there are no globs. Throws a UserError for a glob without a match. */
export function selectNamed<T>(
  all: readonly T[],
  {
    globs,
    namesOf,
    complaint,
  }: {
    globs: readonly string[];
    namesOf: (one: T) => readonly string[];
    /** The error for a glob without a match. */
    complaint: (glob: string) => string;
  },
): T[] {
  const unknown = globs.find((glob) => {
    const matches = compileGlob(glob);
    return !all.some((one) => namesOf(one).some(matches));
  });
  if (unknown !== undefined) throw new UserError(complaint(printable(unknown)));
  const isNamed = matcherOf(globs);
  return all.filter((one) => namesOf(one).some(isNamed));
}

/** Tests if a name matches one of the globs. Every name matches if there are no globs. */
export function matcherOf(globs: readonly string[]): (name: string) => boolean {
  const matchers = globs.map(compileGlob);
  return (name) => matchers.length === 0 || matchers.some((matches) => matches(name));
}

/** The computes with these ids, project ids or project names, also with `*` and `?`; all without names. */
export function selectComputes<T extends { compute: Compute }>(subjects: readonly T[], names: readonly string[]): T[] {
  return selectNamed(subjects, {
    globs: names,
    namesOf: ({ compute }) => [compute.computeId, compute.projectId, compute.projectName],
    complaint: (name) => `no compute or project is called ${name}; give an id, a name or a glob such as web-*`,
  });
}
