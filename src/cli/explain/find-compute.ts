import leven from 'leven';
import { severalComputes } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { UserError } from '../fail.ts';
import { shortened } from '../output.ts';

const MOST_NAMED = 3;
const LONGEST_NAME = 128;

/** The compute of that id, or `PROJECT/COMPUTE`, or the only one of a project of that id or name; an error that names the nearest ids if there is none. */
export function findCompute(computes: readonly EvaluatedCompute[], name: string): EvaluatedCompute {
  const [id = '', project] = name.split('/').toReversed();
  const found = computes.find(
    ({ compute }) =>
      compute.computeId === id &&
      (project === undefined || compute.projectId === project || compute.projectName === project),
  );
  if (found) return found;
  const ofProject = computes.filter(({ compute }) => compute.projectId === name || compute.projectName === name);
  if (ofProject.length > 1) {
    const choice = severalComputes(
      name,
      ofProject.map(({ compute }) => compute.computeId),
    );
    throw new UserError(printable(choice));
  }
  if (ofProject[0]) return ofProject[0];
  const shown = printable(shortened(name, LONGEST_NAME));
  const ids = computes.map(({ compute }) => compute.computeId);
  if (ids.length === 0) throw new UserError(`there is no compute ${shown}: the fleet is empty`);
  throw new UserError(`there is no compute ${shown}; the nearest of ${ids.length}: ${nearest(ids, id).join(', ')}`);
}

function nearest(ids: readonly string[], wanted: string): string[] {
  const text = wanted.slice(0, LONGEST_NAME);
  const ranked = ids.map((id) => ({ id, distance: leven(id, text) }));
  return ranked
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, MOST_NAMED)
    .map(({ id }) => id);
}
