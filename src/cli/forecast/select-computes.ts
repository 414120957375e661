import type { ForecastSubject } from '../../domain/forecast/alike.ts';
import { selectNamed } from '../select-named.ts';

/** Those of the computes that are named: by compute, project id or project name, also with `*` and `?`. All, if none is. */
export function selectComputes(subjects: readonly ForecastSubject[], names: readonly string[]): ForecastSubject[] {
  return selectNamed(subjects, {
    globs: names,
    namesOf: ({ compute }) => [compute.computeId, compute.projectId, compute.projectName],
    complaint: (name) => `no compute or project is called ${name}; give an id, a name or a glob such as web-*`,
  });
}
