import { isDeepStrictEqual } from 'node:util';
import { firstNames } from '../../common/names.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { ApiResult, CallOptions, ControlApiError, ListOptions, Project } from '../../ports/control-api.ts';
import type { ApiAccount } from './accounts.ts';
import { ask, type Request } from './requests.ts';
import { computesOf, type ListSource, listPages, type Page, PROJECTS, takeUnseen } from './routes.ts';
import { projectOf } from './translate.ts';
import { ProjectsPage, readProject, type WireCompute, type WireProject } from './wire.ts';

const PROJECTS_PER_PAGE = 400;

/** Lists the projects of all accounts. One instance for each client, since it remembers which accounts refuse lists. */
export function createProjectList(
  source: ListSource & { accounts: readonly ApiAccount[] },
): (options: ListOptions) => AsyncGenerator<ApiResult<Project[]>> {
  const { accounts } = source;
  const scopedProjects = createScopedProjects(source);
  return ({ account: only, ...callOptions }) =>
    listAll(
      accounts.filter(({ name }) => only === undefined || name === only),
      (account) => projectsOf(source, scopedProjects, account, callOptions),
    );
}

/**
 * Lists the accounts concurrently and yields them in their order. Errors come last, one for each account, so that they don't hide the
 * rest. A project that two accounts can see belongs to the first.
 */
async function* listAll(
  accounts: readonly ApiAccount[],
  pagesOfAccount: (account: ApiAccount) => AsyncIterable<ApiResult<Project[]>>,
): AsyncGenerator<ApiResult<Project[]>> {
  const errors = new Map<string, ControlApiError>();
  const seen = new Set<string>();
  const lists = await Promise.all(
    accounts.map(async (account) => ({ account, pages: await allOf(pagesOfAccount(account)) })),
  );
  for (const { account, pages } of lists) {
    for (const page of withoutRepeats(account.name, pages)) {
      const unseen = page.ok ? takeUnseen(page.value, seen, ({ projectId }) => projectId) : [];
      if (unseen.length > 0) yield { ok: true, value: unseen };
      if (!page.ok && !errors.has(account.name)) errors.set(account.name, { ...page.error, account: account.name });
    }
  }
  for (const error of errors.values()) yield { ok: false, error };
}

