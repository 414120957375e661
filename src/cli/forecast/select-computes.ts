import type { ForecastSubject } from '../../domain/forecast/alike.ts';
import { compileGlob } from '../../domain/select.ts';
import { UserError } from '../fail.ts';
import { printable } from '../printable.ts';

/** Those of the computes that are named: by compute, project id or project name, also with `*` and `?`. All, if none is. */
export function selectComputes(subjects: readonly ForecastSubject[], names: readonly string[]): ForecastSubject[] {
  const matchers = names.map((name) => {
    const matches = compileGlob(name);
    return (subject: ForecastSubject) => namesOf(subject).some(matches);
  });
  const unknown = names.find((_, index) => !subjects.some((subject) => matchers[index]?.(subject)));
  if (unknown !== undefined) {
    throw new UserError(
      `no compute or project is called ${printable(unknown)}; give an id, a name or a glob such as web-*`,
    );
  }
  return names.length === 0
    ? [...subjects]
    : subjects.filter((subject) => matchers.some((matches) => matches(subject)));
}

function namesOf({ compute }: ForecastSubject): string[] {
  return [compute.computeId, compute.projectId, compute.projectName];
}
