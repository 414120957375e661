import type { Result } from '../../common/result.ts';
import { type Compute, canonicalSuspendTimeout } from '../../domain/compute/compute.ts';
import type {
  ApiResult,
  Branch,
  ComputeFacts,
  ControlApi,
  ControlApiError,
  FleetFacts,
  Project,
} from '../../ports/control-api.ts';

import { readSnapshot } from './read-snapshot.ts';
import { BRANCHES, COMPUTE, COMPUTES, RESTART } from './routes.ts';
import type { SnapshotBranch, SnapshotCompute, SnapshotProject } from './snapshot-schema.ts';

export interface SnapshotApi {
  /** Lists what is in the file; every write is `forbidden`. */
  api: ControlApi;
  facts: FleetFacts;
  /** When the file was made, if it says so. */
  takenAtMs?: number;
}

/** The account of a project that names none: that of settings without `accounts`. */
const ONLY_ACCOUNT = 'default';

/** A compute whose age is not known is old enough for every policy: a year. */
const UNKNOWN_AGE_MS = 365 * 86_400_000;

/** The parent of a branch of which the file only shows that it must have one. */
const UNKNOWN_PARENT = 'not-in-the-file';

/**
 * A fleet file, YAML or JSON, as a control API that can only be read; or one line that says what is wrong with it and where.
 * `name` is what the file is called there; a compute without `created_at` is a year older than `nowMs`.
 */
export function createSnapshotApi(options: { text: string; name: string; nowMs: number }): Result<SnapshotApi> {
  const { text, name, nowMs } = options;
  const read = readSnapshot(text);
  if (!read.ok) return { ok: false, problem: `${name}: ${read.problem}` };
  const { taken_at: takenAtMs, projects } = read.value;
  const contents = projects.map((project) => contentOf(project, nowMs));
  const value = { api: apiOf(contents), facts: factsOf(projects) };
  return { ok: true, value: takenAtMs === undefined ? value : { ...value, takenAtMs } };
}

interface Content {
  project: Project;
  computes: Compute[];
  branches: Branch[];
}

function apiOf(contents: readonly Content[]): ControlApi {
  const byId = new Map(contents.map((content) => [content.project.projectId, content]));
  const find = (projectId: string, route: string): ApiResult<Content> => {
    const value = byId.get(projectId);
    return value ? { ok: true, value } : refused('not_found', route, `the snapshot has no project ${projectId}`);
  };
  const readOnly = (route: string) => refused('forbidden', route, 'a snapshot is read-only');
  return {
    async *listProjects() {
      if (contents.length > 0) yield { ok: true, value: contents.map(({ project }) => project) };
    },
    async listComputes({ projectId }) {
      const found = find(projectId, `GET ${COMPUTES}`);
      return found.ok ? { ok: true, value: { computes: found.value.computes, unreadable: [] } } : found;
    },
    async *listBranches(projectId) {
      const found = find(projectId, `GET ${BRANCHES}`);
      yield found.ok ? { ok: true, value: found.value.branches } : found;
    },
    async *listOperations() {},
    operationsFrom: async () => ({ ok: true, value: { operations: [], cursor: undefined } }),
    usage: async () => refused('invalid', 'GET /consumption_history/v2/projects', 'a fleet file has no usage'),
    updateCompute: async () => readOnly(`PATCH ${COMPUTE}`),
    restartCompute: async () => readOnly(`POST ${RESTART}`),
    permit: async () => ({ isUsed: () => false, take: () => undefined, giveBack() {} }),
    accountStatus() {
      const accounts = new Set(contents.map(({ project }) => project.account));
      return [...accounts].map((account) => ({ account, key: 'unknown' as const }));
    },
    async close() {},
  };
}

function refused(code: ControlApiError['code'], route: string, message: string): { ok: false; error: ControlApiError } {
  return { ok: false, error: { code, route, message } };
}

function contentOf(file: SnapshotProject, nowMs: number): Content {
  const { id: projectId, name, account = ONLY_ACCOUNT, region_id: regionId, pg_version: pgVersion } = file;
  const lastActive = file.computes.map((compute) => compute.last_active ?? Number.NEGATIVE_INFINITY);
  const computeLastActiveAtMs = Math.max(...lastActive);
  const project: Project = { account, projectId, name: name ?? projectId, regionId, updatedAtMs: nowMs };
  if (name === undefined) project.nameUnknown = true;
  if (pgVersion !== undefined) project.pgVersion = pgVersion;
  if (Number.isFinite(computeLastActiveAtMs)) project.computeLastActiveAtMs = computeLastActiveAtMs;
  const computes = file.computes.map((compute) => computeOf(project, compute, nowMs));
  return { project, computes, branches: branchesOf(file) };
}

function computeOf(project: Project, file: SnapshotCompute, nowMs: number): Compute {
  const { started_at: startedAtMs, last_active: lastActiveAtMs } = file;
  return {
    account: project.account,
    projectId: project.projectId,
    projectName: project.name,
    ...(project.nameUnknown && { projectNameUnknown: true as const }),
    computeId: file.id,
    branchId: file.branch_id,
    type: file.type,
    regionId: project.regionId,
    ...settingsFrom(file),
    state: file.state,
    disabled: file.disabled,
    createdAtMs: file.created_at ?? nowMs - UNKNOWN_AGE_MS,
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastActiveAtMs !== undefined && { lastActiveAtMs }),
  };
}

function settingsFrom(file: Pick<SnapshotCompute, 'min_cu' | 'max_cu' | 'suspend_timeout_seconds'>) {
  const suspendTimeoutSeconds = canonicalSuspendTimeout(file.suspend_timeout_seconds);
  return { minCu: file.min_cu, maxCu: file.max_cu, suspendTimeoutSeconds };
}

/** Only branches that the file describes: of the others neither name nor roles are known. */
function branchesOf({ computes }: SnapshotProject): Branch[] {
  const described = new Map<string, SnapshotBranch>();
  for (const { branch_id: id, branch } of computes) if (branch) described.set(id, branch);
  const [defaultId] = [...described].find(([, branch]) => branch.default) ?? [];
  return [...described].map(([branchId, branch]) => {
    const { name, default: isDefault, protected: isProtected, child = !isDefault } = branch;
    const parentBranchId = isDefault ? UNKNOWN_PARENT : (defaultId ?? UNKNOWN_PARENT);
    return { branchId, name, isDefault, isProtected, ...(child && { parentBranchId }) };
  });
}

function factsOf(projects: readonly SnapshotProject[]): FleetFacts {
  const facts = new Map<string, ComputeFacts>();
  for (const { id, connections, baseline } of projects.flatMap(({ computes }) => computes)) {
    if (connections === undefined && baseline === undefined) continue;
    facts.set(id, {
      ...(connections !== undefined && { connections }),
      ...(baseline && { baseline: settingsFrom(baseline) }),
    });
  }
  return facts;
}
