import type { ApiResult, CallOptions, ControlApiError, Project } from '../ports/control-api.ts';
import type { Context } from './context.ts';
import type { Picture } from './fleet.ts';

/** A picture older than this is read again before anything is written, in real milliseconds. */
const FRESH_MS = 10_000;

/**
 * The picture of a project, read again if it is too old to write by, or was read before `notBeforeMs`; undefined if it can't be
 * had now.
 */
export async function freshPicture(
  context: Context,
  projectId: string,
  { notBeforeMs, signal }: { notBeforeMs: number; signal: AbortSignal },
): Promise<Picture | undefined> {
  const known = context.fleet.picture(projectId);
  if (known && known.readAtMs > notBeforeMs && context.fleet.ageMs(projectId) <= FRESH_MS) return known;
  const project = context.fleet.listed(projectId) ?? (await learnProject(context, projectId, signal));
  return project && readPicture(context, project, signal);
}

/** Reads the computes of a project and keeps them; undefined, and said once, if the control API can't be asked. */
export async function readPicture(
  context: Context,
  project: Project,
  signal: AbortSignal,
): Promise<Picture | undefined> {
  const begun = { readAtMs: context.clock.now(), readAtMonotonicMs: context.clock.monotonicMs() };
  const answer = await context.api.listComputes(project, { signal });
  if (answer.ok) {
    context.outages.up('control API');
    return context.fleet.see({ project, computes: answer.value, ...begun });
  }
  if (answer.error.code === 'not_found') context.fleet.forget(project.projectId);
  else if (!signal.aborted) reportApiError(context, answer.error);
  return undefined;
}

/** The whole list of projects, or the error of the page that failed: from a part of it nobody may be called gone. */
export async function readProjectList(context: Context, options: CallOptions): Promise<ApiResult<Project[]>> {
  const projects: Project[] = [];
  for await (const page of context.api.listProjects(options)) {
    if (!page.ok) return page;
    projects.push(...page.value);
  }
  return { ok: true, value: projects };
}

/** A trigger may name a project that another daemon of the group found first. */
async function learnProject(context: Context, projectId: string, signal: AbortSignal): Promise<Project | undefined> {
  const list = await readProjectList(context, { signal });
  if (!list.ok) {
    if (!signal.aborted) reportApiError(context, list.error);
    return undefined;
  }
  for (const project of list.value) if (!context.fleet.listed(project.projectId)) context.fleet.list(project);
  return context.fleet.listed(projectId);
}

/** Says once that the control API can't be asked. */
export function reportApiError(context: Context, error: ControlApiError): void {
  context.outages.down('control API', describeApiError(error));
}

/** An error of the control API in one line: the call, what came back, what it said. */
export function describeApiError({ route, status, code, message }: ControlApiError): string {
  return `${route}: ${status ?? code}: ${message}`;
}
