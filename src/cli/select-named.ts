import { printable } from '../common/safe-text.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { compileGlob } from '../domain/policy/select.ts';
import { UserError } from './fail.ts';

/** Those of which one of the globs fits a name; all, if there is none. Throws a UserError for a glob that fits nothing. */
export function selectNamed<T>(
  all: readonly T[],
  {
    globs,
    namesOf,
    complaint,
  }: {
    globs: readonly string[];
    namesOf: (one: T) => readonly string[];
    /** What is said of a glob that fits nothing. */
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

/** Whether one of the globs fits a name; every name, if there is none. */
export function matcherOf(globs: readonly string[]): (name: string) => boolean {
  const matchers = globs.map(compileGlob);
  return (name) => matchers.length === 0 || matchers.some((matches) => matches(name));
}

/** Those of the computes that are named: by compute, project id or project name, also with `*` and `?`. All, if none is. */
export function selectComputes<T extends { compute: Compute }>(subjects: readonly T[], names: readonly string[]): T[] {
  return selectNamed(subjects, {
    globs: names,
    namesOf: ({ compute }) => [compute.computeId, compute.projectId, compute.projectName],
    complaint: (name) => `no compute or project is called ${name}; give an id, a name or a glob such as web-*`,
  });
}
