import type { Branch, Operation, Project, WorldState } from './entities.ts';

/** The index of the first id that is greater than `after`, in an ascending list. */
function firstAfter(ids: readonly string[], after: string): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ids[middle] ?? '') <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface ProjectPage {
  limit: number;
  /** The id of the last project of the page before. */
  cursor?: string;
  accepts: (project: Project) => boolean;
}

/** A page of projects by id: one that comes or goes between two pages shifts no other. */
export function pageOfProjects(world: WorldState, page: ProjectPage): Project[] {
  const found: Project[] = [];
  const start = page.cursor === undefined ? 0 : firstAfter(world.projectIds, page.cursor);
  for (let index = start; index < world.projectIds.length && found.length < page.limit; index += 1) {
    const project = world.projects.get(world.projectIds[index] ?? '');
    if (project !== undefined && page.accepts(project)) found.push(project);
  }
  return found;
}

/**
 * A page of operations, newest first, of those created before `cursorMicros`. An operation that arrives between two pages is newer than
 * every cursor, so it neither repeats nor hides another.
 */
export function pageOfOperations(project: Project, limit: number, cursorMicros: number | undefined): Operation[] {
  const { operations } = project;
  let end = operations.length;
  if (cursorMicros !== undefined) {
    const index = operations.findLastIndex((operation) => operation.createdAtMicros < cursorMicros);
    end = index + 1;
  }
  return operations.slice(Math.max(0, end - limit), end).reverse();
}

interface BranchPage {
  limit: number;
  search: string;
  /** The id of the last branch of the page before. */
  cursor?: string;
}

/** A page of branches by age; `next` is there while there are more. */
export function pageOfBranches(project: Project, page: BranchPage): { branches: Branch[]; next?: string } {
  const found = [...project.branches.values()].filter(
    ({ name, id }) => name.includes(page.search) || id === page.search,
  );
  const start = page.cursor === undefined ? 0 : found.findIndex(({ id }) => id === page.cursor) + 1;
  const branches = found.slice(start, start + page.limit);
  const last = branches.at(-1);
  return last !== undefined && start + page.limit < found.length ? { branches, next: last.id } : { branches };
}
