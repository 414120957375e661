/** A read-only control API over a fleet in memory: a fleet file, or stored readings of daemons. */
import type { Compute } from '../../domain/compute/compute.ts';
import type {
  ApiResult,
  Branch,
  ControlApi,
  ControlApiError,
  Project,
  UnreadableCompute,
} from '../../ports/control-api.ts';
import { BRANCHES, COMPUTE, COMPUTES, PROJECT, RESTART } from './routes.ts';

export interface ProjectContents {
  project: Project;
  /** Without names and roles of branches, which the API lists separately. */
  computes: Compute[];
  unreadable?: readonly UnreadableCompute[];
  branches: ApiResult<Branch[]>;
}

/** The parent id of a branch whose parent is unknown. */
export const UNKNOWN_PARENT = 'not-in-the-file';

/** Every write is `forbidden`; there are neither operations nor usage. `name` is the fleet's name in messages. */
export function createReadOnlyApi(fleet: readonly ProjectContents[], name: string): ControlApi {
  const byId = new Map(fleet.map((contents) => [contents.project.projectId, contents]));
  const find = (projectId: string, route: string): ApiResult<ProjectContents> => {
    const value = byId.get(projectId);
    return value ? { ok: true, value } : refused('not_found', route, `${name} has no project ${projectId}`);
  };
  const readOnly = (route: string) => refused('forbidden', route, `${name} is read-only`);
  return {
    async *listProjects() {
      if (fleet.length > 0) yield { ok: true, value: fleet.map(({ project }) => project) };
    },
    async listComputes({ projectId }) {
      const found = find(projectId, `GET ${COMPUTES}`);
      if (!found.ok) return found;
      const { computes, unreadable = [] } = found.value;
      return { ok: true, value: { computes, unreadable: [...unreadable] } };
    },
    projectPeriod: async () => refused('invalid', `GET ${PROJECT}`, `${name} has no usage`),
    async *listBranches(projectId) {
      const found = find(projectId, `GET ${BRANCHES}`);
      yield found.ok ? found.value.branches : found;
    },
    async *listOperations() {},
    operationsFrom: async () => ({ ok: true, value: { operations: [], cursor: undefined } }),
    usage: async () => refused('invalid', 'GET /consumption_history/v2/projects', 'a fleet file has no usage'),
    updateCompute: async () => readOnly(`PATCH ${COMPUTE}`),
    restartCompute: async () => readOnly(`POST ${RESTART}`),
    permit: async () => ({ isUsed: () => false, take: () => undefined, giveBack() {} }),
    accountStatus() {
      const accounts = new Set(fleet.map(({ project }) => project.account));
      return [...accounts].map((account) => ({ account, key: 'unknown' as const }));
    },
    async close() {},
  };
}

function refused(code: ControlApiError['code'], route: string, message: string): { ok: false; error: ControlApiError } {
  return { ok: false, error: { code, route, message } };
}
