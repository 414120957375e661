import type { FleetProgress } from '../../app/fleet/read-fleet.ts';
import type { OperationsProgress } from '../../app/fleet/read-operations.ts';
import { countedComputes } from '../../common/names.ts';
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';

/** Reads that take less time show no progress. */
const SILENT_MS = 1_000;
/** The interval of progress lines where the output is no terminal. */
const LINE_EVERY_MS = 10_000;

/** Rewrites one line of a terminal; other outputs get a line every ten seconds. `monotonicMs`: real milliseconds from an arbitrary start. */
export function showProgress(
  terminal: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
  monotonicMs = () => performance.now(),
) {
  const isTerminal = terminal.isTTY === true;
  let nextMs = monotonicMs() + (isTerminal ? SILENT_MS : LINE_EVERY_MS);
  let isShown = false;

  function show(line: string): void {
    if (monotonicMs() < nextMs) return;
    if (isTerminal) {
      isShown = true;
      terminal.write(`\r\u001b[K${line}`);
    } else {
      nextMs = monotonicMs() + LINE_EVERY_MS;
      terminal.write(`${line}\n`);
    }
  }

  return {
    fleet: ({ projectsRead, projects }: Pick<FleetProgress, 'projectsRead' | 'projects'>) =>
      show(`reading the fleet: ${projectsRead} of ${projects} projects`),
    periods: ({ done, projects }: { done: number; projects: number }) =>
      show(`reading what was used: ${done} of ${projects} projects`),
    operations({ projectsBegun, projectsDone, projects, leftMs }: OperationsProgress) {
      const left = leftMs === undefined ? '' : `, ${timeLeft(leftMs)} left`;
      const what = projectsBegun < projects ? `newest operations of ${projectsBegun}` : `operations of ${projectsDone}`;
      show(`reading ${what} of ${projects} projects${left} (Ctrl-C shows what is known)`);
    },
    history: ({ doneMs, allMs }: { doneMs: number; allMs: number }) =>
      show(`simulating ${Math.floor(doneMs / DAY_MS)} of ${Math.ceil(allMs / DAY_MS)} days of history`),
    replay: ({ doneMs, allMs }: { doneMs: number; allMs: number }) =>
      show(`replaying ${Math.floor(doneMs / DAY_MS)} of ${Math.ceil(allMs / DAY_MS)} days`),
    samples: ({ samples, of, computes }: { samples: number; of: number; computes: number }) =>
      show(
        `asking the Postgres of ${countedComputes(computes)}: ${samples} of ${of} samples (Ctrl-C shows what is known)`,
      ),
    end() {
      if (isShown) terminal.write('\r\u001b[K');
      isShown = false;
    },
  };
}

export type Progress = ReturnType<typeof showProgress>;

/** Shows the progress of a reading on standard error until it ends. */
export async function withProgress<T>(read: (progress: Progress) => Promise<T>): Promise<T> {
  const progress = showProgress(process.stderr);
  try {
    return await read(progress);
  } finally {
    progress.end();
  }
}

function timeLeft(ms: number): string {
  return ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.ceil(ms / MINUTE_MS)} min`;
}
