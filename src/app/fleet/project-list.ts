/**
 * Compares the list of projects with the cached projects. The list is a cheap way to notice changes, provided that a change of a compute moves
 * the `updated_at` of its project. Whether it does is not documented, so ebb learns this for each account from its own changes.
 */
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { SECOND_MS } from '../../domain/time/units.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ProjectList } from './cached-projects.ts';
import { type CachedProject, DOUBTED, type Fleet } from './fleet.ts';

/** A reading includes a listed change if it began at least this long after the change's instant, in milliseconds: lists have whole seconds. */
const LIST_DELAY_MS = 2_000;

/** How far Neon's clock may be off from ours, in milliseconds. */
const CLOCK_TOLERANCE_MS = 3_000;

/** How many of the most recently changed projects are checked for changes of other daemons. */
const MAX_CHECKED_PROJECTS = 20;

export interface CompareListDeps {
  fleet: Fleet;
  store: Pick<Store, 'records'>;
  telemetry: Pick<Telemetry, 'log'>;
}

/**
 * Compares a list with the cached projects. In accounts whose list shows changes, it confirms the readings of unchanged projects. Returns
 * the projects to read: new ones, and those that somebody else changed after they were read.
 */
export async function compareList(
  deps: CompareListDeps,
  { projects, failures, askedAtMs, askedAtMonotonicMs }: ProjectList,
): Promise<Project[]> {
  const { fleet } = deps;
  for (const project of projects) learnFromOwnChange(deps, project, askedAtMs);
  await learnFromRecords(deps, projects, askedAtMs);
  const due: Project[] = [];
  for (const project of projects) {
    const cached = fleet.cachedProject(project.projectId);
    if (!cached || (await isChangedByOthers(deps, cached, project, askedAtMonotonicMs))) due.push(project);
  }
  for (const account of new Set(projects.map((project) => project.account))) {
    const beforeMs = fleet.listComparedAtMonotonicMs.get(account) ?? Number.NEGATIVE_INFINITY;
    if (!failures.has(account)) fleet.listComparedAtMonotonicMs.set(account, Math.max(beforeMs, askedAtMonotonicMs));
  }
  return due;
}

/** Confirms the cached reading if an entry of the list shows the project unchanged. Returns true if so. Who has changed it is found out later. */
export function confirmByEntry(fleet: Fleet, project: Project, askedAtMonotonicMs: number): boolean {
  const cached = fleet.cachedProject(project.projectId);
  if (cached?.project.account !== project.account || !isAsRead(cached, project)) return false;
  confirm(fleet, cached, project, askedAtMonotonicMs);
  return true;
}

/** Confirms the cached reading of an unchanged project where the account's list shows changes. */
function confirm(fleet: Fleet, cached: CachedProject, project: Project, askedAtMonotonicMs: number): void {
  cached.project = project;
  // The list can't confirm a reading that another process made after the list was requested.
  const mayConfirm = cached.isShared === undefined || askedAtMonotonicMs >= cached.readAtMonotonicMs;
  if (mayConfirm && fleet.listShowsChanges.get(project.account) === true)
    fleet.confirm(project.projectId, askedAtMonotonicMs);
}

/** Returns true if somebody else has changed the project since it was read. Also confirms the cached reading, or marks it as doubted. */
async function isChangedByOthers(
  deps: CompareListDeps,
  cached: CachedProject,
  project: Project,
  askedAtMonotonicMs: number,
): Promise<boolean> {
  const { fleet } = deps;
  const { projectId, updatedAtMs } = project;
  const { project: before } = cached;
  if (isAsRead(cached, project)) {
    confirm(fleet, cached, project, askedAtMonotonicMs);
    return false;
  }
  const isRenamed = before.name !== project.name;
  const isUpdated = isRenamed || before.updatedAtMs !== updatedAtMs;
  const isOwn = isUpdated && !isRenamed && (await isOwnChange(deps, project));
  // The next comparison need not check this change again.
  if (isOwn) cached.project = project;
  const isOthers = isUpdated ? !isOwn : wasUsed(before, project);
  if (isOthers) fleet.confirm(projectId, DOUBTED);
  return isUpdated && isOthers;
}

/** Returns true if the list shows the project as it was read. */
export function isAsRead(cached: CachedProject, project: Project): boolean {
  const { isShared, project: before } = cached;
  // The clock of another process may have been set: its reading counts as unchanged only if `updated_at` is equal.
  const isComparable = isShared === undefined || before.updatedAtMs === project.updatedAtMs;
  return before.name === project.name && isComparable && includesListed(cached, project);
}

