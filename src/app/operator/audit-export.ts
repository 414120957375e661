/** Lines of the audit are copied as they are stored, also those of another daemon or of a command on the store. */
import type { AuditCopy, AuditLine } from '../../ports/audit-copy.ts';
import type { Clock } from '../../ports/clock.ts';
import type { BackgroundTask } from '../../ports/metrics.ts';
import type { Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import { type BoundaryReconciles, isAtBoundary } from '../fleet/at-boundary.ts';
import { decisionDocument } from './documents.ts';

/** Interval between exports, in real milliseconds. */
const EXPORT_EVERY_MS = 5_000;

/** A line may be stored somewhat later than what it tells of, and after an outage much later: that is looked for less often. */
const SOON_MS = 2 * 60_000;
const LATE_MS = 24 * 3_600_000;
const LATE_EVERY_ROUNDS = 60;

/** After a long pause lines of so long are read at a time, in pages. */
const SPAN_MS = 24 * 3_600_000;
const PAGE = 1000;

export interface AuditExportDeps {
  store: Pick<Store, 'audit'>;
  clock: Pick<Clock, 'now' | 'every'>;
  fleet: { boundaryReconciles: BoundaryReconciles };
  runInBackground: RunInBackground;
}

/** The destination, and the task name under which failures are counted. */
export interface AuditCopying {
  to: AuditCopy;
  task: Extract<BackgroundTask, 'audit_export' | 'audit_webhook'>;
}

/** Exports all lines of the group until it is closed, and goes on where the copy ends. */
export function startAuditExport(deps: AuditExportDeps, { to, task }: AuditCopying): Running {
  const { clock, fleet, runInBackground } = deps;
  const stopped = new AbortController();
  /** Ids of the lines that the copy has, with their instants, and until when all were copied; undefined where that must be asked. */
  let known: { written: Map<string, number>; untilMs: number } | undefined;
  let round = 0;

  async function exportNew(): Promise<void> {
    const nowMs = clock.now();
    // Changes at a boundary come first.
    if (isAtBoundary(fleet, nowMs)) return;
    const { written, untilMs } = known ?? (await knownOf(to, nowMs));
    // Until all is written: of what fails a part may have been.
    known = undefined;
    const agoMs = round % LATE_EVERY_ROUNDS === 0 ? LATE_MS : SOON_MS;
    // After a long pause it goes on where it ended.
    if (!(await copySince(Math.min(nowMs, untilMs) - agoMs, { nowMs, written }))) return;
    for (const [id, atMs] of written) if (atMs < nowMs - 2 * LATE_MS) written.delete(id);
    known = { written, untilMs: nowMs };
    round += 1;
  }

  /** False if it is to end. */
  async function copySince(
    fromMs: number,
    { nowMs, written }: { nowMs: number; written: Map<string, number> },
  ): Promise<boolean> {
    for (let sinceMs = fromMs; sinceMs <= nowMs; sinceMs += SPAN_MS) {
      const untilMs = sinceMs + SPAN_MS > nowMs ? Number.MAX_SAFE_INTEGER : sinceMs + SPAN_MS;
      const fresh = await linesOf(deps.store, { sinceMs, untilMs }, written);
      if (fresh.length > 0 && !(await to.append(fresh, stopped.signal))) return false;
      for (const { id, atMs } of fresh) written.set(id, atMs);
    }
    return true;
  }

  async function exportIfReady(): Promise<void> {
    if (to.isReady()) await runInBackground(task, exportNew);
    else known = undefined;
  }

  const rounds = clock.every(EXPORT_EVERY_MS, exportIfReady);
  return {
    async close() {
      stopped.abort();
      await rounds.close();
      // Exports the entries since the last round.
      await exportIfReady();
    },
  };
}

/** Of a copy that is empty, or has lines of the future only: as if all had been copied by now. */
async function knownOf(to: AuditCopy, nowMs: number): Promise<{ written: Map<string, number>; untilMs: number }> {
  const written = await to.written();
  // A line of a clock that was ahead does not say that all before it were copied.
  const past = [...written.values()].filter((atMs) => atMs <= nowMs);
  const untilMs = past.length === 0 ? Number.POSITIVE_INFINITY : past.reduce((last, atMs) => Math.max(last, atMs), 0);
  return { written, untilMs };
}

/** Those that are not written yet, oldest first. */
async function linesOf(
  store: Pick<Store, 'audit'>,
  span: { sinceMs: number; untilMs: number },
  written: ReadonlyMap<string, number>,
): Promise<AuditLine[]> {
  const lines: AuditLine[] = [];
  let after: string | undefined;
  do {
    const page = await store.audit({ ...span, limit: PAGE, after });
    for (const entry of page.entries) {
      const { id, atMs } = entry;
      if (id !== undefined && !written.has(id)) lines.push({ id, atMs, document: decisionDocument(entry) });
    }
    after = page.next;
  } while (after !== undefined);
  return lines.reverse();
}
