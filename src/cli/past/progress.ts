import type { FleetProgress } from '../../app/fleet/read-fleet.ts';
import type { OperationsProgress } from '../../app/fleet/read-operations.ts';

/** Who waits longer than this is told how far the reading has come, in milliseconds. */
const SILENT_MS = 1_000;

/** Rewrites one line of a terminal; says nothing elsewhere, where it would only fill a log. */
export function showProgress(terminal: NodeJS.WriteStream) {
  const shownFromMs = performance.now() + SILENT_MS;
  let isShown = false;

  function show(line: string): void {
    if (terminal.isTTY !== true || performance.now() < shownFromMs) return;
    isShown = true;
    terminal.write(`\r\u001b[K${line}`);
  }

  return {
    fleet: ({ projectsRead, projects }: Pick<FleetProgress, 'projectsRead' | 'projects'>) =>
      show(`reading the fleet: ${projectsRead} of ${projects} projects`),
    operations({ projectsBegun, projectsDone, projects, leftMs }: OperationsProgress) {
      const left = leftMs === undefined ? '' : `, ${timeLeft(leftMs)} left`;
      const what = projectsBegun < projects ? `newest operations of ${projectsBegun}` : `operations of ${projectsDone}`;
      show(`reading ${what} of ${projects} projects${left} (Ctrl-C shows what is known)`);
    },
    end() {
      if (isShown) terminal.write('\r\u001b[K');
      isShown = false;
    },
  };
}

function timeLeft(ms: number): string {
  return ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.ceil(ms / 60_000)} min`;
}
