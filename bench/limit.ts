/** Boundaries under the vendor's rate limit, against what the limit itself allows: two daemons on Redis, an emulated control API. */
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_RATE_LIMITS, limitsOf, type RateLimits } from '../src/domain/rate-budget/limits.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { type Seen, type Stage, startDaemon } from './fleet-stage.ts';
import { CASES, type Case } from './limit-cases.ts';

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

/**
 * `EBB_BENCH_PROJECTS=500,1000` chooses the sizes, or `EBB_BENCH_CASES=strict,woken` other cases (all: `all`). `EBB_BENCH_EMULATOR` gives
 * the emulator more arguments, `EBB_BENCH_KEEP` is a folder for requests and logs.
 */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`limit is left out: ${missing('redis-server')}\n`);
    return;
  }
  const rows: string[][] = [];
  for (const one of chosen()) rows.push(...(await measure(one)));
  const head = [
    ...['changes', 'p50', 'last', 'bound', '×', 'whole limit', '429'],
    ...['ahead', 'at it', 'a minute on', 'background', 'lists', 'besides'],
  ];
  printTable(head, rows);
}

function chosen(): Case[] {
  const { EBB_BENCH_CASES: names, EBB_BENCH_PROJECTS: sizes, EBB_BENCH_EMULATOR: emulator } = process.env;
  if (names === 'all') return Object.values(CASES);
  if (names !== undefined) return names.split(',').flatMap((name) => CASES[name] ?? []);
  const more = emulator?.split(' ') ?? [];
  return (sizes?.split(',').map(Number) ?? SIZES).map((projects) => ({
    name: more.join(' '),
    projects,
    emulator: more,
  }));
}

/** When the last of so many changes can be sent after a quiet minute, in seconds: the limits, each window longer by the jitter. */
export function boundS(count: number, { perMinute, perRouteSecond, jitterMs }: RateLimits): number {
  const minutes = Math.floor((count - 1) / perMinute);
  const seconds = Math.floor(((count - 1) % perMinute) / perRouteSecond);
  return (minutes * (60_000 + jitterMs) + seconds * (1_000 + jitterMs)) / 1000;
}

/** One row for each boundary. */
async function measure(one: Case): Promise<string[][]> {
  const { projects, accounts = 1, computesEach = 1, requestsEach = 1, boundaries = 1, daemons = DAEMONS } = one;
  const limits = limitsOf(PER_MINUTE, RESERVE);
  const each = (projects * computesEach) / accounts;
  const boundOf = (by: RateLimits) => (one.boundS ?? boundS)(each, { ...by, perMinute: by.perMinute / requestsEach });
  const bound = boundOf(limits);
  const whole = boundOf(DEFAULT_RATE_LIMITS);
  // Once all have been read, which the limit makes slow; and so long that what was read doesn't weigh on the boundary.
  const readMs = 70_000 + (each * 60_000) / limits.perMinute;
  const warmMs = Math.ceil((Date.now() + 25_000) / 1000) * 1000;
  const preparedMs = PREPARED_MS + each * PREPARED_EACH_MS;
  const firstMs = Math.ceil((Date.now() + readMs + preparedMs + 20_000) / 1000) * 1000;
  const gapMs = Math.ceil(4 * bound) * 1000 + AFTER_MS + preparedMs;
  const instants = Array.from({ length: boundaries }, (_, index) => firstMs + index * Math.ceil(gapMs / 1000) * 1000);
  const warmUp = (one.warmUp ?? WARM_UP) * accounts;
  const stage = await startDaemon({
    ...{ ...one, warmUp, perMinute: PER_MINUTE, daemons },
    policy: `version: 1\npolicies:\n${schedule('warm', [warmMs])}${schedule('bench', instants, one.disruption)}`,
  });
  const stop = new AbortController();
  try {
    const beside = one.beside?.(stage, firstMs, stop.signal);
    const rows: string[][] = [];
    for (const boundaryMs of instants) {
      const { all, patches } = await seenAt(stage, { boundaryMs, changes: projects * computesEach, expectedS: bound });
      if (process.env.EBB_BENCH_LOGS) await showLogs(stage);
      if (process.env.EBB_BENCH_KEEP) await keep(process.env.EBB_BENCH_KEEP, { stage, all, boundaryMs });
      rows.push([`${patches.length} ${one.name}`, ...figures(all, patches, { boundaryMs, each, bound, whole })]);
    }
    stop.abort();
    const said = (await beside) ?? '';
    return rows.map((row) => [...row, said]);
  } finally {
    stop.abort();
    await stage.close();
  }
}

