import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { ascending } from '../../domain/sorted.ts';
import type { OverrideStore, Stored } from '../../ports/store.ts';
import type { EntryReader } from './override-json.ts';

/** Entries, and their revision, which changes whenever one of them changes. */
type Revised<Entry> = { revision: string } & Stored<Entry>;

interface Sortable {
  id: string;
  createdAtMs: number;
}

/** Reads the revision, the texts by id, and the ended ids. If the revision is still `knownRevision`, it reads nothing more: undefined. */
export type ReadRevised = (
  knownRevision: string | undefined,
) => Promise<{ revision: string; texts: ReadonlyMap<string, string>; endedIds: ReadonlySet<string> } | undefined>;

/** Reads entries, oldest first. They are read before each write and rarely change, so only a new revision leads to another read of all. */
export function createRevisedEntries<Entry extends Sortable>(options: {
  read: ReadRevised;
  parse: EntryReader<Entry>;
}): () => Promise<Revised<Entry>> {
  const { read, parse } = options;
  let current: Revised<Entry> | undefined;
  /** Parsed entries by id. An entry stays the same object while its text stays the same, so that values derived from it can be cached. */
  let parsed = new Map<string, { text: string; entry: Entry | undefined }>();

  return sharedAsk(async () => {
    const before = current;
    const changed = await read(before?.revision);
    if (changed === undefined && before !== undefined) return before;
    const parsedBefore = parsed;
    parsed = new Map(
      [...(changed?.texts ?? [])].map(([id, text]) => {
        const known = parsedBefore.get(id);
        return [id, known?.text === text ? known : { text, entry: parse(id, text) }];
      }),
    );
    const entries = [...parsed.values()].flatMap((item) => item.entry ?? []).toSorted(oldestFirst);
    current = { revision: changed?.revision ?? '', entries, endedIds: changed?.endedIds ?? new Set() };
    return current;
  });
}

/** Entries of one instant are ordered by id, so that the order is stable. */
function oldestFirst(a: Sortable, b: Sortable): number {
  return a.createdAtMs - b.createdAtMs || ascending(a.id, b.id);
}

/** Separates the revisions of holds and freezes. Neither contains this character. */
const SEPARATOR = '/';

/** The reading methods of the overrides. */
export function readersOf(
  holds: () => Promise<Revised<Hold>>,
  freezes: () => Promise<Revised<Freeze>>,
): Pick<OverrideStore, 'overrides' | 'holds' | 'freezes'> {
  return {
    async overrides(nowMs) {
      const [ofHolds, ofFreezes] = await Promise.all([holds(), freezes()]);
      return {
        holds: { entries: activeAt(ofHolds.entries, nowMs), endedIds: ofHolds.endedIds },
        freezes: { entries: activeAt(ofFreezes.entries, nowMs), endedIds: ofFreezes.endedIds },
        revision: `${ofHolds.revision}${SEPARATOR}${ofFreezes.revision}`,
      };
    },
    holds: async (nowMs) => activeAt((await holds()).entries, nowMs),
    freezes: async (nowMs) => activeAt((await freezes()).entries, nowMs),
  };
}

/** Splits the revision of {@link readersOf}'s `overrides`. */
export function revisionsOf(revision: string): [holds: string, freezes: string] {
  const [holds = '', freezes = ''] = revision.split(SEPARATOR);
  return [holds, freezes];
}

function activeAt<Entry extends { expiresAtMs: number }>(entries: readonly Entry[], nowMs: number): Entry[] {
  return entries.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
}

/**
 * Shares one question between callers that ask at the same time. A caller that comes while an answer is pending gets the next answer, so
 * that no answer is older than its caller's question.
 */
export function sharedAsk<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let pending: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | undefined;

  async function askNext(): Promise<Answer> {
    await pending;
    next = undefined;
    const answer = ask();
    pending = answer.catch(() => {});
    return answer;
  }

  return () => {
    next ??= askNext();
    return next;
  };
}
