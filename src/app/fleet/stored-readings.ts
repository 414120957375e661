/**
 * Takes readings that another process has stored, which saves requests. Decisions use them at once. Before a change is written from such a
 * reading, a list that this daemon has requested later must confirm the reading: see {@link CachedProject.isShared}.
 */
import pLimit from 'p-limit';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import { readReadings, type SharedFleet } from '../readings/read-readings.ts';
import { digestOf, parseReading, readingCollection, type SharedReading } from '../readings/reading.ts';
import type { CurrentRules } from '../rules.ts';
import type { CachedProject, Fleet } from './fleet.ts';
import { includesListed } from './project-list.ts';
import { needsBranches } from './read-computes.ts';

/** How many projects' records are read concurrently at the start. */
const CONCURRENT_RECORDS = 16;

/** A reading is not taken if it was last confirmed more than this many resync intervals ago: a survey may be stored one interval late. */
const VALID_RESYNCS = 2;

export interface StoredReadingsDeps {
  fleet: Fleet;
  clock: Pick<Clock, 'now' | 'monotonicMs'>;
  store: Pick<Store, 'documents' | 'document' | 'timeMs' | 'records'>;
  rules: CurrentRules;
  rhythm: { resyncMs: number };
}

/** Stored readings, read before the list of projects that may confirm them. */
export interface LoadedReadings {
  shared: SharedFleet;
  /** Converts an instant of the store's clock to monotonic time; the result may be early, but never late. */
  toMonotonicMs(storeMs: number): number;
}

/** Reads all stored readings, in pages. */
export async function loadReadings({ store, clock }: StoredReadingsDeps): Promise<LoadedReadings> {
  const toMonotonicMs = await fromStoreClock({ store, clock });
  return { shared: await readReadings(store), toMonotonicMs };
}

/**
 * Caches the stored readings of projects that the list shows unchanged since their reading, and returns how many. The list must have been
 * requested after the readings were loaded. Projects that this daemon has read stay as they are.
 */
export async function takeLoaded(
  deps: StoredReadingsDeps,
  { shared, toMonotonicMs }: LoadedReadings,
  { projects, apiUrl }: { projects: readonly Project[]; apiUrl: string },
): Promise<number> {
  const { fleet, store } = deps;
  const surveys = surveyedProjects(shared, apiUrl);
  let taken = 0;
  await pLimit(CONCURRENT_RECORDS).map(projects, async (listed) => {
    const { projectId, account } = listed;
    const reading = shared.readings.get(projectId);
    const survey = surveys.get(account);
    const isCached = () => fleet.cachedProject(projectId) !== undefined;
    if (!reading || survey === 'other API' || isCached()) return;
    const times = timesOf(deps, reading, { survey, atMs: shared.atMs });
    const cached = times && cachedFrom(deps, reading, times, toMonotonicMs);
    // Only an equal `updated_at` proves that nothing has changed: clocks may have been set, so that a reading wrongly seems to be later.
    const isUnchanged = reading.project.updatedAtMs === listed.updatedAtMs;
    if (!cached || !isUnchanged || !isUsableFor(deps, reading, listed) || !includesListed(cached, listed)) return;
    if (!includesLastWrites(cached, await store.records(projectId)) || isCached()) return;
    keep(deps, cached);
    taken += 1;
  });
  return taken;
}

interface ReadingTimes {
  /** When the stored reading began. */
  beganAtMs: number;
  /** When the latest reading with the same content began, as far as known. */
  readAtMs: number;
}

/** Returns when a reading was made, by the store's clock; undefined if it was confirmed too long ago, or if the store's clock was set back. */
function timesOf(
  { rhythm }: StoredReadingsDeps,
  { project: { projectId }, readAtMs: beganAtMs }: SharedReading,
  { survey, atMs }: { survey: Surveyed | undefined; atMs: number },
): ReadingTimes | undefined {
  const { listedAtMs = 0, oldestReadAtMs = 0 } = survey?.projectIds.has(projectId) ? survey : {};
  const ageMs = atMs - Math.max(beganAtMs, listedAtMs);
  if (ageMs < 0 || ageMs > VALID_RESYNCS * rhythm.resyncMs) return undefined;
  return { beganAtMs, readAtMs: Math.max(beganAtMs, oldestReadAtMs) };
}

/** Other daemons' readings of single projects. */
export interface SharedReadings {
  /**
   * Caches the stored reading of a listed project and returns true, if the reading began at most `maxAgeMs` ago by the store's clock, includes
   * what the list shows and the last writes, and is newer than this daemon's own.
   */
  take(listed: Project, maxAgeMs: number): Promise<boolean>;
  /** Stores this daemon's reading of a project at once, before another daemon needs it. Never rejects. */
  share(projectId: string): Promise<void>;
}

