import { createdByNow, MAX_AHEAD_MS, withoutInstantsAhead } from '../../domain/overrides/instants-ahead.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/**
 * The report lasts this long after the last instant ahead was found, in real milliseconds: it is corrected at once, and a probe must not
 * miss it.
 */
const REPORTED_FOR_MS = MAX_AHEAD_MS;

/** Timestamps that a clock that was ahead has left in the store. */
export interface StoredTimes {
  /** The store, of whose instants none is further ahead than minutes: no start with a wrong clock stops decisions. */
  correcting(store: Store): Store;
  /** The recent findings, in one line. */
  problem(): string | undefined;
}

/** Records that hold other instants than the store: the holder of their project's lease writes them back. */
const corrected = new WeakSet<ComputeRecord>();

export function isCorrected(record: ComputeRecord | undefined): boolean {
  return record !== undefined && corrected.has(record);
}

export function createStoredTimes({
  clock,
  telemetry: { log, metrics },
}: {
  clock: Pick<Clock, 'now' | 'monotonicMs'>;
  telemetry: Telemetry;
}): StoredTimes {
  let found: { what: string; aheadMs: number; atMonotonicMs: number } | undefined;

  function problem(): string | undefined {
    if (found && clock.monotonicMs() - found.atMonotonicMs > REPORTED_FOR_MS) {
      found = undefined;
      metrics.set('ebb_stored_time_ahead_seconds', {}, 0);
    }
    if (!found) return undefined;
    const ahead = `${Math.round(found.aheadMs / 60_000)} min ahead of this machine's clock`;
    return `what was stored of ${found.what} is ${ahead}: one of the two was wrong; it counts as of now, check the clock`;
  }

  function report(what: string, aheadMs: number): void {
    const isNews = problem() === undefined;
    const farthest = !found || aheadMs > found.aheadMs ? { what, aheadMs } : found;
    found = { ...farthest, atMonotonicMs: clock.monotonicMs() };
    metrics.set('ebb_stored_time_ahead_seconds', {}, found.aheadMs / 1000);
    if (isNews) log.error({ event: 'ebb.stored_time_ahead', ahead_ms: Math.round(aheadMs) }, problem() ?? '');
  }

  /** Keeps the first reading's instant: a record read again before it is written back gets the same. */
  const firstRead = new Map<string, { text: string; atMs: number }>();
  function countsAs(computeId: string, stored: ComputeRecord): number {
    const nowMs = clock.now();
    const known = firstRead.get(computeId);
    const text = JSON.stringify(stored);
    if (known?.text === text) return known.atMs;
    firstRead.set(computeId, { text, atMs: nowMs });
    return nowMs;
  }

  return {
    problem,
    correcting: (store) => ({
      ...store,
      async records(projectId) {
        const records = await store.records(projectId);
        for (const [computeId, stored] of records) {
          if (!firstRead.has(computeId) && withoutInstantsAhead(stored, clock.now()).aheadMs === 0) continue;
          const { record, aheadMs } = withoutInstantsAhead(stored, countsAs(computeId, stored));
          if (aheadMs === 0) {
            firstRead.delete(computeId);
            continue;
          }
          corrected.add(record);
          records.set(computeId, record);
          report(computeId, aheadMs);
        }
        return records;
      },
      async overrides(nowMs) {
        const { holds, freezes, revision } = await store.overrides(nowMs);
        const correct = async <E extends Parameters<typeof createdByNow>[0] & { id: string }>(
          entries: readonly E[],
          put: (entry: E) => Promise<unknown>,
        ) => {
          const right: E[] = [];
          for (const entry of entries) {
            const now = createdByNow(entry, nowMs);
            right.push(now);
            if (now === entry) continue;
            report(entry.id, entry.createdAtMs - nowMs);
            await put(now);
          }
          return right;
        };
        return {
          holds: { ...holds, entries: await correct(holds.entries, store.putHold) },
          freezes: { ...freezes, entries: await correct(freezes.entries, store.putFreeze) },
          revision,
        };
      },
    }),
  };
}
