import pLimit from 'p-limit';
import type { Clock } from '../../ports/clock.ts';
import type { Project } from '../../ports/control-api.ts';
import type { DocumentStore, Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import { deleteReadings, readingsIn } from '../readings/read-readings.ts';
import {
  digestOf,
  LISTS_COLLECTION,
  listText,
  parseReading,
  parseSurvey,
  READING_COLLECTIONS,
  readingCollection,
  readingText,
  type SharedReading,
  SURVEYS_COLLECTION,
  surveyText,
} from '../readings/reading.ts';
import { isAtBoundary } from './at-boundary.ts';
import type { CachedProject, Fleet, Survey } from './fleet.ts';

/** Documents that are compared or written concurrently: few, since reconciles use the same store. */
const CONCURRENT_DOCUMENTS = 4;

/** Rounds from one list of projects to the next. */
const ROUNDS_PER_LIST = 3;

/** How long a boundary may hold up the writing of readings, in real milliseconds. */
const MAX_YIELD_MS = 60_000;

/** Shortest interval between comparisons of all stored readings with this daemon's memory, in real milliseconds. */
const SWEEP_MS = 600_000;

export interface WriteReadingsDeps {
  fleet: Pick<Fleet, 'cachedProject' | 'cachedProjects' | 'surveys' | 'branches' | 'boundaryReconciles'>;
  store: DocumentStore & Pick<Store, 'timeMs' | 'deleteUsage'>;
  clock: Clock;
  /** Knows when the store last lost its data, milliseconds since the epoch. */
  storeWatch: { lostAtMs(): number | undefined };
  apiUrl: string;
  runInBackground: RunInBackground;
  /** Interval between readings of the list of projects, in real milliseconds. */
  rhythm: { inventoryMs: number };
}

/** A reading as it was last compared with the store. */
interface Compared {
  computes: CachedProject['computes'];
  /** When the reading began, in monotonic time. */
  readAtMonotonicMs: number;
  /** When the reading began, by the store's clock, milliseconds since the epoch. */
  readAtMs: number;
  /** The encoded reading without its time. */
  content: string;
  /** The project's `updated_at` in the reading. */
  updatedAtMs: number;
}

/** Converts an instant of the monotonic clock to the store's clock. */
type ToStoreMs = (monotonicMs: number) => number;

/** Writes this daemon's readings of projects to the store, in the background, and exchanges what lists show with other daemons. */
export function startWritingReadings(
  deps: Pick<WriteReadingsDeps, 'clock' | 'rhythm' | 'runInBackground'> & {
    writer: Pick<ReadingsWriter, 'round'>;
    listFacts: { exchange(): Promise<void> };
  },
): Running {
  const { writer, listFacts } = deps;
  return deps.clock.every(deps.rhythm.inventoryMs / ROUNDS_PER_LIST, () =>
    deps.runInBackground('readings', async () => {
      try {
        await listFacts.exchange();
      } finally {
        await writer.round();
      }
    }),
  );
}

export type WriterDeps = Omit<WriteReadingsDeps, 'runInBackground' | 'rhythm'>;

/** The readings and surveys that this daemon has compared with the store, by project id and by account; empty after a start. */
interface Memory {
  /** When the store last lost its data, as known at the last round, milliseconds since the epoch. */
  lostAtMs: number | undefined;
  compared: Map<string, Compared>;
  surveys: Map<string, Survey>;
}

export interface ReadingsWriter {
  /** Writes the readings with new content, and then the surveys since the last round. */
  round(): Promise<void>;
  /** Writes the reading of a project at once, if it is new. */
  write(projectId: string): Promise<void>;
}

/** Creates the writer. A project that a list shows unchanged costs nothing in the store. */
export function createReadingsWriter(deps: WriterDeps): ReadingsWriter {
  const { fleet, clock, storeWatch } = deps;
  const memory: Memory = { lostAtMs: storeWatch.lostAtMs(), compared: new Map(), surveys: new Map() };
  let doneAtMonotonicMs = Number.NEGATIVE_INFINITY;
  let sweptAtMonotonicMs = Number.NEGATIVE_INFINITY;

  return {
    async round() {
      const nowMonotonicMs = clock.monotonicMs();
      if (isAtBoundary(fleet, clock.now()) && nowMonotonicMs - doneAtMonotonicMs < MAX_YIELD_MS) return;
      doneAtMonotonicMs = nowMonotonicMs;
      const lostAtMs = storeWatch.lostAtMs();
      if (lostAtMs !== memory.lostAtMs) forgetAll(memory, lostAtMs);
      // The surveys are taken first, so that each reading that was made for one of them is written before it.
      const surveys = [...fleet.surveys].filter(([account, survey]) => memory.surveys.get(account) !== survey);
      if (surveys.length > 0 && nowMonotonicMs - sweptAtMonotonicMs >= SWEEP_MS) {
        await sweep(deps, memory);
        sweptAtMonotonicMs = nowMonotonicMs;
      }
      const uncompared = [...fleet.cachedProjects()].filter((cached) => mustCompare(deps, memory, cached));
      if (uncompared.length + surveys.length === 0) return;
      const toStoreMs = await readStoreClock(deps);
      await pLimit(CONCURRENT_DOCUMENTS).map(uncompared, (cached) => write(deps, memory, cached, toStoreMs));
      for (const [account, survey] of surveys) await writeSurvey(deps, memory, { account, survey, toStoreMs });
    },
    async write(projectId) {
      const cached = fleet.cachedProject(projectId);
      if (cached && mustCompare(deps, memory, cached)) await write(deps, memory, cached, await readStoreClock(deps));
    },
  };
}

/** After a loss of the store's data, everything is written again: commands would miss each project until its next reading. */
function forgetAll(memory: Memory, lostAtMs: number | undefined): void {
  memory.lostAtMs = lostAtMs;
  memory.compared.clear();
  memory.surveys.clear();
}

/**
 * Returns true if a reading must be compared with the store. A reading that was compared before, was invalidated, was taken from the store, or
 * whose project is not listed need not be. A later `updated_at` in the list makes another comparison necessary: a daemon that starts takes only
 * readings with the `updated_at` of the list.
 */
function mustCompare(
  { fleet }: WriterDeps,
  { lostAtMs, compared }: Memory,
  { project, computes, readAtMs, readAtMonotonicMs, isShared }: CachedProject,
): boolean {
  // A reading that was taken from the store is compared only after the store has lost its data.
  if (isShared === true && (lostAtMs === undefined || compared.has(project.projectId))) return false;
  // A project that was read after the last list, which lacks it, has been listed by another daemon since.
  const isNewer = readAtMonotonicMs > (fleet.surveys.get(project.account)?.askedAtMonotonicMs ?? 0);
  if (readAtMs === 0 || (!isNewer && isUnlisted(fleet, project))) return false;
  const last = compared.get(project.projectId);
  if (!last || readAtMonotonicMs > last.readAtMonotonicMs) return true;
  if (readAtMonotonicMs < last.readAtMonotonicMs) return false;
  return computes !== last.computes || project.updatedAtMs !== last.updatedAtMs;
}

function isUnlisted({ surveys }: WriterDeps['fleet'], { account, projectId }: Project): boolean {
  return surveys.get(account)?.projectIds.has(projectId) === false;
}

/** Stores a reading, unless the stored one is newer or equal. If another daemon writes at the same time, the next round compares again. */
async function write(
  deps: WriterDeps,
  { compared }: Memory,
  cached: CachedProject,
  toStoreMs: ToStoreMs,
): Promise<void> {
  const { store } = deps;
  const { computes, readAtMonotonicMs } = cached;
  const { projectId } = cached.project;
  const last = compared.get(projectId);
  const readAtMs = last?.readAtMonotonicMs === readAtMonotonicMs ? last.readAtMs : toStoreMs(readAtMonotonicMs);
  const reading = sharedReading(deps, cached, readAtMs);
  const content = contentOf(reading);
  const collection = readingCollection(projectId);
  const was = await store.document(collection, projectId);
  const stored = was === undefined ? undefined : parseReading(was);
  const isKept = stored !== undefined && (stored.readAtMs > readAtMs || contentOf(stored) === content);
  if (!isKept && !(await store.replaceDocument(collection, projectId, { was, text: readingText(reading) }))) return;
  const { updatedAtMs } = cached.project;
  compared.set(projectId, { computes, readAtMonotonicMs, readAtMs, content, updatedAtMs });
}

/** Stores a survey, after the readings that were made for it. */
async function writeSurvey(
  { fleet, store, apiUrl }: WriterDeps,
  { compared, surveys }: Memory,
  { account, survey, toStoreMs }: { account: string; survey: Survey; toStoreMs: ToStoreMs },
): Promise<void> {
  const isFirst = !surveys.has(account);
  const gone = [...(surveys.get(account)?.projectIds ?? [])].filter((id) => !survey.projectIds.has(id));
  await deleteReadings(store, gone);
  for (const projectId of gone) compared.delete(projectId);
  surveys.set(account, survey);
  const was = await store.document(SURVEYS_COLLECTION, account);
  const listedAtMs = toStoreMs(survey.askedAtMonotonicMs);
  // Another daemon may have been the leader since.
  if ((parseSurvey(was ?? '')?.listedAtMs ?? 0) >= listedAtMs) return;
  const readAts = [...survey.projectIds].flatMap((id) => fleet.cachedProject(id)?.readAtMonotonicMs ?? []);
  // No spread here: a fleet may have more projects than a call may have arguments.
  const oldest = readAts.length > 0 && { oldestReadAtMs: toStoreMs(readAts.reduce((a, b) => Math.min(a, b))) };
  const projects = digestOf(survey.projectIds);
  // The list first: the survey has its digest.
  if (parseSurvey(was ?? '')?.projects !== projects || isFirst) {
    await store.putDocument(LISTS_COLLECTION, account, listText(survey.projectIds));
  }
  const text = surveyText({ apiUrl, listedAtMs, projects, ...oldest });
  await store.replaceDocument(SURVEYS_COLLECTION, account, { was, text });
}

/**
 * Deletes stored readings of projects that are not listed. Forgets compared readings that the store does not have any more, so that they are
 * written again: the store may have come back empty or older, or another daemon may have written an older state.
 */
async function sweep({ fleet, store }: WriterDeps, { compared }: Memory): Promise<void> {
  const stored = new Set<string>();
  for (const collection of READING_COLLECTIONS) {
    const readings = readingsIn(await store.documents(collection));
    const unlisted = readings.map(({ project }) => project).filter((project) => isUnlisted(fleet, project));
    const unlistedIds = unlisted.map(({ projectId }) => projectId);
    await deleteReadings(store, unlistedIds);
    for (const reading of readings) {
      const { projectId } = reading.project;
      stored.add(projectId);
      const last = compared.get(projectId);
      const isOlder = last !== undefined && reading.readAtMs <= last.readAtMs;
      if (isOlder && contentOf(reading) !== last.content) compared.delete(projectId);
    }
  }
  for (const projectId of [...compared.keys()]) if (!stored.has(projectId)) compared.delete(projectId);
}

/** Returns a conversion whose results are early by the duration of the store's answer, never late. */
async function readStoreClock({ store, clock }: Pick<WriterDeps, 'store' | 'clock'>): Promise<ToStoreMs> {
  const storeMs = await store.timeMs();
  const leadMs = storeMs - clock.monotonicMs();
  return (monotonicMs) => Math.floor(monotonicMs + leadMs);
}

function sharedReading(
  { fleet }: Pick<WriterDeps, 'fleet'>,
  { project, computes, unreadable, includedWrites = new Map() }: CachedProject,
  readAtMs: number,
): SharedReading {
  const branchesRefused = fleet.branches.get(project.projectId)?.refusedSinceMonotonicMs !== undefined;
  return { project, computes, unreadable, branchesRefused, includedWrites, readAtMs };
}

function contentOf({ readAtMs: _time, ...reading }: SharedReading): string {
  return readingText(reading);
}
