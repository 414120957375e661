import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type {
  ApiResult,
  CallOptions,
  ControlApi,
  ControlApiError,
  ListOptions,
  Project,
} from '../../ports/control-api.ts';
import { type OutageDeps, type ReportListingDeps, reportApiError, reportListing } from '../telemetry/outages.ts';
import { type CachedProject, type Fleet, FRESH_MS } from './fleet.ts';
import { type ReadComputesDeps, type ReadOptions, readComputes } from './read-computes.ts';

/** A list of projects is not read again for this long, in real milliseconds: many triggers in a row may name projects that are gone. */
export const LIST_VALID_MS = 10_000;

/** How long names of projects are valid, in real milliseconds: two default intervals between lists. */
const NAMES_VALID_MS = 60_000;

export interface ReadProjectDeps extends ReadComputesDeps, OutageDeps {}

export interface FreshProjectDeps extends ReadProjectDeps, ReportListingDeps {}

/** Records that were read before a reading began: the reading includes their ended writes. */
interface KnownRecords {
  records?: ReadonlyMap<string, ComputeRecord>;
}

/**
 * Waits for a permit and reads a project; the deadline begins with the permit. `isTaken` is called once the permit is there: if it resolves to
 * true, it has cached the reading of another daemon, and nothing is read.
 */
export async function readInTurn(
  deps: ReadProjectDeps,
  project: Project,
  {
    isTaken,
    ...options
  }: CallOptions & KnownRecords & { signal: AbortSignal; priority: Priority; isTaken?: () => Promise<boolean> },
): Promise<CachedProject | undefined> {
  const permit = await deps.api.permit('listComputes', { ...options, account: project.account });
  try {
    if (await isTaken?.()) return deps.fleet.cachedProject(project.projectId);
    return await readProject(deps, project, { ...options, permit });
  } finally {
    permit.giveBack();
  }
}

/** Reads the computes of a project and caches them. Returns undefined if that fails, which is logged once. */
export async function readProject(
  deps: ReadProjectDeps,
  project: Project,
  options: CallOptions & KnownRecords,
): Promise<CachedProject | undefined> {
  const { projectId } = project;
  const answer = await readProjectQuietly(deps, project, options);
  if (answer.ok) {
    deps.outages.projectAnswers(project, 'read');
    deps.outages.computesUnreadable(projectId, answer.value.unreadable);
    return answer.value;
  }
  if (answer.error.code === 'malformed') invalidateReading(deps, projectId);
  // The inventory forgets a project that does not exist, with its stored records.
  if (answer.error.code !== 'not_found' && !options.signal?.aborted) reportApiError(deps, project, answer.error);
  return undefined;
}

/** Makes the cached reading too old to write from: the project must be read again, since lists no longer confirm this reading. */
export function invalidateReading({ fleet, clock }: Pick<ReadProjectDeps, 'fleet' | 'clock'>, projectId: string): void {
  const cached = fleet.cachedProject(projectId);
  if (!cached) return;
  const readAtMonotonicMs = Math.min(cached.readAtMonotonicMs, clock.monotonicMs() - FRESH_MS - 1);
  fleet.cache({ ...cached, readAtMs: 0, readAtMonotonicMs });
}

/** Reads like {@link readProject}, without logging. */
export async function readProjectQuietly(
  deps: ReadComputesDeps,
  project: Project,
  { records, ...options }: ReadOptions & KnownRecords,
): Promise<ApiResult<CachedProject>> {
  const { fleet, clock } = deps;
  const includedWrites = endedWrites(fleet, project.projectId, records);
  const beganAt = { readAtMs: clock.now(), readAtMonotonicMs: clock.monotonicMs(), includedWrites };
  const answer = await readComputes(deps, project, options);
  if (!answer.ok) return answer;
  return { ok: true, value: fleet.cache({ project, ...answer.value, ...beganAt }) };
}

/** Returns when the last write of each compute was sent, by compute id, for computes without a pending write; milliseconds since the epoch. */
function endedWrites(
  fleet: Fleet,
  projectId: string,
  records: ReadonlyMap<string, ComputeRecord> = new Map(),
): Map<string, number> {
  const computeIds = (fleet.cachedProject(projectId)?.computes ?? []).map(({ computeId }) => computeId);
  const writes = new Map<string, number>();
  for (const computeId of new Set([...computeIds, ...records.keys()])) {
    const { intent, lastSentAtMs } = records.get(computeId) ?? fleet.latestEvaluation(computeId)?.record ?? {};
    if (intent === undefined && lastSentAtMs !== undefined) writes.set(computeId, lastSentAtMs);
  }
  return writes;
}

export interface ProjectList {
  projects: Project[];
  /** Errors of accounts that could not be listed completely, by account: none of their projects may be considered gone. */
  failures: Map<string, ControlApiError>;
  /** When the list was requested: by the clock, and by its monotonic time. */
  askedAtMs: number;
  askedAtMonotonicMs: number;
}

