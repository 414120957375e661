/** Lines of the audit go to a file as they are stored, also by another daemon or by a command on the store. */
import type { HistoryEntry } from '../../domain/records/history.ts';
import type { AuditFile } from '../../ports/audit-file.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import { type BoundaryReconciles, isAtBoundary } from '../fleet/at-boundary.ts';
import { decisionDocument } from './documents.ts';

/** How often it is looked for new lines, in real milliseconds. */
const EXPORT_EVERY_MS = 5_000;

/** A line may be stored somewhat later than what it tells of, and after an outage much later: that is looked for less often. */
const SOON_MS = 2 * 60_000;
const LATE_MS = 24 * 3_600_000;
const LATE_EVERY_ROUNDS = 60;

const PAGE = 1000;

export interface AuditExportDeps {
  store: Pick<Store, 'audit'>;
  clock: Pick<Clock, 'now' | 'every'>;
  fleet: { boundaryReconciles: BoundaryReconciles };
  runInBackground: RunInBackground;
  /** Absent: nothing is exported. */
  auditFile: AuditFile | undefined;
}

/** Exports until it is closed. Each daemon that has a file writes all lines of its group, and goes on where the file ends. */
export function startAuditExport(deps: AuditExportDeps): Running {
  const { clock, fleet, auditFile: file, runInBackground } = deps;
  if (!file) return { close: async () => {} };
  /** Ids of the lines that the file has, with their instants. */
  let written: Map<string, number> | undefined;
  let round = 0;

  async function exportNew(to: AuditFile): Promise<void> {
    const nowMs = clock.now();
    // Changes at a boundary come first.
    if (isAtBoundary(fleet, nowMs)) return;
    written ??= await to.written();
    const agoMs = round % LATE_EVERY_ROUNDS === 0 ? LATE_MS : SOON_MS;
    // After a long pause it goes on where it ended.
    const sinceMs = Math.min(nowMs - agoMs, newestOf(written) ?? nowMs);
    const fresh = await entriesSince(deps.store, sinceMs, written);
    if (fresh.length > 0) await to.append(fresh.map(decisionDocument));
    for (const { id = '', atMs } of fresh) written.set(id, atMs);
    forget(written, nowMs - 2 * LATE_MS);
    round += 1;
  }

  const task = () => runInBackground('audit_export', () => exportNew(file));
  const rounds = clock.every(EXPORT_EVERY_MS, task);
  return {
    async close() {
      await rounds.close();
      // What was stored since the last round.
      await task();
    },
  };
}

function newestOf(written: ReadonlyMap<string, number>): number | undefined {
  let newest: number | undefined;
  for (const atMs of written.values()) newest = Math.max(newest ?? atMs, atMs);
  return newest;
}

/** The newest stays: it is where to go on. */
function forget(written: Map<string, number>, beforeMs: number): void {
  const newestMs = newestOf(written);
  for (const [id, atMs] of written) if (atMs < beforeMs && atMs !== newestMs) written.delete(id);
}

/** Those that are not written yet, oldest first. */
async function entriesSince(
  store: Pick<Store, 'audit'>,
  sinceMs: number,
  written: ReadonlyMap<string, number>,
): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  let after: string | undefined;
  do {
    const page = await store.audit({ sinceMs, untilMs: Number.MAX_SAFE_INTEGER, limit: PAGE, after });
    entries.push(...page.entries.filter(({ id }) => id !== undefined && !written.has(id)));
    after = page.next;
  } while (after !== undefined);
  return entries.reverse();
}
