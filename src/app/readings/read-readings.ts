import type { DocumentStore } from '../../ports/store.ts';
import {
  type AccountSeen,
  parseReading,
  parseSeen,
  READING_COLLECTIONS,
  readingCollection,
  SEEN_COLLECTION,
  type SharedReading,
} from './reading.ts';

/** All readings that are stored and can be read, one collection after the other. */
export async function* readReadings(store: Pick<DocumentStore, 'documents'>): AsyncGenerator<SharedReading[]> {
  for (const collection of READING_COLLECTIONS) yield readable(await store.documents(collection));
}

/** What was last seen of each account, by its name. */
export async function readAccountsSeen(store: Pick<DocumentStore, 'documents'>): Promise<Map<string, AccountSeen>> {
  const accounts = new Map<string, AccountSeen>();
  for (const [account, text] of await store.documents(SEEN_COLLECTION)) {
    const seen = parseSeen(text);
    if (seen) accounts.set(account, seen);
  }
  return accounts;
}

/** Deletes the readings of projects that are gone. */
export async function deleteReadings(
  store: Pick<DocumentStore, 'deleteDocuments'>,
  projectIds: readonly string[],
): Promise<void> {
  const collections = new Map<string, string[]>();
  for (const projectId of projectIds) {
    const collection = readingCollection(projectId);
    collections.set(collection, [...(collections.get(collection) ?? []), projectId]);
  }
  for (const [collection, names] of collections) await store.deleteDocuments(collection, names);
}

function readable(documents: ReadonlyMap<string, string>): SharedReading[] {
  return [...documents.values()].map(parseReading).filter((reading) => reading !== undefined);
}
