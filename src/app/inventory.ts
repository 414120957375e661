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

/** Asking about an absent project costs a request. */
const MOST_FORGOTTEN_AT_ONCE = 5;

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

async function forgetUnlisted(context: Context, { projects, failures }: ProjectList, signal: AbortSignal) {
  const { fleet } = context;
  const present = new Set(projects.map(({ projectId }) => projectId));
  for (const projectId of fleet.projectIds()) {
    const { account = '' } = fleet.listed(projectId) ?? {};
    if (!present.has(projectId) && !failures.has(account)) fleet.forget(projectId);
  }
  if (failures.size === 0) await forgetDeleted(context, present, signal);
}

async function readAll(context: Context, projects: readonly Project[], signal: AbortSignal): Promise<void> {
  await mapConcurrently(projects, CONCURRENT_READS, async (project) => {
    if (signal.aborted || !(await readPicture(context, project, { signal }))) return;
    await requestReconcile(context, project.projectId);
  });
}

/**
 * Forgets what is stored of projects that no longer exist. That a list doesn't have them is not enough, since a baseline can't
 * be got back: the control API must say so of each.
 */
async function forgetDeleted(context: Context, present: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  const absent = (await context.store.projectIds()).filter((projectId) => !present.has(projectId));
  for (const projectId of absent.slice(0, MOST_FORGOTTEN_AT_ONCE)) {
    for await (const page of context.api.listOperations(projectId, { signal })) {
      if (!page.ok && page.error.code === 'not_found') await forgetProject(context, projectId);
      break;
    }
  }
}

function changedSince(before: Project | undefined, now: Project): boolean {
  return (
    before === undefined ||
    before.updatedAtMs !== now.updatedAtMs ||
    before.computeLastActiveAtMs !== now.computeLastActiveAtMs
  );
}

function oldest({ fleet, rhythm }: Context, projects: readonly Project[]): Project[] {
  const most = Math.ceil(rhythm.inventoryMs * BUDGET_PER_MS * BACKGROUND_SHARE);
  return projects.toSorted((a, b) => fleet.ageMs(b.projectId) - fleet.ageMs(a.projectId)).slice(0, most);
}
