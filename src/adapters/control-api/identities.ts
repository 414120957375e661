import { isDeepStrictEqual } from 'node:util';
import type { Branch, Operation, Project } from '../../ports/control-api.ts';
import type { WireCompute } from './wire.ts';

/**
 * An answer that names the same thing twice, or a thing of another project, is not believed: which of two states is the right one can't be
 * told. Each check returns what is wrong, undefined if nothing is.
 */

export function problemWithComputes(
  projectId: string,
  computes: readonly Pick<WireCompute, 'project_id'>[],
  ids: readonly string[],
): string | undefined {
  if (computes.some((compute) => compute.project_id !== projectId))
    return 'the answer holds a compute of another project';
  return twice(ids);
}

export function problemWithOperations(
  projectId: string,
  operations: readonly Pick<Operation, 'operationId' | 'projectId'>[],
): string | undefined {
  const isOther = operations.some((operation) => operation.projectId !== projectId);
  return isOther
    ? 'the answer holds an operation of another project'
    : twice(operations.map(({ operationId }) => operationId));
}

/** `seen`: the branches of the pages before, of which some may come again, as they were. */
export function problemWithBranches(
  seen: ReadonlyMap<string, Branch>,
  branches: readonly Branch[],
): string | undefined {
  const changed = branches.find((branch) => !isDeepStrictEqual(seen.get(branch.branchId) ?? branch, branch));
  return (
    twice(branches.map(({ branchId }) => branchId)) ??
    (changed && `the list shows ${changed.branchId} twice, and not the same`)
  );
}

/** The first id that comes twice, as a problem. */
function twice(ids: readonly string[]): string | undefined {
  const seen = new Set<string>();
  const id = ids.find((one) => seen.has(one) || !seen.add(one));
  return id === undefined ? undefined : `the answer lists ${id} twice`;
}

/**
 * Of the projects of a list those that count, by id. One that moved to another page while the list was read comes twice: the newer one counts.
 * `contradictory`: ids of which two are equally new and not the same.
 */
export function distinctProjects(listed: readonly Project[]): {
  projects: ReadonlyMap<string, Project>;
  contradictory: string[];
} {
  const projects = new Map<string, Project>();
  const contradictory = new Set<string>();
  for (const project of listed) {
    const { projectId, updatedAtMs } = project;
    const before = projects.get(projectId);
    if (before && before.updatedAtMs === updatedAtMs && !isDeepStrictEqual(before, project))
      contradictory.add(projectId);
    if (!before || before.updatedAtMs < updatedAtMs) projects.set(projectId, project);
  }
  for (const projectId of contradictory) projects.delete(projectId);
  return { projects, contradictory: [...contradictory] };
}
