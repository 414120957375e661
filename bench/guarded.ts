/** A boundary at which 300 awake computes are lowered, with a guard and without: how late the changes are, and by how many requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startPushedPrometheus } from '../test/scenario/pushed-prometheus.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { printTable } from './figures.ts';
import { type Stage, startDaemon } from './fleet-stage.ts';
import { patchesOf } from './limit.ts';
import { lateness } from './restart.ts';

const PROJECTS = 300;
const PER_MINUTE = 700;

/** The fleet is read by then, and a minute was quiet. */
const BOUNDARY_AFTER_MS = 120_000;
/** How long after the boundary requests are counted. */
const COUNTED_MS = 60_000;
const SAMPLE_EVERY_MS = 15_000;

const GUARD = `  - name: latency
    kind: guard
    select: { projects: ["*"] }
    source: main
    query: sum by (service) (request_seconds_p95)
    match: { service: "{compute_id}" }
    bad_when: "> 0.4"
`;

/** `EBB_BENCH_PROJECTS=100` for another size. */
export async function run(): Promise<void> {
  for (const program of ['redis-server', 'prometheus'] as const) {
    if (findProgram(program) !== undefined) continue;
    process.stdout.write(`guarded is left out: ${missing(program)}\n`);
    return;
  }
  const projects = Number(process.env.EBB_BENCH_PROJECTS ?? PROJECTS);
  const without = await boundary(projects, false);
  const guarded = await boundary(projects, true);
  printTable(
    [`${projects} computes`, 'changes', 'last', 'bound', '×', 'mean', 'requests'],
    [
      ['without a guard', ...without.row],
      ['guarded', ...guarded.row],
      [
        'ratio',
        '',
        '',
        '',
        ratio(guarded.lastS, without.lastS),
        ratio(guarded.meanS, without.meanS),
        ratio(guarded.requests, without.requests),
      ],
    ],
  );
}

function ratio(one: number, other: number): string {
  return `× ${(one / other).toFixed(2)}`;
}

async function boundary(projects: number, isGuarded: boolean) {
  const atMs = Math.ceil((Date.now() + BOUNDARY_AFTER_MS) / 1000) * 1000;
  const prometheus = await startPushedPrometheus(Date.now);
  const series = Array.from({ length: projects }, (_, index) => ({
    labels: { __name__: 'request_seconds_p95', service: `ep-bench-${index}-0` },
  }));
  let isOver = false;
  const pushing = (async () => {
    while (!isOver) {
      const samples = [{ atMs: Date.now(), value: 0.1 }];
      await prometheus.push(series.map((one) => ({ ...one, samples })));
      await sleep(SAMPLE_EVERY_MS);
    }
  })();
  try {
    const stage = await startDaemon({
      ...{ projects, perMinute: PER_MINUTE, state: 'active', connections: 1 },
      policy: policyOf(atMs, prometheus.url, isGuarded),
      settings: `sources_allowed_origins: ["${prometheus.url}"]\n`,
    });
    return await measured(stage, atMs, projects).finally(() => stage.close());
  } finally {
    isOver = true;
    await pushing;
    await prometheus.close();
  }
}

function policyOf(atMs: number, url: string, isGuarded: boolean): string {
  const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
  return `version: 1
sources: { main: { from: prometheus, url: "${url}" } }
policies:
  - name: hours
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: ${iso(atMs - 86_400_000)}/${iso(atMs)}, size: 0.25-0.5 }]
    otherwise: { size: 0.25 }
    disruption: { lower: { when: any }, at_once: 100%, newly_discovered: act }
${isGuarded ? GUARD : ''}`;
}

async function measured(stage: Stage, atMs: number, projects: number) {
  await sleep(atMs - Date.now());
  const row = await lateness(stage, atMs, projects);
  await sleep(Math.max(0, atMs + COUNTED_MS - Date.now()));
  const late = (await patchesOf(stage, atMs)).map((patch) => (patch.atMs - atMs) / 1000);
  const meanS = late.reduce((sum, one) => sum + one, 0) / Math.max(1, late.length);
  const requests = (await stage.requests()).filter((one) => one.atMs >= atMs && one.atMs < atMs + COUNTED_MS).length;
  return { row: [...row, `${meanS.toFixed(1)} s`, String(requests)], lastS: Math.max(...late), meanS, requests };
}
