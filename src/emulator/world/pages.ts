import type { Branch, Operation, Project, WorldState } from './entities.ts';

/** The index of the first item of an ascending list that `isAfter` accepts, or the length of the list if there is none. */
export function firstIndex<T>(items: readonly T[], isAfter: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(items[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * A page of projects by id, so that new and deleted projects shift no other between two pages. The cursor is the id of the
 * last project of the page before.
 */
export function pageOfProjects(
  world: WorldState,
  page: { limit: number; cursor: string | undefined; accepts: (project: Project) => boolean },
): Project[] {
  const { cursor } = page;
  const found: Project[] = [];
  const start = cursor === undefined ? 0 : firstIndex(world.projectIds, (id) => id > cursor);
  for (let index = start; index < world.projectIds.length && found.length < page.limit; index += 1) {
    const project = world.projects.get(world.projectIds[index] ?? '');
    if (project !== undefined && page.accepts(project)) found.push(project);
  }
  return found;
}

/** A page of the operations created before `cursorMicros`, newest first. */
export function pageOfOperations(project: Project, limit: number, cursorMicros: number | undefined): Operation[] {
  const { operations } = project;
  let end = operations.length;
  if (cursorMicros !== undefined) {
    const index = operations.findLastIndex((operation) => operation.createdAtMicros < cursorMicros);
    end = index + 1;
  }
  return operations.slice(Math.max(0, end - limit), end).reverse();
}

/** A page of branches in the order of their creation; `next` is the cursor of the next page, undefined on the last one. */
export function pageOfBranches(
  project: Project,
  page: { limit: number; search: string; cursor: string | undefined },
): { branches: Branch[]; next: string | undefined } {
  const found = [...project.branches.values()].filter(
    ({ name, id }) => name.includes(page.search) || id === page.search,
  );
  const start = page.cursor === undefined ? 0 : found.findIndex(({ id }) => id === page.cursor) + 1;
  const branches = found.slice(start, start + page.limit);
  return { branches, next: start + page.limit < found.length ? branches.at(-1)?.id : undefined };
}
