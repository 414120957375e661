/** What two daemons on Redis ask of the control API until they know the fleet, and after a restart; how late boundaries beside a restart are. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limitsOf } from '../src/domain/rate-budget/limits.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { printTable } from './figures.ts';
import { metricOf, type Seen, type Stage, startDaemon } from './fleet-stage.ts';
import { boundS, patchesOf, schedule } from './limit.ts';

const PROJECTS = 500;
const PER_MINUTE = 700;
const RESERVE = 0.05;

/** Projects whose change shows what the list shows, before the boundaries that are measured. */
const WARM_UP = 5;

/** How long before the first boundary both daemons are restarted. */
const RESTART_LEAD_MS = 60_000;

/** When these boundaries are, after the start of the bench: the fleet is known then, and a minute was quiet. */
const WARM_AFTER_MS = 75_000;
const FIRST_AFTER_MS = 210_000;
const SECOND_AFTER_MS = 360_000;

/** How long after a restart requests are counted. */
const COUNTED_MS = 10_000;

/** `EBB_BENCH_PROJECTS=100` for another size. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`restart is left out: ${missing('redis-server')}\n`);
    return;
  }
  const projects = Number(process.env.EBB_BENCH_PROJECTS ?? PROJECTS);
  const instant = (afterMs: number) => Math.ceil((Date.now() + afterMs) / 1000) * 1000;
  const [warmMs, firstMs, secondMs] = [instant(WARM_AFTER_MS), instant(FIRST_AFTER_MS), instant(SECOND_AFTER_MS)];
  const beganMs = Date.now();
  const stage = await startDaemon({
    ...{ projects, warmUp: WARM_UP, perMinute: PER_MINUTE, daemons: 2 },
    policy: `version: 1\npolicies:\n${schedule('warm', [warmMs])}${schedule('bench', [firstMs, secondMs])}`,
  });
  const rows: string[][] = [];
  try {
    await untilKnown(stage, projects + WARM_UP);
    rows.push(['until all is known', ...requestsIn(await stage.requests(), beganMs)]);
    // Background reads go on: what a restart costs is the difference.
    const quietMs = Date.now();
    await sleep(COUNTED_MS);
    rows.push([`${COUNTED_MS / 1000} s without a restart`, ...requestsIn(await stage.requests(), quietMs)]);
    const restartedMs = Date.now();
    await stage.restart(1);
    await sleep(COUNTED_MS);
    rows.push(['one restarted', ...requestsIn(await stage.requests(), restartedMs)]);
    rows.push(['of these by it', String(await metricOf(stage.urls[1] ?? '', 'ebb_api_requests_total')), '', '', '']);
    await sleep(firstMs - RESTART_LEAD_MS - Date.now());
    await stage.restart(0, 1);
    rows.push(['both restarted, until the boundary', ...requestsIn(await stage.requests(), firstMs - RESTART_LEAD_MS)]);
    rows.push([`both restarted ${RESTART_LEAD_MS / 1000} s before`, ...(await lateness(stage, firstMs, projects))]);
    await sleep(Math.max(0, secondMs - Date.now()));
    await stage.restart(0, 1);
    rows.push(['both restarted at it', ...(await lateness(stage, secondMs, projects))]);
  } finally {
    await stage.close();
  }
  printTable(['', 'requests, or changes', 'of projects, or last', 'of lists, or bound', 'others, or ×'], rows);
}

/** The leader counts the computes that it has evaluated. */
export async function untilKnown({ daemonUrl }: Pick<Stage, 'daemonUrl'>, computes: number): Promise<void> {
  while ((await metricOf(daemonUrl, 'ebb_computes')) < computes) await sleep(250);
}

function requestsIn(all: readonly Seen[], sinceMs: number): string[] {
  const since = all.filter(({ atMs }) => atMs >= sinceMs);
  const reads = since.filter(({ method, path }) => method === 'GET' && path.endsWith('/endpoints'));
  const lists = since.filter(({ path }) => /\/projects(\?|$)/.test(path));
  return [since.length, reads.length, lists.length, since.length - reads.length - lists.length].map(String);
}

/** Changes, the last of them after a boundary, the bound that the rate limit sets, and the ratio. */
export async function lateness(stage: Stage, boundaryMs: number, projects: number): Promise<string[]> {
  const bound = boundS(projects, limitsOf(PER_MINUTE, RESERVE));
  const giveUpMs = boundaryMs + 8_000 * bound;
  let patches: Seen[] = [];
  while (patches.length < projects && Date.now() < giveUpMs) {
    await sleep(2_000);
    patches = await patchesOf(stage, boundaryMs);
  }
  const last = Math.max(...patches.map(({ atMs }) => (atMs - boundaryMs) / 1000));
  return [String(patches.length), `${last.toFixed(1)} s`, `${bound.toFixed(1)} s`, (last / bound).toFixed(2)];
}