export function createSharedReadings(
  deps: StoredReadingsDeps & { writer: { write(projectId: string): Promise<void> } },
): SharedReadings {
  const { fleet, store, clock } = deps;
  return {
    async take(listed, maxAgeMs) {
      const { projectId } = listed;
      const text = await store.document(readingCollection(projectId), projectId);
      const reading = text === undefined ? undefined : parseReading(text);
      if (!reading || !isUsableFor(deps, reading, listed)) return false;
      // After a clock was set back, an older reading could seem newer than a person's change.
      if (reading.project.updatedAtMs < listed.updatedAtMs) return false;
      const times = { beganAtMs: reading.readAtMs, readAtMs: reading.readAtMs };
      const cached = cachedFrom(deps, reading, times, await fromStoreClock(deps));
      const ageMs = clock.monotonicMs() - cached.readAtMonotonicMs;
      if (ageMs < 0 || ageMs > maxAgeMs || !includesListed(cached, listed)) return false;
      if (!includesLastWrites(cached, await store.records(projectId))) return false;
      const own = fleet.cachedProject(projectId);
      if (own && own.readAtMonotonicMs >= cached.readAtMonotonicMs) return false;
      keep(deps, cached);
      return true;
    },
    // A reading that could not be written is written by the next round.
    share: (projectId) => deps.writer.write(projectId).catch(() => {}),
  };
}

/**
 * Returns true if a reading began after the last write of each compute had ended, whichever daemon sent it, and no write is pending. Clocks are
 * not compared, since they may differ.
 */
export function includesLastWrites(
  { computes, includedWrites }: Pick<CachedProject, 'computes' | 'includedWrites'>,
  records: ReadonlyMap<string, ComputeRecord>,
): boolean {
  const isRead = (id: string) => computes.some(({ computeId }) => computeId === id);
  return [...records].every(([computeId, { intent, lastSentAtMs, absentSinceMs }]) => {
    if (absentSinceMs !== undefined) return !isRead(computeId);
    return intent === undefined && isRead(computeId) && includedWrites?.get(computeId) === lastSentAtMs;
  });
}

/** Returns a conversion from the store's clock to monotonic time. Its results are early by the duration of the store's answer, never late. */
async function fromStoreClock({
  store,
  clock,
}: Pick<StoredReadingsDeps, 'clock'> & { store: Pick<Store, 'timeMs'> }): Promise<(storeMs: number) => number> {
  const askedAtMonotonicMs = clock.monotonicMs();
  const leadMs = (await store.timeMs()) - askedAtMonotonicMs;
  return (storeMs) => storeMs - leadMs;
}

interface Surveyed {
  projectIds: ReadonlySet<string>;
  listedAtMs: number;
  oldestReadAtMs?: number;
}

/** Returns the last survey of each account, with its projects, or `other API` if the survey is of another control API. */
function surveyedProjects({ accounts, lists }: SharedFleet, apiUrl: string): Map<string, Surveyed | 'other API'> {
  const surveyed = new Map<string, Surveyed | 'other API'>();
  for (const [account, survey] of accounts) {
    const projectIds = lists.get(account) ?? [];
    if (survey.apiUrl !== apiUrl) surveyed.set(account, 'other API');
    else if (survey.projects === digestOf(projectIds))
      surveyed.set(account, { ...survey, projectIds: new Set(projectIds) });
  }
  return surveyed;
}

function cachedFrom(
  { clock }: StoredReadingsDeps,
  { project, computes, unreadable, includedWrites }: SharedReading,
  times: ReadingTimes,
  toMonotonicMs: LoadedReadings['toMonotonicMs'],
): CachedProject {
  const readAtMonotonicMs = toMonotonicMs(times.readAtMs);
  const readAtMs = clock.now() - (clock.monotonicMs() - toMonotonicMs(times.beganAtMs));
  return { project, computes, unreadable, includedWrites, readAtMs, readAtMonotonicMs, isShared: true };
}

/** Returns true if the reading is of the listed project and has the names of branches, where policies or owners need them. */
function isUsableFor(
  { rules }: StoredReadingsDeps,
  { project, computes, branchesRefused }: SharedReading,
  listed: Project,
): boolean {
  const { account, name, nameUnknown } = project;
  if (account !== listed.account || name !== listed.name || nameUnknown !== listed.nameUnknown) return false;
  return !needsBranches(rules) || !(branchesRefused || computes.some(({ branchName }) => branchName === undefined));
}

function keep({ fleet, rules }: StoredReadingsDeps, cached: CachedProject): void {
  const { project, computes } = cached;
  if (needsBranches(rules)) {
    const branches = new Map(
      computes.map(({ branchId, branchName: name = '', branchRoles: roles = [] }) => [branchId, { name, roles }]),
    );
    // The time at which branches were read is not stored, so they are read again before a change that depends on them.
    const readAtMonotonicMs = Number.NEGATIVE_INFINITY;
    fleet.branches.set(project.projectId, { branches, projectUpdatedAtMs: project.updatedAtMs, readAtMonotonicMs });
  }
  fleet.cache(cached);
}
