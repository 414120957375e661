import { groupBy } from '../../domain/grouping.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { withApplied } from '../../domain/records/lag.ts';
import type { Store } from '../../ports/store.ts';
import {
  type AccountSurvey,
  digestOf,
  LISTS_COLLECTION,
  OPERATIONS_KEY,
  parseList,
  parseReading,
  parseSurvey,
  READING_COLLECTIONS,
  readingCollection,
  type SharedReading,
  SURVEYS_COLLECTION,
} from './reading.ts';

export interface ReadingsPage {
  collection: string;
  documents: ReadonlyMap<string, string>;
  /** When they were read, by the store's clock, milliseconds since the epoch. */
  atMs: number;
}

/** The stored readings of a whole fleet, by project id, and its surveys and lists, by the name of the account. */
export interface SharedFleet {
  readings: ReadonlyMap<string, SharedReading>;
  accounts: ReadonlyMap<string, AccountSurvey>;
  /** Ids of the listed projects by the name of the account, in the order of the list. */
  lists: ReadonlyMap<string, readonly string[]>;
  /** When they were read, by the store's clock, milliseconds since the epoch. */
  atMs: number;
}

/** A list of projects older than this does not confirm readings, in milliseconds. */
const MAX_LIST_AGE_MS = 600_000;

/** The collections in the order in which they must be read: surveys first, so that the readings are at least as new as their survey. */
export const COLLECTIONS_IN_ORDER: readonly string[] = [SURVEYS_COLLECTION, LISTS_COLLECTION, ...READING_COLLECTIONS];

/** Reads the stored readings of the whole fleet, in the order of {@link COLLECTIONS_IN_ORDER}. */
export async function readReadings(store: Pick<Store, 'documents' | 'timeMs'>): Promise<SharedFleet> {
  const read = (collection: string) => readCollection(store, collection);
  const surveys = await read(SURVEYS_COLLECTION);
  const others = COLLECTIONS_IN_ORDER.filter((collection) => collection !== SURVEYS_COLLECTION);
  return collectReadings([surveys, ...(await Promise.all(others.map(read)))]);
}

export async function readCollection(
  store: Pick<Store, 'documents' | 'timeMs'>,
  collection: string,
): Promise<ReadingsPage> {
  const atMs = await store.timeMs();
  return { collection, documents: await store.documents(collection), atMs };
}

/** Returns the decoded readings of a collection. Leaves out those that can't be decoded. */
export function readingsIn(documents: ReadonlyMap<string, string>): SharedReading[] {
  return [...documents.values()].map(parseReading).filter((reading) => reading !== undefined);
}

export function collectReadings(pages: Iterable<ReadingsPage>): SharedFleet {
  const readings = new Map<string, SharedReading>();
  const texts = new Map<string, ReadonlyMap<string, string>>();
  let newestMs = 0;
  for (const { collection, documents, atMs } of pages) {
    newestMs = Math.max(newestMs, atMs);
    if (collection === SURVEYS_COLLECTION || collection === LISTS_COLLECTION) texts.set(collection, documents);
    else for (const reading of readingsIn(documents)) readings.set(reading.project.projectId, reading);
  }
  return {
    readings,
    accounts: parsedAll(texts.get(SURVEYS_COLLECTION), parseSurvey),
    lists: parsedAll(texts.get(LISTS_COLLECTION), parseList),
    atMs: newestMs,
  };
}

function parsedAll<Value>(
  documents: ReadonlyMap<string, string> = new Map(),
  parse: (text: string) => Value | undefined,
): Map<string, Value> {
  const parsed = new Map<string, Value>();
  for (const [name, text] of documents) {
    const value = parse(text);
    if (value !== undefined) parsed.set(name, value);
  }
  return parsed;
}

/** A fleet as its daemons have read it recently. */
export interface RecentFleet {
  /** In the order of the lists. */
  readings: SharedReading[];
  /** Ids of listed projects that daemons have not read, such as those that the key may not read. */
  unread: string[];
  /** The age of the list of projects, in milliseconds. */
  listedMs: number;
  /** The age of the oldest reading, in milliseconds. */
  oldestMs: number;
}

