import type { Project } from '../ports/control-api.ts';
import type { JobHandler } from '../ports/job-queue.ts';
import type { Context } from './context.ts';
import { forgetProject } from './forget-project.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { reportListing } from './outages.ts';
import { type ProjectList, readPicture, readProjectList } from './pictures.ts';
import { requestReconcile } from './triggers.ts';

/** The background refresh may use this share of the API budget of 700 requests a minute. */
const BACKGROUND_SHARE = 0.1;
const BUDGET_PER_MS = 700 / 60_000;
const CONCURRENT_READS = 8;

/**
 * Keeps the picture of the fleet true at little cost: the list of projects shows which of them changed; those are read at
 * once, and of the others the oldest pictures, as many as the background's share of the budget allows.
 */
export function createInventory(context: Context): JobHandler {
  return async (_job, signal) => {
    await takeInventory(context, signal);
    return { kind: 'done' };
  };
}

/**
 * One round. What was read is reconciled; a project that is no longer listed is forgotten, unless its account could not be listed in
 * whole.
 */
export async function takeInventory(context: Context, signal: AbortSignal): Promise<void> {
  const list = await readProjectList(context, { signal });
  if (signal.aborted) return;
  reportListing(context, list);
  await forgetUnlisted(context, list, signal);
  const { fleet } = context;
  const { projects } = list;
  const due = projects.filter((project) => changedSince(fleet.picture(project.projectId)?.project, project));
  for (const project of projects) fleet.list(project);
  const isDue = new Set(due.map(({ projectId }) => projectId));
  const others = projects.filter(({ projectId }) => !isDue.has(projectId));
  await readAll(context, [...due, ...oldest(context, others)], signal);
}

async function forgetUnlisted(
  context: Context,
  { projects, failures }: ProjectList,
  signal: AbortSignal,
): Promise<void> {
  const { fleet } = context;
  const present = new Set(projects.map(({ projectId }) => projectId));
  const gone = fleet.projectIds().filter((projectId) => {
    return !present.has(projectId) && !failures.has(fleet.listed(projectId)?.account ?? '');
  });
  for (const projectId of gone) await forgetIfDeleted(context, projectId, signal);
}

/**
 * That the list no longer has a project is not enough to forget what is stored of it, since a baseline can't be got back: the
 * control API must say that it does not exist. And only of projects that this daemon has seen: to another key all are unknown.
 */
async function forgetIfDeleted(context: Context, projectId: string, signal: AbortSignal): Promise<void> {
  for await (const page of context.api.listOperations(projectId, { signal })) {
    if (!page.ok && page.error.code === 'not_found') await forgetProject(context, projectId);
    break;
  }
  context.fleet.forget(projectId);
}

async function readAll(context: Context, projects: readonly Project[], signal: AbortSignal): Promise<void> {
  await mapConcurrently(projects, CONCURRENT_READS, async (project) => {
    if (signal.aborted || !(await readPicture(context, project, { signal }))) return;
    await requestReconcile(context, project.projectId);
  });
}

function changedSince(before: Project | undefined, now: Project): boolean {
  return before === undefined || before.updatedAtMs !== now.updatedAtMs;
}

function oldest({ fleet, rhythm }: Context, projects: readonly Project[]): Project[] {
  const most = Math.ceil(rhythm.inventoryMs * BUDGET_PER_MS * BACKGROUND_SHARE);
  const wasUsed = ({ projectId, computeLastActiveAtMs }: Project) =>
    Number(fleet.picture(projectId)?.project.computeLastActiveAtMs !== computeLastActiveAtMs);
  return projects
    .toSorted((a, b) => wasUsed(b) - wasUsed(a) || fleet.ageMs(b.projectId) - fleet.ageMs(a.projectId))
    .slice(0, most);
}
