/** A fleet that is already known, as a read-only control API: for fleet files, and for what daemons have read. */
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

export interface KnownProject {
  project: Project;
  /** Without names and roles of branches, which the API lists apart. */
  computes: Compute[];
  unreadable?: readonly UnreadableCompute[];
  branches: ApiResult<Branch[]>;
}

/** The parent of a branch of which only that it has one is known. */
export const UNKNOWN_PARENT = 'not-in-the-file';

/** Lists what is known; every write is `forbidden`, and there are neither operations nor usage. `name` is what the fleet is called in messages. */
export function createKnownFleetApi(known: readonly KnownProject[], name: string): ControlApi {
  const byId = new Map(known.map((one) => [one.project.projectId, one]));
  const find = (projectId: string, route: string): ApiResult<KnownProject> => {
    const value = byId.get(projectId);
    return value ? { ok: true, value } : refused('not_found', route, `${name} has no project ${projectId}`);
  };
  const readOnly = (route: string) => refused('forbidden', route, `${name} is read-only`);
  return {
    async *listProjects() {
      if (known.length > 0) yield { ok: true, value: known.map(({ project }) => project) };
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
      const accounts = new Set(known.map(({ project }) => project.account));
      return [...accounts].map((account) => ({ account, key: 'unknown' as const }));
    },
    async close() {},
  };
}

function refused(code: ControlApiError['code'], route: string, message: string): { ok: false; error: ControlApiError } {
  return { ok: false, error: { code, route, message } };
}
