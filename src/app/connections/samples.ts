import type { ConnectionHistory } from '../../domain/connections/connections.ts';
import type { ConnectionSample } from '../../ports/store.ts';

/** What is known of connections, of this daemon's cached project; the store has the same for all daemons. */
export interface Samples {
  /** Counts by source; empty where nothing was counted. */
  historyOf(computeId: string): ConnectionHistory;
  /** Oldest first; those of other sources stay. */
  put(computeId: string, source: string, samples: readonly ConnectionSample[]): void;
  /** Forgets what is not among these sources of these computes. */
  keepOnly(isWanted: (computeId: string, source: string) => boolean): void;
}

const NO_COUNTS: ConnectionHistory = new Map();

export function createSamples(): Samples {
  const histories = new Map<string, Map<string, readonly ConnectionSample[]>>();
  return {
    historyOf: (computeId) => histories.get(computeId) ?? NO_COUNTS,
    put(computeId, source, samples) {
      const history = histories.get(computeId) ?? new Map();
      histories.set(computeId, history.set(source, samples));
    },
    keepOnly(isWanted) {
      for (const [computeId, history] of histories) {
        for (const source of history.keys()) if (!isWanted(computeId, source)) history.delete(source);
        if (history.size === 0) histories.delete(computeId);
      }
    },
  };
}
