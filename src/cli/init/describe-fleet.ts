import Table from 'cli-table3';
import { counted } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import { type Compute, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import { ascending } from '../../domain/sorted.ts';
import { sum } from '../../domain/sum.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { shortened } from '../output.ts';

const MAX_ROWS = 20;
const MAX_AWAKE = 5;
const NAME_WIDTH = 40;

/** The fleet as a table; only the first rows of a large one. */
export function fleetTable(computes: readonly Compute[]): string {
  const table = new Table({
    head: ['project', 'compute', 'size (CU)', 'sleeps after', 'state'],
    style: { head: [], border: [] },
  });
  for (const compute of computes.slice(0, MAX_ROWS)) {
    const { projectName, computeId, suspendTimeoutSeconds, state } = compute;
    const timeout = formatSuspendTimeout(suspendTimeoutSeconds);
    table.push([nameOf(projectName), nameOf(computeId), formatSize(compute), timeout, state]);
  }
  const more = computes.length - MAX_ROWS;
  return more > 0 ? `${table}\nand ${more} more: ebb snapshot shows them all` : table.toString();
}

type Totals = ReturnType<typeof totalsOf>;

/** Such as `6 computes in 3 projects: 2 awake, 1 never sleeps; 3.5 to 12 CU if all were awake`. */
export function totalsLine({ projects, computes, active, neverSuspend, minCu, maxCu }: Totals): string {
  const neverSleep = `${neverSuspend} never ${neverSuspend === 1 ? 'sleeps' : 'sleep'}`;
  const fleet = `${counted(computes, 'compute')} in ${counted(projects, 'project')}`;
  return `${fleet}: ${active} awake, ${neverSleep}; ${minCu} to ${maxCu} CU if all were awake`;
}

export function awakeLines(computes: readonly Compute[], nowMs: number): string[] {
  return awakeLongest(computes)
    .slice(0, MAX_AWAKE)
    .map((compute) => {
      const { projectName, computeId, startedAtMs, suspendTimeoutSeconds } = compute;
      const since = startedAtMs === undefined ? 'awake' : `awake for ${formatAge(nowMs - startedAtMs)}`;
      const sleeps = formatSuspendTimeout(suspendTimeoutSeconds);
      const timeout = sleeps === 'never' ? 'never sleeps' : `sleeps after ${sleeps} without activity`;
      return `${nameOf(projectName)} / ${nameOf(computeId)}: ${since}, ${formatSize(compute)} CU, ${timeout}`;
    });
}

function nameOf(name: string): string {
  return shortened(printable(name), NAME_WIDTH);
}

function formatAge(ms: number): string {
  if (ms < 2 * HOUR_MS) return counted(Math.max(0, Math.floor(ms / MINUTE_MS)), 'minute');
  return ms < 2 * DAY_MS ? counted(Math.floor(ms / HOUR_MS), 'hour') : counted(Math.floor(ms / DAY_MS), 'day');
}

/** Awake computes, the longest awake first; those with an unknown start come last. */
export function awakeLongest(computes: readonly Compute[]): Compute[] {
  const startMs = ({ startedAtMs }: Compute) => startedAtMs ?? Number.POSITIVE_INFINITY;
  return computes.filter(({ state }) => state === 'active').toSorted((a, b) => ascending(startMs(a), startMs(b)));
}

/** Counts, and the sums of all minima and of all maxima, in CU. */
export function totalsOf(computes: readonly Compute[], projects: number) {
  return {
    projects,
    computes: computes.length,
    active: computes.filter(({ state }) => state === 'active').length,
    neverSuspend: computes.filter((one) => one.suspendTimeoutSeconds === NEVER_SUSPENDS).length,
    minCu: sum(computes.map(({ minCu }) => minCu)),
    maxCu: sum(computes.map(({ maxCu }) => maxCu)),
  };
}
