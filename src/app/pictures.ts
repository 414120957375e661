import type { ApiResult, CallOptions, ControlApiError, Project } from '../ports/control-api.ts';
import type { Context } from './context.ts';
import type { Picture } from './fleet.ts';
import { reportApiError, reportListing } from './outages.ts';
import { readComputes } from './read-computes.ts';

/** A picture older than this is read again before anything is written, in real milliseconds. */
export const FRESH_MS = 10_000;

/** Triggers may name many projects that are gone: for all of them together the list is asked for once in so many real milliseconds. */
const LIST_SERVES_MS = 10_000;

/**
 * The picture of a project, read again if it is too old to write by, or was read before `notBeforeMs`; undefined if it can't be
 * had now.
 */
export async function freshPicture(
  context: Context,
  projectId: string,
  options: CallOptions & { notBeforeMs: number },
): Promise<Picture | undefined> {
  const known = context.fleet.picture(projectId);
  if (known && known.readAtMs > options.notBeforeMs && context.fleet.ageMs(projectId) <= FRESH_MS) return known;
  const project = context.fleet.listed(projectId) ?? (await learnProject(context, projectId, options));
  return project && readPicture(context, project, options);
}

/** Reads the computes of a project and keeps them; undefined, and said once, if the control API can't be asked. */
export async function readPicture(
  context: Context,
  project: Project,
  options: CallOptions,
): Promise<Picture | undefined> {
  const answer = await readPictureQuietly(context, project, options);
  if (answer.ok) {
    context.outages.up('control API');
    context.outages.projectAnswers(project.projectId);
    return answer.value;
  }
  if (answer.error.code === 'not_found') context.fleet.forget(project.projectId);
  else if (!options.signal?.aborted) reportApiError(context, project.projectId, answer.error);
  return undefined;
}

/** As {@link readPicture}, and says nothing: for whoever can do without. */
export async function readPictureQuietly(
  context: Context,
  project: Project,
  options: CallOptions,
): Promise<ApiResult<Picture>> {
  const begun = { readAtMs: context.clock.now(), readAtMonotonicMs: context.clock.monotonicMs() };
  const answer = await readComputes(context, project, options);
  if (!answer.ok) return answer;
  return { ok: true, value: context.fleet.see({ project, computes: answer.value, ...begun }) };
}

export interface ProjectList {
  projects: Project[];
  /** Why an account could not be listed in whole, by account: of its projects nobody may be called gone. */
  failures: Map<string, ControlApiError>;
}

/**
 * The projects of all accounts, as far as they can be listed. A project that another account can see too stays with its own while
 * that is in trouble: policies select by account.
 */
export async function readProjectList({ api, fleet, clock }: Context, options: CallOptions): Promise<ProjectList> {
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
async function learnProject(context: Context, projectId: string, options: CallOptions): Promise<Project | undefined> {
  if (isListFresh(context)) return undefined;
  const list = await readProjectList(context, options);
  if (!options.signal?.aborted) reportListing(context, list);
  for (const project of list.projects) if (!context.fleet.listed(project.projectId)) context.fleet.list(project);
  return context.fleet.listed(projectId);
}

function isListFresh({ fleet, clock }: Context): boolean {
  return clock.monotonicMs() - fleet.listAskedAtMonotonicMs < LIST_SERVES_MS;
}
