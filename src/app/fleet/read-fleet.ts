import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import type { ControlApi, ControlApiError, ListOptions, Project, UnreadableCompute } from '../../ports/control-api.ts';
import { readBranches, refusesBranches, withBranches } from './branches.ts';

/** How many projects are read concurrently: enough to use the rate budget, few enough to stop soon. */
const CONCURRENT_PROJECTS = 8;

/** With fewer projects, commands keep no answers for the next command, since reading them takes only a few seconds. */
export const FEWEST_PROJECTS_KEPT = 50;

export interface FleetProgress {
  projectsRead: number;
  projects: number;
  computes: number;
}

/** The whole fleet, as it was while it was read. */
export interface FleetReading {
  projects: Project[];
  /** Listed projects whose computes could not be read. */
  unread: Project[];
  /** All computes, in the order of their projects. */
  computes: Compute[];
  /** Projects whose branches the key may not list: their computes have neither names nor roles of branches. */
  branchNamesRefused: string[];
  /** Errors of accounts that could not be listed, and of projects and computes that could not be read. */
  errors: ControlApiError[];
}

export type OnProgress = (progress: FleetProgress) => void;

export interface ReadFleetOptions {
  api: Pick<ControlApi, 'listProjects' | 'listComputes' | 'listBranches'>;
  /** Also reads names and roles of branches: one request more for each project with computes. A function decides by the number of projects. */
  readBranches: boolean | ((projects: number) => boolean);
  /** Reads only the computes of this project, by its id or name; all if absent. */
  project?: string | undefined;
  projectIds?: ReadonlySet<string> | undefined;
  concurrency?: number;
  onProgress?: OnProgress | undefined;
  signal?: AbortSignal;
}

type ProjectReading =
  | { kind: 'read'; computes: Compute[]; unreadable: ControlApiError[]; branchesRefused: boolean }
  | { kind: 'failed'; error: ControlApiError }
  | { kind: 'gone' };

/** Reads the whole fleet once. Projects that vanish meanwhile are left out; for those that can't be read there is an error. */
export async function readFleet(options: ReadFleetOptions): Promise<FleetReading> {
  const { api, onProgress, concurrency = CONCURRENT_PROJECTS } = options;
  const { projects: listed, errors } = await listAll(options);
  const { project: only, projectIds } = options;
  const projects = listed.filter(
    ({ projectId, name }) =>
      (only === undefined || only === projectId || only === name) && (projectIds?.has(projectId) ?? true),
  );
  const { readBranches } = options;
  const needsBranches = typeof readBranches === 'function' ? readBranches(projects.length) : readBranches;
  const readings = new Map<string, ProjectReading>();
  const progress: FleetProgress = { projectsRead: 0, projects: projects.length, computes: 0 };
  await pLimit(concurrency).map(projects, async (project) => {
    const reading = await readProject(api, project, options, needsBranches);
    readings.set(project.projectId, reading);
    progress.projectsRead += 1;
    if (reading.kind === 'read') progress.computes += reading.computes.length;
    onProgress?.({ ...progress });
  });
  return fleetReadingOf(projects, readings, errors);
}

async function listAll(options: ReadFleetOptions): Promise<{ projects: Project[]; errors: ControlApiError[] }> {
  const projects: Project[] = [];
  const errors: ControlApiError[] = [];
  for await (const page of options.api.listProjects(callOptions(options))) {
    if (page.ok) projects.push(...page.value);
    else errors.push(page.error);
  }
  return { projects, errors };
}

async function readProject(
  api: ReadFleetOptions['api'],
  project: Project,
  options: ReadFleetOptions,
  needsBranches: boolean,
): Promise<ProjectReading> {
  const answer = await api.listComputes(project, callOptions(options));
  if (!answer.ok) return answer.error.code === 'not_found' ? { kind: 'gone' } : failed(project, answer.error);
  const { computes } = answer.value;
  const unreadable = answer.value.unreadable.map((compute) => unreadableError(project, compute));
  const read = { kind: 'read', computes, unreadable, branchesRefused: false } as const;
  if (!needsBranches || computes.length === 0) return read;
  const branches = await readBranches(api, project.projectId, callOptions(options));
  if (branches.ok) return { ...read, computes: withBranches(computes, branches.value) };
  if (refusesBranches(branches.error)) return { ...read, branchesRefused: true };
  return failed(project, branches.error);
}

function failed({ account, projectId }: Project, error: ControlApiError): ProjectReading {
  return { kind: 'failed', error: { account, projectId, ...error } };
}

function unreadableError({ account, projectId }: Project, { computeId, message }: UnreadableCompute): ControlApiError {
  const route = 'GET /projects/{project_id}/endpoints';
  return { code: 'malformed', route, account, message: `${computeId ?? `a compute of ${projectId}`}: ${message}` };
}

function fleetReadingOf(
  projects: readonly Project[],
  readings: ReadonlyMap<string, ProjectReading>,
  listingErrors: readonly ControlApiError[],
): FleetReading {
  const fleet: FleetReading = {
    projects: [],
    unread: [],
    computes: [],
    branchNamesRefused: [],
    errors: [...listingErrors],
  };
  for (const project of projects) {
    const reading = readings.get(project.projectId);
    if (reading?.kind === 'failed') {
      fleet.unread.push(project);
      fleet.errors.push(reading.error);
    }
    if (reading?.kind !== 'read') continue;
    fleet.projects.push(project);
    fleet.errors.push(...reading.unreadable);
    // No spread here: a project may have more computes than a call may have arguments.
    for (const compute of reading.computes) fleet.computes.push(compute);
    if (reading.branchesRefused) fleet.branchNamesRefused.push(project.projectId);
  }
  return fleet;
}

/** The deadline of requests that may wait for the rate budget of the next minutes, in real milliseconds. */
export const UNHURRIED_DEADLINE_MS = 120_000;

/** Returns the options of a request. A person waits for the reading of a single project, so it precedes the daemons' readings. */
function callOptions({ signal, project }: Pick<ReadFleetOptions, 'signal' | 'project'>): ListOptions {
  return {
    ...(signal && { signal }),
    ...(project === undefined ? { deadlineMs: UNHURRIED_DEADLINE_MS } : { priority: 'raise' }),
  };
}
