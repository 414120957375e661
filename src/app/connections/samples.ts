import pLimit from 'p-limit';
import { type ConnectionHistory, connectionsAt } from '../../domain/connections/connections.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeEvent } from '../../ports/compute-events.ts';
import type { ConnectionSample, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** The connection counts that this daemon has read. The store has the counts of all daemons. */
export interface Samples {
  /** Returns the counts of a compute by source; empty if nothing was counted. */
  historyOf(computeId: string): ConnectionHistory;
  /** Replaces the samples of one source, oldest first. */
  put(computeId: string, source: string, samples: readonly ConnectionSample[]): void;
  /** Keeps only the samples of these sources of these computes. */
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

/** Counts the clients that a change has disconnected, by the latest valid sample; counts none without such a sample. */
export function countDropped(
  { samples, clock, telemetry }: { samples: Samples; clock: Clock; telemetry: Telemetry },
  event: ComputeEvent,
): void {
  if (event.kind !== 'write_ended' || event.outcome !== 'applied' || !event.action.disconnects) return;
  const { compute, action } = event;
  const dropped = connectionsAt(samples.historyOf(compute.computeId), compute, clock.now()) ?? 0;
  telemetry.metrics.increment('ebb_connections_dropped_total', { policy: action.policy }, dropped);
}

const CONCURRENT_READS = 16;

/** Reads the stored counts by compute id; leaves out computes without counts. */
export async function readSamples(
  store: Pick<Store, 'samples'>,
  computeIds: readonly string[],
): Promise<Map<string, readonly ConnectionSample[]>> {
  const samplesById = new Map<string, readonly ConnectionSample[]>();
  await pLimit(CONCURRENT_READS).map(computeIds, async (computeId) => {
    const samples = await store.samples(computeId);
    if (samples.length > 0) samplesById.set(computeId, samples);
  });
  return samplesById;
}
