import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { ascending } from '../../domain/sorted.ts';
import type { OverrideStore, Stored } from '../../ports/store.ts';
import type { EntryReader } from './override-json.ts';

/** Entries, and their revision, which changes with any of them. */
type Revised<Entry> = { revision: string } & Stored<Entry>;

interface Sortable {
  id: string;
  createdAtMs: number;
}

/** Reads the texts by id; undefined, and nothing is read, if the revision is still `knownRevision`. */
export type ReadRevised = (
  knownRevision: string | undefined,
) => Promise<{ revision: string; texts: ReadonlyMap<string, string>; endedIds: ReadonlySet<string> } | undefined>;

/** Entries that are read before each write and rarely change: they are only read again when their revision has changed. Oldest first. */
export function createRevisedEntries<Entry extends Sortable>(options: {
  read: ReadRevised;
  parse: EntryReader<Entry>;
}): () => Promise<Revised<Entry>> {
  const { read, parse } = options;
  let current: Revised<Entry> | undefined;
  /** Parsed entries by id: while its text is the same, an entry stays the same object, so that values derived from it can be cached. */
  let parsed = new Map<string, { text: string; entry: Entry | undefined }>();

  return sharedAsk(async () => {
    const before = current;
    const changed = await read(before?.revision);
    if (changed === undefined && before !== undefined) return before;
    const parsedBefore = parsed;
    parsed = new Map(
      [...(changed?.texts ?? [])].map(([id, text]) => {
        const same = parsedBefore.get(id);
        return [id, same?.text === text ? same : { text, entry: parse(id, text) }];
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

/** Separates the revisions of holds and freezes, neither of which contains it. */
const SEPARATOR = '/';

/** The reading methods of the overrides. */
export function readersOf(
  holds: () => Promise<Revised<Hold>>,
  freezes: () => Promise<Revised<Freeze>>,
): Pick<OverrideStore, 'overrides' | 'holds' | 'freezes'> {
  return {
    async overrides(nowMs) {
      const [held, frozen] = await Promise.all([holds(), freezes()]);
      return {
        holds: { entries: activeAt(held.entries, nowMs), endedIds: held.endedIds },
        freezes: { entries: activeAt(frozen.entries, nowMs), endedIds: frozen.endedIds },
        revision: `${held.revision}${SEPARATOR}${frozen.revision}`,
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
 * Shares one question between callers that ask at the same time. A caller that arrives while an answer is pending waits for the next, so
 * that nobody gets an answer that is older than their question.
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
