import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { AT_ANY_AGE, compileSelector } from '../../domain/policy/select.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import { backgroundRequests } from '../../domain/rate-budget/limits.ts';
import type { Project } from '../../ports/control-api.ts';
import type { JobHandler } from '../../ports/job-queue.ts';
import type { CurrentRules } from '../rules.ts';
import { reportListing } from '../telemetry/outages.ts';
import { requestReconcile, type TriggerDeps } from '../triggers.ts';
import { isHerdNear } from './at-boundary.ts';
import { type FreshProjectDeps, type ProjectList, readInTurn, readProjectList } from './cached-projects.ts';
import type { Fleet } from './fleet.ts';
import { checkProjectExists, type ForgetProjectDeps, forgetProject } from './forget-project.ts';
import { compareList, includesListed } from './project-list.ts';
import type { SharedReadings } from './stored-readings.ts';

const CONCURRENT_READS = 8;

/** A project is forgotten once it has been gone for this long, in real milliseconds. */
const FORGET_GONE_AFTER_MS = 10_000;

export interface InventoryDeps extends FreshProjectDeps, ForgetProjectDeps, TriggerDeps {
  /** Absent: no other daemon has the store. */
  sharedReadings?: SharedReadings;
  /** Adopts a project that another daemon has read. Returns true if nothing is to be done or recorded. */
  adoptsSettled(projectId: string): Promise<boolean>;
  /** Intervals in real milliseconds: between readings of the list of projects, and of the resync loop. */
  rhythm: { inventoryMs: number; resyncMs: number };
}

/**
 * Keeps the cached projects up to date with few requests. Projects that the list shows as changed are read at once. Of the others, the oldest
 * readings are renewed, as many as the background's share of the rate budget allows.
 */
export function createInventory(deps: InventoryDeps): JobHandler {
  return async (_job, signal) => {
    await takeInventory(deps, signal);
    return { kind: 'done' };
  };
}

/**
 * Runs one round, and requests a reconcile of the projects that were read. A project that is no longer listed, though its account was listed
 * completely, is checked, and forgotten if it is gone.
 */
export async function takeInventory(deps: InventoryDeps, signal: AbortSignal): Promise<void> {
  const list = await readProjectList(deps, { signal });
  if (signal.aborted) return;
  reportListing(deps, list);
  await forgetUnlisted(deps, list, signal);
  const { projects } = list;
  const due = await compareList(deps, list);
  const dueIds = new Set(due.map(({ projectId }) => projectId));
  const others = projects.filter(({ projectId }) => !dueIds.has(projectId));
  // An account without projects is surveyed too.
  const accounts = new Set([...deps.api.accountStatus(), ...projects].map(({ account }) => account));
  // Each account has its own rate limit, so accounts don't wait for each other.
  await Promise.all(
    [...accounts].map(async (account) => {
      const isOfAccount = (project: Project) => project.account === account;
      await readDue(deps, due.filter(isOfAccount), { askedAtMonotonicMs: list.askedAtMonotonicMs, signal });
      noteSurvey(deps, list, account, due.filter(isOfAccount));
      const background = isHerdNear(deps, deps.clock.now(), account)
        ? []
        : backgroundProjects(deps, others.filter(isOfAccount), list.askedAtMonotonicMs);
      await readAll(deps, background, { signal, priority: 'background' });
    }),
  );
}

/** Notes a complete list of the account, unless a project that the list shows as changed could not be read since. */
function noteSurvey(
  { fleet }: InventoryDeps,
  { projects, failures, askedAtMonotonicMs }: ProjectList,
  account: string,
  due: readonly Project[],
): void {
  const isRead = (project: Project) => {
    const cached = fleet.cachedProject(project.projectId);
    if (!cached) return false;
    return (
      cached.readAtMonotonicMs >= askedAtMonotonicMs || (cached.isShared === true && includesListed(cached, project))
    );
  };
  if (failures.has(account) || !due.every(isRead)) return;
  const listed = projects.filter((project) => project.account === account);
  fleet.surveys.set(account, { projectIds: new Set(listed.map(({ projectId }) => projectId)), askedAtMonotonicMs });
}

async function forgetUnlisted(
  deps: InventoryDeps,
  { projects, failures }: ProjectList,
  signal: AbortSignal,
): Promise<void> {
  const { fleet } = deps;
  const present = new Set(projects.map(({ projectId }) => projectId));
  for (const projectId of fleet.projectIds()) {
    if (present.has(projectId)) fleet.goneSinceMonotonicMs.delete(projectId);
    else if (!failures.has(fleet.listed(projectId)?.account ?? '')) await forgetIfDeleted(deps, projectId, signal);
  }
}

/**
 * Forgets a project if the control API says twice, at least ten seconds apart, that it does not exist, and no list has it in between.
 * Absence from the list is not enough, since a baseline can't be recovered. Only projects that this daemon has seen are forgotten: with
 * another key, all projects would seem not to exist. If the key may no longer read a project, only this daemon's memory of it is dropped.
 */
async function forgetIfDeleted(deps: InventoryDeps, projectId: string, signal: AbortSignal): Promise<void> {
  const { fleet, clock } = deps;
  const state = await checkProjectExists(deps, projectId, signal);
  if (state === 'refused') fleet.forget(projectId);
  if (state !== 'gone') return void fleet.goneSinceMonotonicMs.delete(projectId);
  const sinceMs = fleet.goneSinceMonotonicMs.get(projectId);
  if (sinceMs === undefined) fleet.goneSinceMonotonicMs.set(projectId, clock.monotonicMs());
  else if (clock.monotonicMs() - sinceMs >= FORGET_GONE_AFTER_MS) await forgetProject(deps, projectId);
}

