import { isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Staleness } from '../../ports/documents.ts';
import { EngineUnavailableError } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Overrides } from '../overrides.ts';
import { OPERATIONS_KEY } from '../readings/reading.ts';

/** The most answers that are kept for an outage. */
const MAX_KEPT = 100;

/**
 * Wraps the store for display. While the store is unavailable, the wrapper answers with the holds and freezes that the daemon knows, and with
 * the last answers to the same questions; other calls reject.
 */
export function rememberReads({
  store,
  overrides,
  clock,
}: {
  store: Store;
  overrides: Overrides;
  clock: Pick<Clock, 'now'>;
}): { store: Store; staleness(): Staleness | undefined } {
  const startedMs = clock.now();
  /** The last answer to each question, the least recent first. */
  const kept = new Map<string, unknown>();
  let readAtMs: number | undefined;
  let isUnavailable = false;

  async function readOr<T>(read: () => Promise<T>, otherwise: () => T): Promise<T> {
    try {
      const value = await read();
      readAtMs = clock.now();
      isUnavailable = false;
      return value;
    } catch (error) {
      if (!(error instanceof EngineUnavailableError)) throw error;
      isUnavailable = true;
      return otherwise();
    }
  }

  /** Reads, or returns the last answer to the same question. `question` must begin with the kind of reading: answers of a kind have one type. */
  function remembered<T>(question: readonly unknown[], read: () => Promise<T>, otherwise: T): Promise<T> {
    const name = JSON.stringify(question);
    return readOr(
      async () => keep(name, await read()),
      () => (kept.has(name) ? (kept.get(name) as T) : otherwise),
    );
  }

  function keep<T>(name: string, answer: T): T {
    kept.delete(name);
    kept.set(name, answer);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return answer;
  }

  return {
    store: {
      ...store,
      holds: (nowMs) =>
        readOr(
          () => store.holds(nowMs),
          () => overrides.holds.filter(({ expiresAtMs }) => expiresAtMs > nowMs),
        ),
      freezes: (nowMs) =>
        readOr(
          () => store.freezes(nowMs),
          () => overrides.freezes.filter(({ expiresAtMs }) => expiresAtMs > nowMs),
        ),
      // Stored operations are not remembered: only commands ask for them, and they would fill the memory.
      usage: (...asked) =>
        asked[0] === OPERATIONS_KEY
          ? store.usage(...asked)
          : remembered(['usage', ...asked], () => store.usage(...asked), new Map()),
      outboxCounts: () => remembered(['outbox'], () => store.outboxCounts(), { receivers: [], lost: 0 }),
      document: (...asked) => remembered(['document', ...asked], () => store.document(...asked), undefined),
      approvals: () => remembered(['approvals'], () => store.approvals(), []),
      history: (query) => remembered(['history', query], () => store.history(query), []),
    },
    staleness() {
      if (!isUnavailable) return undefined;
      const sinceMs = Math.max(startedMs, readAtMs ?? 0, overrides.readAtMs ?? 0);
      return { since: isoInstant(sinceMs), seconds: Math.max(0, Math.round((clock.now() - sinceMs) / 1000)) };
    },
  };
}
