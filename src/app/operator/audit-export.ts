/** Copies audit entries from the store, including entries of other daemons and of commands that use the store directly. */
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { AuditCopy, AuditLine } from '../../ports/audit-copy.ts';
import type { Clock } from '../../ports/clock.ts';
import type { BackgroundTask } from '../../ports/metrics.ts';
import type { Store } from '../../ports/store.ts';
import { type RunInBackground, type Running, StoppedError } from '../background.ts';
import { type BoundaryReconciles, isAtBoundary } from '../fleet/at-boundary.ts';
import { auditEntries } from '../pages.ts';
import { decisionDocument } from './documents.ts';

/** Interval between exports, in real milliseconds. */
const EXPORT_EVERY_MS = 5_000;

/**
 * Entries may be stored somewhat later than their timestamps, after an outage up to a day later. So each round looks back two minutes, but the
 * first and every 60th round look back a day.
 */
const SHORT_LOOK_BACK_MS = 2 * MINUTE_MS;
const LONG_LOOK_BACK_MS = DAY_MS;
const LONG_LOOK_EVERY_ROUNDS = 60;

/** After a long pause, entries are read a day at a time. */
const SPAN_MS = DAY_MS;

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

/** The instants of the copied entries by id, and the instant until which all entries are copied. */
interface Copied {
  written: Map<string, number>;
  untilMs: number;
}

/** Starts to export all entries of the group. Continues where the copy ends. */
export function startAuditExport(deps: AuditExportDeps, { to, task }: AuditCopying): Running {
  const { clock, fleet, runInBackground } = deps;
  const stopped = new AbortController();
  /** Undefined if the destination must be asked which entries it has. */
  let copied: Copied | undefined;
  let round = 0;

  async function exportNew(): Promise<void> {
    const nowMs = clock.now();
    // At a boundary, changes of computes come first.
    if (isAtBoundary(fleet, nowMs)) return;
    const { written, untilMs } = copied ?? (await readCopied(to, nowMs));
    // If this round fails, the destination must be asked again, since some entries of the round may have been written.
    copied = undefined;
    const lookBackMs = round % LONG_LOOK_EVERY_ROUNDS === 0 ? LONG_LOOK_BACK_MS : SHORT_LOOK_BACK_MS;
    if (!(await copySince(Math.min(nowMs, untilMs) - lookBackMs, nowMs, written))) return;
    for (const [id, atMs] of written) if (atMs < nowMs - 2 * LONG_LOOK_BACK_MS) written.delete(id);
    copied = { written, untilMs: nowMs };
    round += 1;
  }

  /** Copies the entries since an instant. Returns false if the destination takes no more. */
  async function copySince(fromMs: number, nowMs: number, written: Map<string, number>): Promise<boolean> {
    for (let sinceMs = fromMs; sinceMs <= nowMs; sinceMs += SPAN_MS) {
      const untilMs = sinceMs + SPAN_MS > nowMs ? Number.MAX_SAFE_INTEGER : sinceMs + SPAN_MS;
      const lines = await unwrittenLines(deps.store, { sinceMs, untilMs }, written);
      if (lines.length > 0 && !(await to.append(lines, stopped.signal))) return false;
      for (const { id, atMs } of lines) written.set(id, atMs);
    }
    return true;
  }

  async function exportIfReady(): Promise<void> {
    if (to.isReady()) await runInBackground(task, exportNew);
    // Until the destination is ready again, another daemon may write.
    else copied = undefined;
  }

  const rounds = clock.every(EXPORT_EVERY_MS, exportIfReady);
  return {
    async close() {
      stopped.abort(new StoppedError());
      await rounds.close();
      // Exports the entries since the last round.
      await exportIfReady();
    },
  };
}

/** Asks the destination which entries it has. If it has no entry from before `nowMs`, the copy begins with the look back from `nowMs`. */
async function readCopied(to: AuditCopy, nowMs: number): Promise<Copied> {
  const written = await to.written();
  // An entry by a clock that was ahead does not prove that all earlier entries are copied.
  const past = [...written.values()].filter((atMs) => atMs <= nowMs);
  const untilMs = past.length === 0 ? Number.POSITIVE_INFINITY : past.reduce((last, atMs) => Math.max(last, atMs), 0);
  return { written, untilMs };
}

/** Returns the entries that are not written yet, oldest first. */
async function unwrittenLines(
  store: Pick<Store, 'audit'>,
  span: { sinceMs: number; untilMs: number },
  written: ReadonlyMap<string, number>,
): Promise<AuditLine[]> {
  const lines: AuditLine[] = [];
  for await (const entry of auditEntries(store, span)) {
    const { id, atMs } = entry;
    if (id !== undefined && !written.has(id)) lines.push({ id, atMs, document: decisionDocument(entry) });
  }
  return lines.reverse();
}
