import leven from 'leven';
import type { PlannedCompute } from '../../domain/plan-fleet.ts';
import { UserError } from '../fail.ts';
import { printable, shortened } from '../printable.ts';

const MOST_NAMED = 3;
const LONGEST_NAME = 128;

/** The compute of that id, or `PROJECT/COMPUTE`; an error that names the nearest ids if there is none. */
export function findCompute(computes: readonly PlannedCompute[], name: string): PlannedCompute {
  const [id = '', project] = name.split('/').toReversed();
  const found = computes.find(
    ({ compute }) =>
      compute.computeId === id &&
      (project === undefined || compute.projectId === project || compute.projectName === project),
  );
  if (found) return found;
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
