import { firstNames } from '../../common/names.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { ControlApiError, Project } from '../../ports/control-api.ts';

const MAX_NAMED = 5;

/** Returns a line for each different error, with the names of its projects. The names are sorted, since projects are read in any order. */
export function missingParts(
  errors: readonly ControlApiError[],
  { explain, projects }: { explain(error: ControlApiError): string; projects: readonly Project[] },
): string[] {
  const names = new Map(projects.map(({ projectId, name }) => [projectId, name]));
  return [...groupBy(errors, explain)].map(([line, sameErrors]) => {
    const concerned = sameErrors.flatMap(({ projectId: id }) => (id === undefined ? [] : [names.get(id) ?? id]));
    return concerned.length === 0 ? line : `${firstNames([...new Set(concerned)].sort(), MAX_NAMED)}: ${line}`;
  });
}
