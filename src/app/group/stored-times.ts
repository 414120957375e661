import { createdByNow, MAX_AHEAD_MS, withoutInstantsAhead } from '../../domain/overrides/instants-ahead.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** How long a finding is reported, in real milliseconds. The timestamp is corrected at once, but health checks must not miss the finding. */
const REPORT_KEPT_MS = MAX_AHEAD_MS;

/** Corrects timestamps in the store that are in the future because some daemon's clock was ahead. */
export interface StoredTimes {
  /** Wraps the store so that no timestamp is more than five minutes ahead: a later one could stop decisions for long. */
  correcting(store: Store): Store;
  /** Describes the recent findings in one line; undefined if there are none. */
  problem(): string | undefined;
}

/** Records that were corrected when they were read. A reconcile writes them back, under the project's lease. */
const correctedRecords = new WeakSet<ComputeRecord>();

/** Returns true if the record was corrected when it was read, so that it must be written back. */
export function isCorrected(record: ComputeRecord | undefined): boolean {
  return record !== undefined && correctedRecords.has(record);
}

export function createStoredTimes({
  clock,
  telemetry: { log, metrics },
}: {
  clock: Pick<Clock, 'now' | 'monotonicMs'>;
  telemetry: Telemetry;
}): StoredTimes {
  let finding: { what: string; aheadMs: number; atMonotonicMs: number } | undefined;

  function problem(): string | undefined {
    if (finding && clock.monotonicMs() - finding.atMonotonicMs > REPORT_KEPT_MS) {
      finding = undefined;
      metrics.set('ebb_stored_time_ahead_seconds', {}, 0);
    }
    if (!finding) return undefined;
    const ahead = `${Math.round(finding.aheadMs / 60_000)} min ahead of this machine's clock`;
    return `a stored time of ${finding.what} is ${ahead}: one of the two clocks was wrong; that time is set to now, check the clocks`;
  }

  function report(what: string, aheadMs: number): void {
    const isNews = problem() === undefined;
    const farthest = !finding || aheadMs > finding.aheadMs ? { what, aheadMs } : finding;
    finding = { ...farthest, atMonotonicMs: clock.monotonicMs() };
    metrics.set('ebb_stored_time_ahead_seconds', {}, finding.aheadMs / 1000);
    if (isNews) log.error({ event: 'ebb.stored_time_ahead', ahead_ms: Math.round(aheadMs) }, problem() ?? '');
  }

  /** By compute id, when each wrong record was first read. Until the record is written back, each reading is corrected to that instant. */
  const firstRead = new Map<string, { text: string; atMs: number }>();
  function firstReadAtMs(computeId: string, stored: ComputeRecord): number {
    const nowMs = clock.now();
    const earlier = firstRead.get(computeId);
    const text = JSON.stringify(stored);
    if (earlier?.text === text) return earlier.atMs;
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
          const { record, aheadMs } = withoutInstantsAhead(stored, firstReadAtMs(computeId, stored));
          if (aheadMs === 0) {
            firstRead.delete(computeId);
            continue;
          }
          correctedRecords.add(record);
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
          const corrected: E[] = [];
          for (const entry of entries) {
            const correctedEntry = createdByNow(entry, nowMs);
            corrected.push(correctedEntry);
            if (correctedEntry === entry) continue;
            report(entry.id, entry.createdAtMs - nowMs);
            await put(correctedEntry);
          }
          return corrected;
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