/**
 * Returns the readings of the projects of these accounts, if recent lists confirm them. Returns undefined if the fleet must be read from the
 * control API: a list is missing or old, projects are listed but none has a reading, or daemons have other accounts, too.
 */
export function recentFleet(
  { readings, accounts, lists, atMs }: SharedFleet,
  expected: { accounts: readonly string[]; apiUrl: string },
): RecentFleet | undefined {
  const others = [...accounts].filter(([account]) => !expected.accounts.includes(account));
  if (others.some(([, survey]) => isRecent(survey, atMs))) return undefined;
  const recent: RecentFleet = { readings: [], unread: [], listedMs: 0, oldestMs: 0 };
  for (const account of expected.accounts) {
    const survey = accounts.get(account);
    const projectIds = lists.get(account) ?? [];
    if (survey?.apiUrl !== expected.apiUrl || !isRecent(survey, atMs)) return undefined;
    if (survey.projects !== digestOf(projectIds)) return undefined;
    const [read, unread] = readingsOf(projectIds, { account, readings });
    recent.readings = recent.readings.concat(read);
    recent.unread = recent.unread.concat(unread);
    recent.listedMs = Math.max(recent.listedMs, atMs - survey.listedAtMs);
    recent.oldestMs = Math.max(recent.oldestMs, atMs - (survey.oldestReadAtMs ?? survey.listedAtMs));
  }
  return recent.readings.length === 0 && recent.unread.length > 0 ? undefined : recent;
}

function isRecent({ listedAtMs }: AccountSurvey, atMs: number): boolean {
  return atMs - listedAtMs <= MAX_LIST_AGE_MS;
}

/** Returns true if the list of one of these accounts is missing or old, so that a running daemon will soon store a new one. */
export function lacksList(
  { accounts, atMs }: SharedFleet,
  expected: { accounts: readonly string[]; apiUrl: string },
): boolean {
  return expected.accounts.some((account) => {
    const survey = accounts.get(account);
    return !survey || (survey.apiUrl === expected.apiUrl && !isRecent(survey, atMs));
  });
}

/** Returns the readings of an account's listed projects, and the ids of the projects that have none. */
function readingsOf(
  projectIds: readonly string[],
  { account, readings }: { account: string; readings: SharedFleet['readings'] },
): [read: SharedReading[], unread: string[]] {
  const foundReadings = projectIds.map((projectId) => readings.get(projectId));
  const isOfAccount = (reading: SharedReading | undefined) => reading?.project.account === account;
  return [
    foundReadings.flatMap((reading) => (reading && isOfAccount(reading) ? [reading] : [])),
    projectIds.filter((_, index) => !isOfAccount(foundReadings[index])),
  ];
}

/** Returns true if the reading is of the project with this id, name or compute. */
export function isAbout({ project, computes }: SharedReading, subject: string): boolean {
  return [project.projectId, project.name, ...computes.map(({ computeId }) => computeId)].includes(subject);
}

/** A reading includes a change if it began this long after the change was sent, in milliseconds: clocks differ, and answers take time. */
const INCLUDED_AFTER_MS = 15_000;

/** Returns a reading with the changes that ebb has applied since, by the records, so that its computes need not be read again. */
export function withAppliedSince(reading: SharedReading, records: ReadonlyMap<string, ComputeRecord>): SharedReading {
  const { includedWrites, readAtMs } = reading;
  const computes = reading.computes.map((compute) => {
    const record = records.get(compute.computeId);
    const isWriteIncluded = record?.lastSentAtMs === includedWrites.get(compute.computeId);
    return withApplied(compute, record, isWriteIncluded ? Number.POSITIVE_INFINITY : readAtMs - INCLUDED_AFTER_MS);
  });
  return { ...reading, computes };
}

/** Deletes the readings and operations of projects that are gone. */
export async function deleteReadings(
  store: Pick<Store, 'deleteDocuments' | 'deleteUsage'>,
  projectIds: readonly string[],
): Promise<void> {
  for (const [collection, names] of groupBy(projectIds, readingCollection))
    await store.deleteDocuments(collection, names);
  if (projectIds.length > 0) await store.deleteUsage(OPERATIONS_KEY, projectIds);
}
