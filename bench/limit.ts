/** Boundaries under the vendor's rate limit, against what the limit itself allows: two daemons on Redis, an emulated control API. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_RATE_LIMITS, limitsOf, type RateLimits } from '../src/domain/rate-budget/limits.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { type Seen, type Stage, startDaemon } from './fleet-stage.ts';

const SIZES = [500, 1_000, 3_000] as const;
const PER_MINUTE = 700;
const RESERVE = 0.05;
const DAEMONS = 2;

/** Projects whose change shows what the service does, before the boundary that is measured. */
const WARM_UP = 5;

/** Requests from the beginning of the preparation on are for the boundary: by as much before it, and longer for each compute. */
const PREPARED_MS = 100_000;
const PREPARED_EACH_MS = 100;

/** How long after the last change requests still count. */
const AFTER_MS = 60_000;

interface Case {
  name: string;
  projects: number;
  emulator?: readonly string[];
}

/** `EBB_BENCH_PROJECTS=500,1000` chooses the sizes, `EBB_BENCH_EMULATOR` gives the emulator more arguments. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`limit is left out: ${missing('redis-server')}\n`);
    return;
  }
  const sizes = process.env.EBB_BENCH_PROJECTS?.split(',').map(Number) ?? SIZES;
  const emulator = process.env.EBB_BENCH_EMULATOR?.split(' ') ?? [];
  const rows: string[][] = [];
  for (const projects of sizes) rows.push(await measure({ name: emulator.join(' '), projects, emulator }));
  const head = [
    'computes',
    'p50',
    'last',
    'bound',
    '×',
    'whole limit',
    '429',
    'ahead',
    'at it',
    'a minute on',
    'lists',
  ];
  printTable(head, rows);
}

/** When the last of so many changes can be sent after a quiet minute, in seconds: the limits, each window longer by the jitter. */
export function boundS(count: number, { perMinute, perRouteSecond, jitterMs }: RateLimits): number {
  const minutes = Math.floor((count - 1) / perMinute);
  const seconds = Math.floor(((count - 1) % perMinute) / perRouteSecond);
  return (minutes * (60_000 + jitterMs) + seconds * (1_000 + jitterMs)) / 1000;
}

async function measure({ name, projects, emulator = [] }: Case): Promise<string[]> {
  const limits = limitsOf(PER_MINUTE, RESERVE);
  // Once all have been read, which the limit makes slow; and so long that what was read doesn't weigh on the boundary.
  const readMs = 70_000 + (projects * 60_000) / limits.perMinute;
  const warmMs = Math.ceil((Date.now() + 25_000) / 1000) * 1000;
  const preparedMs = PREPARED_MS + projects * PREPARED_EACH_MS;
  const boundaryMs = Math.ceil((Date.now() + readMs + preparedMs + 20_000) / 1000) * 1000;
  const stage = await startDaemon({
    ...{ projects, warmUp: WARM_UP, perMinute: PER_MINUTE, daemons: DAEMONS, emulator },
    policy: [schedule('warm', warmMs), schedule('bench', boundaryMs)].join(''),
  });
  try {
    const expectedS = boundS(projects, limits);
    const deadlineMs = boundaryMs + 4 * expectedS * 1000 + 60_000;
    await sleep(Math.max(0, boundaryMs + expectedS * 1000 - Date.now()));
    let patches: Seen[] = [];
    while (patches.length < projects && Date.now() < deadlineMs) {
      await sleep(2_000);
      patches = await patchesOf(stage);
    }
    await sleep(AFTER_MS);
    const all = await stage.requests();
    patches = await patchesOf(stage);
    if (process.env.EBB_BENCH_LOGS) await showLogs(stage);
    return [`${patches.length} of ${projects} ${name}`, ...figures(all, patches, { boundaryMs, projects, limits })];
  } finally {
    await stage.close();
  }
}

function figures(
  all: readonly Seen[],
  patches: readonly Seen[],
  { boundaryMs, projects, limits }: { boundaryMs: number; projects: number; limits: RateLimits },
): string[] {
  const late = patches.map(({ atMs }) => (atMs - boundaryMs) / 1000);
  const last = Math.max(...late);
  const bound = boundS(projects, limits);
  const isOfBench = ({ path }: Seen) => path.includes('/p-bench-');
  const during = all.filter(({ atMs }) => atMs >= boundaryMs && atMs <= boundaryMs + last * 1000);
  const around = all.filter(({ atMs }) => atMs >= boundaryMs - PREPARED_MS - projects * PREPARED_EACH_MS);
  const lists = around.filter(({ path }) => /\/projects(\?|$)/.test(path)).length;
  const each = (requests: readonly Seen[]) => (requests.filter(isOfBench).length / patches.length).toFixed(2);
  return [
    `${percentile(late, 0.5).toFixed(1)} s`,
    `${last.toFixed(1)} s`,
    `${bound.toFixed(1)} s`,
    (last / bound).toFixed(2),
    `${boundS(projects, { ...DEFAULT_RATE_LIMITS }).toFixed(1)} s`,
    String(all.filter(({ status }) => status === 429).length),
    each(around.filter(({ atMs }) => atMs < boundaryMs)),
    each(during),
    each(around.filter(({ atMs }) => atMs > boundaryMs + last * 1000)),
    String(lists),
  ];
}

async function patchesOf(stage: Pick<Stage, 'requests'>): Promise<Seen[]> {
  const requests = await stage.requests();
  return requests.filter(
    ({ method, status, path }) => method === 'PATCH' && status === 200 && path.includes('/p-bench-'),
  );
}

async function showLogs({ logs }: Stage): Promise<void> {
  for (const log of logs) {
    const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => !line.includes('"ebb.write"'));
    process.stdout.write(`${lines.slice(0, 60).join('\n')}\n`);
  }
}

function schedule(name: string, atMs: number): string {
  const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
  const header = name === 'warm' ? 'version: 1\npolicies:\n' : '';
  return `${header}  - name: ${name}
    kind: schedule
    select: { projects: ["${name}-*"] }
    windows: [{ at: ${iso(atMs)}/${iso(atMs + 7_200_000)}, size: 1-2, suspend_after: 10m }]
    otherwise: leave
    disruption: { raise: { when: any } }
`;
}
