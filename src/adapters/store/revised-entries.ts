import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { ascending } from '../../domain/sorted.ts';
import type { OverridesInStore, Stored } from '../../ports/store.ts';
import type { EntryReader } from './override-json.ts';

/** The texts stored under a kind, and a revision that changes with any of them. */
export interface RevisedTexts {
  revision: string;
  texts: ReadonlyMap<string, string>;
  endedIds: ReadonlySet<string>;
}

/** Entries, and the revision that they were read at. */
export type Revised<Entry> = { revision: string } & Stored<Entry>;

/** Gives undefined if the revision is still `known`: then nothing was read. */
export type ReadRevised = (known: string | undefined) => Promise<RevisedTexts | undefined>;

/**
 * Entries that are read before each write and seldom change: they are read whole when their revision has changed, and not at all
 * otherwise.
 */
export function createRevisedEntries<Entry>(options: {
  read: ReadRevised;
  entry: EntryReader<Entry>;
  compare: (a: Entry, b: Entry) => number;
}): () => Promise<Revised<Entry>> {
  const { read, entry, compare } = options;
  let known: Revised<Entry> | undefined;
  /** The parsed entry of each text, by id: an entry stays the same object as long as its text does, with all that is derived from it. */
  let readAs = new Map<string, { text: string; entry: Entry | undefined }>();

  return sharedAsk(async () => {
    const before = known;
    const changed = await read(before?.revision);
    if (changed === undefined && before !== undefined) return before;
    const texts = [...(changed?.texts ?? [])];
    const same = readAs;
    readAs = new Map(
      texts.map(([id, text]) => {
        const one = same.get(id);
        return [id, one?.text === text ? one : { text, entry: entry(id, text) }];
      }),
    );
    const entries = [...readAs.values()].flatMap((one) => one.entry ?? []).toSorted(compare);
    known = { revision: changed?.revision ?? '', entries, endedIds: changed?.endedIds ?? new Set() };
    return known;
  });
}

/** Between the revisions of holds and freezes; neither contains it. */
const BETWEEN = '/';

/** Holds and freezes at an instant, with the revision of both. */
export function overridesAt(held: Revised<Hold>, frozen: Revised<Freeze>, nowMs: number): OverridesInStore {
  return {
    holds: storedAt(held, nowMs),
    freezes: storedAt(frozen, nowMs),
    revision: `${held.revision}${BETWEEN}${frozen.revision}`,
  };
}

/** The revisions of holds and of freezes that {@link overridesAt} put together. */
export function revisionsOf(revision: string): [holds: string, freezes: string] {
  const [holds = '', freezes = ''] = revision.split(BETWEEN);
  return [holds, freezes];
}

/** Oldest first; those of one instant by their ids, so that the order never wavers. */
export function oldestFirst(a: { createdAtMs: number; id: string }, b: { createdAtMs: number; id: string }): number {
  return a.createdAtMs - b.createdAtMs || ascending(a.id, b.id);
}

/** Those of `stored` that have not expired. */
function storedAt<Entry extends { expiresAtMs: number }>(stored: Stored<Entry>, nowMs: number): Stored<Entry> {
  return { entries: activeAt(stored.entries, nowMs), endedIds: stored.endedIds };
}

export function activeAt<Entry extends { expiresAtMs: number }>(entries: readonly Entry[], nowMs: number): Entry[] {
  return entries.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
}

/**
 * Shares one question between callers that ask at the same time. A caller that arrives while an answer is under way waits for the next, so
 * nobody gets an answer to a question that was sent before theirs.
 */
export function sharedAsk<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | undefined;

  async function askNext(): Promise<Answer> {
    await underWay;
    next = undefined;
    const answer = ask();
    underWay = answer.catch(() => {});
    return answer;
  }

  return () => {
    next ??= askNext();
    return next;
  };
}
