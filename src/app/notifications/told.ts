/** The ids of queued messages about the fleet, in a document, which daemons can write back after a loss of the store, unlike the outbox. */
import type { OutboxEntry } from '../../ports/outbox.ts';
import type { Store } from '../../ports/store.ts';
import { sharedDocument } from '../shared-documents.ts';

/** The ids of messages that were queued; those of the latest call of `queue` come last. */
const TOLD = sharedDocument<readonly string[]>('told', 'all', 1);

/** How many ids are kept, of about 80 bytes each. */
const MAX_IDS = 1_000;

export interface ToldMessages {
  /** Queues the messages that no daemon of the group is known to have queued. */
  queue(entries: readonly OutboxEntry[]): Promise<void>;
  /** Reads what was queued, and restores what the store has lost. For daemons that don't lead. */
  learn(): Promise<void>;
}

export function createToldMessages(store: Pick<Store, 'appendOutbox' | 'document' | 'replaceDocument'>): ToldMessages {
  /** The ids that are known to be queued; they outlive the loss of a store. */
  let knownIds = new Set<string>();

  async function append(entries: readonly OutboxEntry[]): Promise<void> {
    for (let isStored = false; !isStored; ) {
      const { value = [], replace } = await TOLD.open(store);
      const told = new Set([...knownIds, ...value]);
      const fresh = entries.filter(({ id }) => !told.has(id));
      if (fresh.length > 0) await store.appendOutbox(fresh);
      const ids = entries.map(({ id }) => id);
      for (const id of ids) told.delete(id);
      knownIds = new Set([...told, ...ids].slice(-MAX_IDS));
      const isSame = knownIds.size === value.length && value.every((id) => knownIds.has(id));
      // Another daemon may have stored ids meanwhile.
      isStored = isSame || (await replace([...knownIds]));
    }
  }

  return { queue: append, learn: () => append([]) };
}