/**
 * Lists the projects of all accounts, or of one, as far as possible, and keeps their entries. A project that two accounts can see stays with
 * its account even while that account can't be listed, since policies select by account.
 */
export async function readProjectList(
  { api, fleet, clock }: { api: ControlApi; fleet: Fleet; clock: Clock },
  options: ListOptions,
): Promise<ProjectList> {
  const { account: onlyAccount } = options;
  const askedAt = { askedAtMs: clock.now(), askedAtMonotonicMs: clock.monotonicMs() };
  const found: Project[] = [];
  const failures: ProjectList['failures'] = new Map();
  for await (const page of api.listProjects(options)) {
    if (page.ok) found.push(...page.value);
    else failures.set(page.error.account ?? '', page.error);
  }
  const projects = found.filter(({ projectId, account }) => {
    const listedAccount = fleet.listed(projectId)?.account ?? account;
    return listedAccount === account || (onlyAccount === undefined && !failures.has(listedAccount));
  });
  for (const project of projects) fleet.list(project, askedAt.askedAtMonotonicMs);
  if (!options.signal?.aborted) noteListed(fleet, onlyAccount, failures);
  // Set after the answer: until then, the names are those of the previous list.
  if (onlyAccount === undefined && !options.signal?.aborted)
    fleet.listAskedAtMonotonicMs = Math.max(fleet.listAskedAtMonotonicMs, askedAt.askedAtMonotonicMs);
  return { projects, failures, ...askedAt };
}

/** Notes which accounts were never listed completely since the first list of all. One that was, once, stays listed although a later list fails. */
function noteListed(fleet: Fleet, onlyAccount: string | undefined, failures: ProjectList['failures']): void {
  if (onlyAccount === undefined) fleet.unlistedAccounts ??= new Set(failures.keys());
  for (const account of fleet.unlistedAccounts ?? [])
    if ((onlyAccount ?? account) === account && !failures.has(account)) fleet.unlistedAccounts?.delete(account);
}

/** The list that {@link findProject} is reading, by fleet: other callers wait for it. Resolves to false if the reading was stopped. */
const runningLists = new WeakMap<Fleet, Promise<boolean>>();

/**
 * Returns the listed project. Reads the list if the project is unknown, or if its name may be old: another daemon of the group may have found
 * the project, or its new name, first. While the list is being read, waits for it, so that an old name is not returned.
 */
export async function findProject(
  deps: FreshProjectDeps,
  projectId: string,
  options: CallOptions & KnownRecords,
): Promise<Project | undefined> {
  const { fleet, clock } = deps;
  const { records, ...callOptions } = options;
  const listed = fleet.listed(projectId);
  const isListFresh = clock.monotonicMs() - fleet.listAskedAtMonotonicMs < LIST_VALID_MS;
  if (isListFresh || (listed && !isNameInDoubt(deps, listed, records))) return listed;
  const running = runningLists.get(fleet);
  if (running !== undefined) {
    const isRead = await running.catch(() => false);
    // If the caller that reads the list was stopped, this one reads it.
    return isRead || options.signal?.aborted ? fleet.listed(projectId) : findProject(deps, projectId, options);
  }
  const reading = readAndReportList(deps, callOptions).finally(() => runningLists.delete(fleet));
  runningLists.set(fleet, reading);
  await reading;
  return fleet.listed(projectId);
}

/** Returns false if the signal stopped the reading. */
async function readAndReportList(deps: FreshProjectDeps, options: CallOptions): Promise<boolean> {
  const list = await readProjectList(deps, options);
  if (options.signal?.aborted) return false;
  reportListing(deps, list);
  return true;
}

/**
 * Returns true if this name of a project may be old: this daemon's list or a record has another name, or the list is more than a minute old,
 * since another daemon reads the inventory. Names matter because policies select by them, and only the list has them.
 */
export function isNameInDoubt(
  { fleet, clock }: { fleet: Fleet; clock: Pick<Clock, 'monotonicMs'> },
  { projectId, account, name, nameUnknown }: Project,
  records: ReadonlyMap<string, ComputeRecord> = new Map(),
): boolean {
  if (nameUnknown) return false;
  if ((fleet.listed(projectId)?.name ?? name) !== name) return true;
  const listedAtMonotonicMs = Math.max(
    fleet.listAskedAtMonotonicMs,
    fleet.listComparedAtMonotonicMs.get(account) ?? Number.NEGATIVE_INFINITY,
  );
  // A list of many pages confirms each project by its page.
  const ageMs = Math.min(clock.monotonicMs() - listedAtMonotonicMs, fleet.confirmedAgeMs(projectId));
  if (ageMs < LIST_VALID_MS) return false;
  return ageMs > NAMES_VALID_MS || [...records.values()].some(({ projectName = name }) => projectName !== name);
}
