import { DEFAULT_LIMITS } from '../../../src/adapters/store/limits.ts';
import type { OutboxStore, QueuedEntry } from '../../../src/ports/outbox.ts';

/** An outbox in memory; `limit` is how many are remembered. */
export function createMemoryOutbox(limit = DEFAULT_LIMITS.outbox): OutboxStore {
  /** In their order; undefined: it was sent. */
  const known = new Map<string, QueuedEntry | undefined>();
  let lost = 0;

  const unsent = () => [...known.values()].filter((one) => one !== undefined);
  return {
    async appendOutbox(entries) {
      for (const entry of entries)
        if (!known.has(entry.id)) known.set(entry.id, { ...entry, state: 'waiting', tries: 0 });
      for (const [id, entry] of [...known].slice(0, Math.max(0, known.size - limit))) {
        known.delete(id);
        if (entry) lost += 1;
      }
    },
    outbox: async ({ receiver, state, limit: most }) =>
      unsent()
        .filter((one) => one.receiver === receiver && one.state === state)
        .slice(0, most),
    async outboxCounts() {
      const receivers = [...new Set(unsent().map(({ receiver }) => receiver))].sort().map((receiver) => {
        const own = unsent().filter((one) => one.receiver === receiver);
        const waiting = own.filter(({ state }) => state === 'waiting');
        const [oldest] = waiting;
        const dead = own.length - waiting.length;
        return { receiver, waiting: waiting.length, dead, ...(oldest && { oldestAtMs: oldest.atMs }) };
      });
      return { receivers, lost };
    },
    async updateOutbox(id, failure) {
      const entry = known.get(id);
      if (!entry) return false;
      const { error: _, ...rest } = entry;
      known.set(id, { ...rest, ...failure });
      return true;
    },
    async finishOutbox(id) {
      const isThere = known.get(id) !== undefined;
      if (isThere) known.set(id, undefined);
      return isThere;
    },
  };
}