/** Returns true if the reading began after everything that the list shows. */
export function includesListed(
  { readAtMs, project: before }: Pick<CachedProject, 'readAtMs' | 'project'>,
  now: Project,
): boolean {
  const activeAtMs = wasUsed(before, now) ? (now.computeLastActiveAtMs ?? 0) : 0;
  return readAtMs >= Math.max(now.updatedAtMs, activeAtMs) + LIST_DELAY_MS;
}

function wasUsed(before: Project, now: Project): boolean {
  return (now.computeLastActiveAtMs ?? 0) !== (before.computeLastActiveAtMs ?? 0);
}

/**
 * Returns true if a record shows that the last change of a project was a daemon's write or the end of its operation. While an operation is open,
 * this is assumed, since the project is read at its end.
 */
async function isOwnChange(deps: CompareListDeps, project: Project): Promise<boolean> {
  const { updatedAtMs } = project;
  const hasEndedThen = ({ operationEndedAtMs = 0 }: ComputeRecord) =>
    Math.abs(updatedAtMs - operationEndedAtMs) < SECOND_MS;
  return anyRecord(
    deps,
    project,
    (record) => record.openOperations.length > 0 || hasEndedThen(record) || wasSentAt(record, updatedAtMs),
  );
}

/** Returns true if the last write of a compute was sent at this instant, within the tolerance for clocks; milliseconds since the epoch. */
function wasSentAt({ lastSentAtMs = 0 }: ComputeRecord, instantMs: number): boolean {
  return Math.abs(instantMs - lastSentAtMs) <= CLOCK_TOLERANCE_MS;
}

/** Returns true if a record of the project passes the test: one that this daemon has, or a stored one, which another daemon may have written. */
async function anyRecord(
  { store, fleet }: CompareListDeps,
  { projectId }: Project,
  test: (record: ComputeRecord) => boolean,
): Promise<boolean> {
  if (fleet.ownEvaluations(projectId).some(({ record }) => test(record))) return true;
  return [...(await store.records(projectId)).values()].some(test);
}

/**
 * Learns from recorded writes of other daemons, or of this one before a restart: if the list shows one of these writes, it shows changes. If the
 * list shows none, nothing follows, since they may have been refused.
 */
async function learnFromRecords(deps: CompareListDeps, projects: readonly Project[], askedAtMs: number): Promise<void> {
  const { listShowsChanges } = deps.fleet;
  const unknown = projects.filter(({ account }) => !listShowsChanges.has(account));
  const newest = unknown.toSorted((a, b) => b.updatedAtMs - a.updatedAtMs).slice(0, MAX_CHECKED_PROJECTS);
  for (const project of newest) {
    if (listShowsChanges.has(project.account) || askedAtMs < project.updatedAtMs + LIST_DELAY_MS) continue;
    const isShown = await anyRecord(deps, project, (record) => wasSentAt(record, project.updatedAtMs));
    if (isShown) setListShowsChanges(deps, project.account, true);
  }
}

/**
 * Learns from this daemon's last change of a project whether the account's list shows changes. If the change is missing after
 * {@link LIST_DELAY_MS}, the list is no longer relied on.
 */
export function learnFromOwnChange(
  deps: CompareListDeps,
  { account, projectId, updatedAtMs }: Project,
  askedAtMs: number,
): void {
  const { fleet } = deps;
  const changedAtMs = fleet.changedAtMs.get(projectId);
  if (changedAtMs === undefined || askedAtMs < changedAtMs + LIST_DELAY_MS) return;
  fleet.changedAtMs.delete(projectId);
  setListShowsChanges(deps, account, updatedAtMs >= changedAtMs - CLOCK_TOLERANCE_MS);
}

function setListShowsChanges({ fleet, telemetry }: CompareListDeps, account: string, isShown: boolean): void {
  const before = fleet.listShowsChanges.get(account);
  if (before === false || before === isShown) return;
  fleet.listShowsChanges.set(account, isShown);
  const fields = { event: 'ebb.list_shows_changes', account, shows: isShown };
  const list = `the project list of account ${account}`;
  if (isShown)
    telemetry.log.info(fields, `${list} shows changes: what it shows unchanged is not read again before a change`);
  else telemetry.log.warn(fields, `${list} does not show a change in time: computes are read singly before a change`);
}
