import { isoInstant } from '../../domain/time/instants.ts';
import type { Clock } from '../../ports/clock.ts';
import { EngineAwayError } from '../../ports/engine.ts';
import type { Staleness } from '../../ports/operator.ts';
import type { Store } from '../../ports/store.ts';
import type { Overrides } from '../overrides.ts';

/** Histories that are kept for an outage: the fleet's, and those of the computes that were looked at last. */
const MOST_KEPT = 100;

/** What a person sees while the store can't be asked. */
export interface RememberedReads {
  /** For display only: to change anything, ask the store itself. */
  store: Store;
  staleness(): Staleness | undefined;
}

/**
 * The store as it was last read: while it is away holds and freezes are those that the daemon knows, and the history is what was last
 * shown of it. Everything else rejects then.
 */
export function rememberReads({
  store,
  overrides,
  clock,
}: {
  store: Store;
  overrides: Overrides;
  clock: Pick<Clock, 'now'>;
}): RememberedReads {
  const startedMs = clock.now();
  const histories = new Map<string, Awaited<ReturnType<Store['history']>>>();
  let costs: Awaited<ReturnType<Store['usage']>> = new Map();
  let outbox: Awaited<ReturnType<Store['outboxCounts']>> = { receivers: [], lost: 0 };
  /** Of budgets and reports: there are few names. */
  const documents = new Map<string, string | undefined>();
  let readAtMs: number | undefined;
  let isAway = false;

  async function lastRead<T>(read: () => Promise<T>, known: () => T): Promise<T> {
    try {
      const value = await read();
      readAtMs = clock.now();
      isAway = false;
      return value;
    } catch (error) {
      if (!(error instanceof EngineAwayError)) throw error;
      isAway = true;
      return known();
    }
  }

  function keep(key: string, entries: Awaited<ReturnType<Store['history']>>) {
    histories.delete(key);
    histories.set(key, entries);
    const [oldest] = histories.keys();
    if (histories.size > MOST_KEPT && oldest !== undefined) histories.delete(oldest);
    return entries;
  }

  return {
    store: {
      ...store,
      holds: (nowMs) =>
        lastRead(
          () => store.holds(nowMs),
          () => overrides.holds.filter(({ expiresAtMs }) => expiresAtMs > nowMs),
        ),
      freezes: (nowMs) =>
        lastRead(
          () => store.freezes(nowMs),
          () => overrides.freezes.filter(({ expiresAtMs }) => expiresAtMs > nowMs),
        ),
      // Only costs are read to be shown.
      usage: (account, units) =>
        lastRead(
          async () => {
            costs = await store.usage(account, units);
            return costs;
          },
          () => costs,
        ),
      outboxCounts: () =>
        lastRead(
          async () => {
            outbox = await store.outboxCounts();
            return outbox;
          },
          () => outbox,
        ),
      document: (collection, name) => {
        const key = JSON.stringify([collection, name]);
        return lastRead(
          async () => {
            const text = await store.document(collection, name);
            documents.set(key, text);
            return text;
          },
          () => documents.get(key),
        );
      },
      history: (query) => {
        const key = JSON.stringify([query.computeId, query.limit]);
        return lastRead(
          async () => keep(key, await store.history(query)),
          () => histories.get(key) ?? [],
        );
      },
    },
    staleness() {
      if (!isAway) return undefined;
      const sinceMs = Math.max(startedMs, readAtMs ?? 0, overrides.readAtMs ?? 0);
      return { since: isoInstant(sinceMs), seconds: Math.max(0, Math.round((clock.now() - sinceMs) / 1000)) };
    },
  };
}
