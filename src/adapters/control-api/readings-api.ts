import { firstNames } from '../../common/names.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type {
  ApiResult,
  Branch,
  ControlApiError,
  FleetApi,
  OperationsReader,
  Project,
  UnreadableCompute,
} from '../../ports/control-api.ts';
import { createReadOnlyApi, type ProjectContents, UNKNOWN_PARENT } from './read-only-api.ts';
import { BRANCHES } from './routes.ts';

/** A daemon's reading of a project. */
interface ReadProject {
  project: Project;
  /** With names and roles of branches, where the daemon has read them. */
  computes: readonly Compute[];
  unreadable: readonly UnreadableCompute[];
  branchesRefused: boolean;
}

/**
 * A read-only control API that answers from the readings of daemons. The live API is opened when it is first needed. It answers for usage,
 * operations that are not stored (`withKept`), computes of projects to be read again (`readAgain`) and, with `asksBranches`, branches that the
 * daemons don't read. The list of projects ends with an error that names `unread` ones.
 */
export function createReadingsApi(
  {
    projects,
    unread = [],
    asksBranches = true,
  }: { projects: readonly ReadProject[]; unread?: readonly string[]; asksBranches?: boolean },
  openLive: () => Promise<ApiResult<FleetApi>>,
  withKept: (askLive: OperationsReader['operationsFrom']) => OperationsReader,
): FleetApi & {
  /** Makes `listComputes` of these projects ask the live API. With `onFailure`, a failure goes there, and the stored reading is returned. */
  readAgain(projectIds: Iterable<string>, onFailure?: (error: ControlApiError) => void): void;
} {
  const stored = createReadOnlyApi(projects.map(contentsOf), "ebb's store");
  const unknownBranches = new Set(projects.filter(lacksBranches).map(({ project }) => project.projectId));
  const outdated = new Map<string, ((error: ControlApiError) => void) | undefined>();
  let opening: Promise<ApiResult<FleetApi>> | undefined;
  const live = () => {
    opening ??= openLive();
    return opening;
  };
  return {
    ...stored,
    async *listProjects(options) {
      yield* stored.listProjects(options);
      if (unread.length > 0) yield { ok: false, error: unreadError(unread, projects.length + unread.length) };
    },
    readAgain(projectIds, onFailure) {
      for (const projectId of projectIds) outdated.set(projectId, onFailure);
    },
    async listComputes(project, options) {
      if (!outdated.has(project.projectId)) return stored.listComputes(project, options);
      const opened = await live();
      const answer = opened.ok ? await opened.value.listComputes(project, options) : opened;
      const onFailure = outdated.get(project.projectId);
      if (answer.ok || !onFailure) return answer;
      onFailure(answer.error);
      return stored.listComputes(project, options);
    },
    async *listBranches(projectId, options) {
      if (!unknownBranches.has(projectId) || !asksBranches) return yield* stored.listBranches(projectId, options);
      const opened = await live();
      if (opened.ok) yield* opened.value.listBranches(projectId, options);
      else yield opened;
    },
    async *listOperations(projectId, options) {
      const opened = await live();
      if (opened.ok) yield* opened.value.listOperations(projectId, options);
      else yield opened;
    },
    ...withKept(async (...asked) => {
      const opened = await live();
      return opened.ok ? opened.value.operationsFrom(...asked) : opened;
    }),
    async usage(...asked) {
      const opened = await live();
      return opened.ok ? opened.value.usage(...asked) : opened;
    },
    async close() {
      const opened = await opening;
      if (opened?.ok) await opened.value.close();
    },
  };
}

function unreadError(unread: readonly string[], listed: number): ControlApiError {
  const message = `${unread.length} of ${listed} projects are not read yet: ${firstNames(unread, 3)}; --live reads the API`;
  return { code: 'unavailable', route: '', message };
}

function lacksBranches({ computes, branchesRefused }: ReadProject): boolean {
  return !branchesRefused && computes.some(({ branchName }) => branchName === undefined);
}

function contentsOf({ project, computes, unreadable, branchesRefused }: ReadProject): ProjectContents {
  return {
    project,
    computes: computes.map(({ branchName: _name, branchRoles: _roles, ...compute }) => compute),
    unreadable,
    branches: branchesRefused
      ? { ok: false, error: { code: 'forbidden', route: `GET ${BRANCHES}`, message: 'refused to the daemon' } }
      : { ok: true, value: branchesOf(computes) },
  };
}

function branchesOf(computes: readonly Compute[]): Branch[] {
  const branches = new Map<string, Branch>();
  for (const { branchId, branchName: name, branchRoles: roles = [] } of computes) {
    if (name === undefined) continue;
    branches.set(branchId, {
      branchId,
      name,
      isDefault: roles.includes('default'),
      isProtected: roles.includes('protected'),
      ...(roles.includes('child') && { parentBranchId: UNKNOWN_PARENT }),
    });
  }
  return [...branches.values()];
}
