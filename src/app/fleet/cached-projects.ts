import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, CallOptions, ControlApi, ControlApiError, Project } from '../../ports/control-api.ts';
import { type OutageDeps, type ReportListingDeps, reportApiError, reportListing } from '../telemetry/outages.ts';
import type { CachedProject, Fleet } from './fleet.ts';
import { type ReadComputesDeps, type ReadOptions, readComputes } from './read-computes.ts';

/** A picture older than this is read again before anything is written, in real milliseconds. */
export const FRESH_MS = 10_000;

/** Triggers may name many projects that are gone: for all of them together the list is asked for once in so many real milliseconds. */
const LIST_SERVES_MS = 10_000;

export interface ReadProjectDeps extends ReadComputesDeps, OutageDeps {}

export interface FreshProjectDeps extends ReadProjectDeps, ReportListingDeps {}

/**
 * The picture of a project, read again if it is too old to write by, or was read before `notBeforeMs`; undefined if it can't be
 * had now.
 */
export async function freshProject(
  deps: FreshProjectDeps,
  projectId: string,
  options: CallOptions & { notBeforeMs: number },
): Promise<CachedProject | undefined> {
  const known = deps.fleet.cachedProject(projectId);
  if (known && known.readAtMs > options.notBeforeMs && deps.fleet.ageMs(projectId) <= FRESH_MS) return known;
  const project = deps.fleet.listed(projectId) ?? (await learnProject(deps, projectId, options));
  return project && readProject(deps, project, options);
}

/** Reads the computes of a project and keeps them; undefined, and said once, if the control API can't be asked. */
export async function readProject(
  deps: ReadProjectDeps,
  project: Project,
  options: CallOptions,
): Promise<CachedProject | undefined> {
  const { projectId } = project;
  const answer = await readProjectQuietly(deps, project, options);
  if (answer.ok) {
    deps.outages.up('control API');
    deps.outages.projectAnswers(projectId);
    deps.outages.computesUnreadable(projectId, answer.value.unreadable);
    return answer.value;
  }
  // One that does not exist is forgotten by the inventory, with what is stored of it.
  if (answer.error.code !== 'not_found' && !options.signal?.aborted) reportApiError(deps, projectId, answer.error);
  return undefined;
}

/** As {@link readProject}, and says nothing: for whoever can do without. */
export async function readProjectQuietly(
  deps: ReadComputesDeps,
  project: Project,
  options: ReadOptions,
): Promise<ApiResult<CachedProject>> {
  const begun = { readAtMs: deps.clock.now(), readAtMonotonicMs: deps.clock.monotonicMs() };
  const answer = await readComputes(deps, project, options);
  if (!answer.ok) return answer;
  return { ok: true, value: deps.fleet.see({ project, ...answer.value, ...begun }) };
}

export interface ProjectList {
  projects: Project[];
  /** Why an account could not be listed in whole, by account: of its projects nobody may be called gone. */
  failures: Map<string, ControlApiError>;
}

export interface ListProjectsDeps {
  api: ControlApi;
  fleet: Fleet;
  clock: Clock;
}

/**
 * The projects of all accounts, as far as they can be listed. A project that another account can see too stays with its own while
 * that is in trouble: policies select by account.
 */
export async function readProjectList(
  { api, fleet, clock }: ListProjectsDeps,
  options: CallOptions,
): Promise<ProjectList> {
  fleet.listAskedAtMonotonicMs = clock.monotonicMs();
  const found: Project[] = [];
  const failures: ProjectList['failures'] = new Map();
  for await (const page of api.listProjects(options)) {
    if (page.ok) found.push(...page.value);
    else failures.set(page.error.account ?? '', page.error);
  }
  const projects = found.filter(({ projectId, account }) => {
    const own = fleet.listed(projectId)?.account ?? account;
    return own === account || !failures.has(own);
  });
  return { projects, failures };
}

/** A trigger may name a project that another daemon of the group found first. */
async function learnProject(
  deps: FreshProjectDeps,
  projectId: string,
  options: CallOptions,
): Promise<Project | undefined> {
  if (isListFresh(deps)) return undefined;
  const list = await readProjectList(deps, options);
  if (!options.signal?.aborted) reportListing(deps, list);
  for (const project of list.projects) if (!deps.fleet.listed(project.projectId)) deps.fleet.list(project);
  return deps.fleet.listed(projectId);
}

function isListFresh({ fleet, clock }: Pick<ListProjectsDeps, 'fleet' | 'clock'>): boolean {
  return clock.monotonicMs() - fleet.listAskedAtMonotonicMs < LIST_SERVES_MS;
}