/**
 * Reads projects that are new or changed, unless they have been read since the list was requested: by another daemon, or by this one to
 * count an impact. A reading is stored before its reconcile is requested, since any daemon may get that job. A project whose reading another
 * daemon has stored is reconciled only if something is to be done or recorded.
 */
async function readDue(
  deps: InventoryDeps,
  projects: readonly Project[],
  { askedAtMonotonicMs, signal }: { askedAtMonotonicMs: number; signal: AbortSignal },
): Promise<void> {
  const { fleet, clock, store, sharedReadings, rhythm } = deps;
  const isRead = (projectId: string) =>
    (fleet.cachedProject(projectId)?.readAtMonotonicMs ?? Number.NEGATIVE_INFINITY) >= askedAtMonotonicMs;
  await pLimit(CONCURRENT_READS).map(projects, async (project) => {
    if (signal.aborted) return;
    const { projectId } = project;
    // In a large fleet a project's turn may come long after another daemon has read it.
    const maxAgeMs = () => Math.max(rhythm.resyncMs, clock.monotonicMs() - askedAtMonotonicMs);
    const isTaken = async () => (await sharedReadings?.take(project, maxAgeMs())) === true;
    if (!isRead(projectId) && !(await isTaken())) {
      const records = await store.records(projectId);
      if (!(await readInTurn(deps, project, { signal, priority: 'read', records, isTaken }))) return;
    }
    if (fleet.cachedProject(projectId)?.isShared && (await deps.adoptsSettled(projectId))) return;
    await sharedReadings?.share(projectId);
    await requestReconcile(deps, projectId);
  });
}

async function readAll(
  deps: InventoryDeps,
  projects: readonly Project[],
  options: { signal: AbortSignal; priority: Priority },
): Promise<void> {
  await pLimit(CONCURRENT_READS).map(projects, async (project) => {
    if (options.signal.aborted || !(await readInTurn(deps, project, options))) return;
    await requestReconcile(deps, project.projectId);
  });
}

function backgroundProjects(
  { fleet, rhythm }: InventoryDeps,
  projects: readonly Project[],
  nowMonotonicMs: number,
): Project[] {
  const requests = backgroundRequests(rhythm.inventoryMs);
  const halfRoundMs = rhythm.inventoryMs / 2;
  // Half of the time that a background reading of all projects takes: after a start, no project is read a second time before that.
  const validMs = halfRoundMs * Math.max(1, projects.length / requests);
  const wasUsed = ({ projectId, computeLastActiveAtMs }: Project) =>
    Number(fleet.cachedProject(projectId)?.project.computeLastActiveAtMs !== computeLastActiveAtMs);
  const isOld = (project: Project) => {
    const readAtMonotonicMs = fleet.cachedProject(project.projectId)?.readAtMonotonicMs ?? 0;
    return readAtMonotonicMs <= nowMonotonicMs - (wasUsed(project) ? halfRoundMs : validMs);
  };
  return projects
    .filter(isOld)
    .toSorted((a, b) => wasUsed(b) - wasUsed(a) || fleet.ageMs(b.projectId) - fleet.ageMs(a.projectId))
    .slice(0, requests);
}

/** An account whose key shows a single project. */
interface NarrowKey {
  account: string;
  /** The number of policies that select no compute. */
  policies: number;
  message: string;
}

/**
 * Finds accounts whose key seems to be scoped to one project. The rest of such an account is invisible without an error, except that
 * policies select nothing. An account with a single project is not reported if all policies select something.
 */
export function narrowKeys(options: {
  projects: Iterable<Pick<Project, 'account' | 'projectId'>>;
  computes: readonly Compute[];
  policies: readonly Policy[];
}): NarrowKey[] {
  const { projects, computes, policies } = options;
  const selectsNothing = ({ select }: Policy) => {
    const matches = compileSelector(select);
    // Computes that are too young now will be selected later.
    return computes.every((compute) => matches(compute, AT_ANY_AGE) === 'no');
  };
  const unusedPolicies = policies.filter(selectsNothing).length;
  if (unusedPolicies === 0) return [];
  const listed = [...projects];
  const accounts = [...new Set(listed.map(({ account }) => account))];
  return accounts.flatMap((account) => {
    const [only, ...more] = listed.filter((project) => project.account === account);
    if (only === undefined || more.length > 0) return [];
    const message = `the key of account ${account} shows one project, ${only.projectId}, and ${unusedPolicies} of ${policies.length} policies select nothing: if the account has more projects, the key is scoped to this one; use a key of the organization`;
    return [{ account, policies: unusedPolicies, message }];
  });
}

/** Finds the narrow keys ({@link narrowKeys}) by the daemon's view of the fleet. */
export function currentNarrowKeys({ fleet, rules }: { fleet: Fleet; rules: CurrentRules }): NarrowKey[] {
  return narrowKeys({
    projects: fleet.projectIds().flatMap((projectId) => fleet.listed(projectId) ?? []),
    computes: [...fleet.cachedProjects()].flatMap(({ computes }) => computes),
    policies: rules.current.policies.set.policies,
  });
}