/** The requests around a boundary, once its changes are made or have had their time. */
async function seenAt(
  stage: Stage,
  { boundaryMs, changes, expectedS }: { boundaryMs: number; changes: number; expectedS: number },
): Promise<{ all: Seen[]; patches: Seen[] }> {
  const deadlineMs = boundaryMs + 4 * expectedS * 1000;
  await sleep(Math.max(0, boundaryMs + expectedS * 1000 - Date.now()));
  let patches: Seen[] = [];
  while (patches.length < changes && Date.now() < deadlineMs) {
    await sleep(2_000);
    patches = await patchesOf(stage, boundaryMs);
  }
  await sleep(AFTER_MS);
  return { all: await stage.requests(), patches: await patchesOf(stage, boundaryMs) };
}

function figures(
  all: readonly Seen[],
  patches: readonly Seen[],
  { boundaryMs, each, bound, whole }: { boundaryMs: number; each: number; bound: number; whole: number },
): string[] {
  const late = patches.map(({ atMs }) => (atMs - boundaryMs) / 1000);
  const last = Math.max(...late);
  const isOfBench = ({ path }: Seen) => path.includes('/p-bench-');
  const during = all.filter(({ atMs }) => atMs >= boundaryMs && atMs <= boundaryMs + last * 1000);
  const around = all.filter(({ atMs }) => atMs >= boundaryMs - PREPARED_MS - each * PREPARED_EACH_MS);
  const lists = around.filter(({ path }) => /\/projects(\?|$)/.test(path)).length;
  const share = (requests: readonly Seen[]) => (requests.filter(isOfBench).length / patches.length).toFixed(2);
  const forEach = (requests: readonly Seen[]) => share(requests.filter((one) => !isOfBackground(one)));
  return [
    `${percentile(late, 0.5).toFixed(1)} s`,
    `${last.toFixed(1)} s`,
    `${bound.toFixed(1)} s`,
    (last / bound).toFixed(2),
    `${whole.toFixed(1)} s`,
    String(around.filter(({ status }) => status === 429).length),
    forEach(around.filter(({ atMs }) => atMs < boundaryMs)),
    forEach(during),
    forEach(around.filter(({ atMs }) => atMs > boundaryMs + last * 1000)),
    share(around.filter(isOfBackground)),
    String(lists),
  ];
}

/** Past operations in whole pages, and names of branches: read for findings and usage while the limit leaves room, for no change. */
function isOfBackground({ path }: Seen): boolean {
  return /\/(operations|branches)\?limit=1000\b/.test(path);
}

export async function patchesOf(stage: Pick<Stage, 'requests'>, sinceMs: number): Promise<Seen[]> {
  const requests = await stage.requests();
  return requests.filter(
    ({ method, status, path, atMs }) =>
      method === 'PATCH' && status === 200 && path.includes('/p-bench-') && atMs >= sinceMs,
  );
}

async function showLogs({ logs }: Stage): Promise<void> {
  for (const log of logs) {
    const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => !line.includes('"ebb.write"'));
    process.stdout.write(`${lines.slice(0, 60).join('\n')}\n`);
  }
}

/** Puts every request and the logs there, to be examined. */
async function keep(folder: string, { stage, all, boundaryMs }: { stage: Stage; all: Seen[]; boundaryMs: number }) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'requests.json'), JSON.stringify({ boundaryMs, all }));
  for (const [index, log] of stage.logs.entries()) await copyFile(log, join(folder, `ebb-${index}.log`));
}

/** From each instant to the next another size and timeout; the last stays for two hours. */
export function schedule(name: string, instants: readonly number[], disruption = '{ raise: { when: any } }'): string {
  const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
  const windows = instants.map((atMs, index) => {
    const untilMs = instants[index + 1] ?? atMs + 7_200_000;
    return `{ at: ${iso(atMs)}/${iso(untilMs)}, size: ${1 + index}-${2 + index}, suspend_after: ${10 + index}m }`;
  });
  return `  - name: ${name}
    kind: schedule
    select: { projects: ["${name}-*"] }
    windows: [${windows.join(', ')}]
    otherwise: leave
    disruption: ${disruption}
`;
}
