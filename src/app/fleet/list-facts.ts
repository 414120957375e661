/** Stores whether an account's list of projects shows changes, so that all daemons know what one has learned, also after a restart. */
import { DAY_MS } from '../../domain/time/units.ts';
import type { DocumentStore, Store } from '../../ports/store.ts';
import { sharedDocuments } from '../shared-documents.ts';
import type { Fleet } from './fleet.ts';

/** The finding that a list hides changes is forgotten after this long, in milliseconds: the list may only have been slow. */
const HIDES_VALID_MS = DAY_MS;

interface ListFact {
  /** The URL of the control API that was asked. */
  apiUrl: string;
  shows: boolean;
  /** When it was learned, by the store's clock, milliseconds since the epoch. */
  atMs: number;
}

const FACTS = sharedDocuments<ListFact>('list-shows-changes', 1);

export interface ListFactsDeps {
  fleet: Pick<Fleet, 'listShowsChanges'>;
  store: Pick<DocumentStore, 'documents' | 'putDocument'> & Pick<Store, 'timeMs'>;
  apiUrl: string;
}

/**
 * Creates the exchange with the store. Call this before anything is learned: what the fleet knows then is taken as the `verified` setting, which
 * is not stored, and applies again once a finding is forgotten.
 */
export function createListFacts({ fleet, store, apiUrl }: ListFactsDeps): { exchange(): Promise<void> } {
  const { listShowsChanges } = fleet;
  const verified = new Map(listShowsChanges);
  /** The facts that this daemon and the store had in common at the last exchange. */
  const synced = new Map(verified);

  function set(account: string, shows: boolean | undefined): void {
    for (const facts of [listShowsChanges, synced]) {
      if (shows === undefined) facts.delete(account);
      else facts.set(account, shows);
    }
  }

  /** Returns what to store for an account, if this daemon has learned something new; otherwise takes over the stored fact. */
  function mergeFact(account: string, fact: ListFact | undefined, nowMs: number): ListFact | undefined {
    const isOver = fact?.shows === false && nowMs - fact.atMs >= HIDES_VALID_MS;
    const known = listShowsChanges.get(account);
    const before = (fact ? synced : verified).get(account);
    // A list that has hidden a change is not relied on, whichever daemon noticed it.
    if (fact?.shows === false && !isOver) set(account, false);
    else if (known !== undefined && known !== before) return { apiUrl, shows: known, atMs: nowMs };
    else if (isOver) set(account, verified.get(account));
    else if (fact && verified.get(account) !== false) set(account, true);
    return undefined;
  }

  return {
    async exchange() {
      const stored = await FACTS.all(store);
      const accounts = new Set([...listShowsChanges.keys(), ...stored.keys()]);
      if (accounts.size === 0) return;
      const nowMs = await store.timeMs();
      for (const account of accounts) {
        const fact = stored.get(account);
        const learned = mergeFact(account, fact?.apiUrl === apiUrl ? fact : undefined, nowMs);
        if (!learned) continue;
        await FACTS.put(store, account, learned);
        synced.set(account, learned.shows);
      }
    },
  };
}
