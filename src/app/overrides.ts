import type { Freeze } from '../domain/freezes.ts';
import type { Hold } from '../domain/holds.ts';
import type { Store } from '../ports/store.ts';

/** What people have said, as it was last read. */
export interface Overrides {
  readonly holds: readonly Hold[];
  readonly freezes: readonly Freeze[];
  /** Reads both anew. Throws if the store can't be asked: then nothing is decided, and so nothing written. */
  refresh(store: Store, nowMs: number): Promise<void>;
}

export function createOverrides(): Overrides {
  let holds: readonly Hold[] = [];
  let freezes: readonly Freeze[] = [];
  return {
    get holds() {
      return holds;
    },
    get freezes() {
      return freezes;
    },
    async refresh(store, nowMs) {
      [holds, freezes] = await Promise.all([store.holds(nowMs), store.freezes(nowMs)]);
    },
  };
}