/** Each project of an account once, and an error for contradictory ones. */
function withoutRepeats(account: string, pages: readonly ApiResult<Project[]>[]): ApiResult<Project[]>[] {
  const { projects, contradictory } = distinctProjects(pages.flatMap((page) => (page.ok ? page.value : [])));
  const isNewest = (project: Project) => projects.get(project.projectId) === project;
  const once = pages.map((page) => (page.ok ? { ...page, value: page.value.filter(isNewest) } : page));
  if (contradictory.length === 0) return once;
  const message = `the list shows ${contradictory.join(', ')} twice, with different values`;
  return [...once, { ok: false, error: { code: 'malformed', route: `GET ${PROJECTS}`, account, message } }];
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function* projectsOf(
  source: ListSource,
  scopedProjects: ScopedProjects,
  account: ApiAccount,
  options: ListOptions,
): AsyncGenerator<ApiResult<Project[]>> {
  const { projectIds } = account;
  if (projectIds !== undefined) {
    yield* scopedProjects({ ...account, projectIds }, options);
    return;
  }
  const foreign: string[] = [];
  for await (const page of projectPages(source, account, options)) {
    if (!page.ok) {
      yield page;
      continue;
    }
    const { listed, askedAtMonotonicMs } = page.value;
    const expected = listed.filter((project) => isExpected(account, project));
    foreign.push(...listed.filter((project) => !expected.includes(project)).map((project) => project.id));
    const projects = expected.map((project) => projectOf(account.name, project));
    options.onPage?.(projects, askedAtMonotonicMs);
    if (projects.length > 0) yield { ok: true, value: projects };
  }
  if (foreign.length > 0) yield { ok: false, error: foreignProjects(account, foreign) };
}

interface ProjectPage {
  listed: WireProject[];
  /** When the page was requested, in monotonic time. */
  askedAtMonotonicMs: number;
}

/**
 * Yields the projects of one account. Projects that can't be parsed, or that the service can't show at the moment, end the list with an
 * error: the list is incomplete.
 */
async function* projectPages(
  { call, clock }: ListSource,
  { name, organization }: ApiAccount,
  { onPage: _, beforeNextPage, ...options }: ListOptions,
): AsyncGenerator<ApiResult<ProjectPage>> {
  const request: Request = { account: name, method: 'GET', template: PROJECTS };
  let hidden = 0;
  let askedAtMonotonicMs = 0;
  const problems: string[] = [];
  const fetchPage = async (cursor: string | undefined): Promise<ApiResult<Page<unknown>>> => {
    askedAtMonotonicMs = clock.monotonicMs();
    const query = { limit: PROJECTS_PER_PAGE, org_id: organization, cursor };
    const answer = await ask(call, { ...request, query }, ProjectsPage, options);
    if (!answer.ok) return answer;
    const { projects, unavailable_project_ids: unavailable, pagination } = answer.value;
    hidden += unavailable?.length ?? 0;
    return { ok: true, value: { items: projects, cursor: pagination?.cursor ?? undefined } };
  };
  for await (const page of listPages(clock, request, fetchPage, beforeNextPage)) {
    if (!page.ok) {
      yield page;
      continue;
    }
    const read = page.value.map(readProject);
    problems.push(...read.flatMap((one) => (one.ok ? [] : [one.problem])));
    yield { ok: true, value: { listed: read.flatMap((one) => (one.ok ? [one.value] : [])), askedAtMonotonicMs } };
  }
  const about = { route: `GET ${PROJECTS}`, account: name };
  const [first] = problems;
  if (first !== undefined) {
    const message = `${problems.length} projects of the list are not understood and not managed, the first is ${first}`;
    yield { ok: false, error: { code: 'malformed', ...about, message } };
  }
  if (hidden === 0) return;
  const message = `${hidden} projects are not in the list because the service cannot show them at the moment`;
  yield { ok: false, error: { code: 'unavailable', ...about, message } };
}

/** An account that has one key for each project. */
type ScopedAccount = ApiAccount & Required<Pick<ApiAccount, 'projectIds'>>;

/** Yields each project as a page. */
type ScopedProjects = (account: ScopedAccount, options: CallOptions) => AsyncGenerator<ApiResult<Project[]>>;

/** The pauses before a refused list is tried again: after the first refusal, which may be temporary, and after later ones. */
const FIRST_REFUSAL_MS = MINUTE_MS;
const REPEATED_REFUSAL_MS = HOUR_MS;

/**
 * The specification does not say that a project-scoped key may list projects, so ebb tries. Where the list is refused or lacks its
 * project, the project is derived from its computes, with the name that an earlier list has shown.
 */
function createScopedProjects({ call, clock }: ListSource): ScopedProjects {
  const refusals = new Map<string, { sinceMs: number; untilMs: number }>();
  const names = new Map<string, string>();

  function noteRefusal(account: string): void {
    const nowMs = clock.monotonicMs();
    const sinceMs = refusals.get(account)?.sinceMs ?? nowMs;
    const isRepeated = nowMs - sinceMs >= FIRST_REFUSAL_MS;
    refusals.set(account, { sinceMs, untilMs: nowMs + (isRepeated ? REPEATED_REFUSAL_MS : FIRST_REFUSAL_MS) });
  }

  async function listed(account: ScopedAccount, projectId: string, options: CallOptions) {
    if (clock.monotonicMs() < (refusals.get(account.name)?.untilMs ?? 0)) return undefined;
    const request = { account: account.name, method: 'GET', template: PROJECTS, keyOfProject: projectId } as const;
    const answer = await ask(call, { ...request, query: { limit: PROJECTS_PER_PAGE } }, ProjectsPage, options);
    if (!answer.ok && answer.error.code !== 'forbidden' && answer.error.code !== 'not_found') return answer;
    const read = answer.ok ? answer.value.projects.map(readProject) : [];
    const project = read.flatMap((one) => (one.ok ? [one.value] : [])).find(({ id }) => id === projectId);
    if (project === undefined) {
      noteRefusal(account.name);
      return undefined;
    }
    refusals.delete(account.name);
    names.set(projectId, project.name);
    if (!isExpected(account, project)) return { ok: false, error: foreignProjects(account, [projectId]) } as const;
    return { ok: true, value: projectOf(account.name, project) } as const;
  }

  async function projectBy(account: ScopedAccount, projectId: string, options: CallOptions) {
    const project = await listed(account, projectId, options);
    if (project !== undefined) return project;
    const computes = await computesOf(call, { account: account.name, projectId }, options);
    if (!computes.ok) return computes;
    const value = projectFrom(computes.value.computes, account.name, projectId, names.get(projectId));
    return { ok: true, value } as const;
  }

  return async function* scopedProjects(account, options) {
    const projectIds = await account.projectIds().catch((error: unknown) => String(error));
    if (typeof projectIds === 'string') {
      const message = `not sent: ${projectIds}`;
      yield { ok: false, error: { code: 'unauthorised', route: `GET ${PROJECTS}`, account: account.name, message } };
      return;
    }
    for (const projectId of projectIds) {
      const project = await projectBy(account, projectId, options);
      yield project.ok ? { ok: true, value: [project.value] } : project;
    }
  };
}

function projectFrom(
  computes: readonly WireCompute[],
  account: string,
  projectId: string,
  name: string | undefined,
): Project {
  return {
    account,
    projectId,
    ...(name === undefined ? { name: projectId, nameUnknown: true } : { name }),
    regionId: computes[0]?.region_id ?? '',
    updatedAtMs: Math.max(0, ...computes.map((compute) => compute.updated_at ?? compute.created_at)),
  };
}

function isExpected({ organization }: ApiAccount, project: WireProject): boolean {
  return organization === undefined || project.org_id === organization;
}

/** The error of a key that shows projects of another organization: a wrong key was configured. */
function foreignProjects({ name, organization }: ApiAccount, projectIds: string[]): ControlApiError {
  const message = `the key shows ${firstNames(projectIds, 1)}, which is not of the organization ${organization}; it is left alone`;
  return { code: 'forbidden', route: `GET ${PROJECTS}`, account: name, message };
}

/**
 * The listed projects by id. A project that moved to another page during the listing appears twice: the newer entry counts.
 * `contradictory`: ids with two equally new entries that differ.
 */
function distinctProjects(listed: readonly Project[]): {
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
