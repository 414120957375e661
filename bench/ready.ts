/** `ready: true` under the vendor's rate limit: a sleeping herd is at its size at the instant, and begins no earlier than it needs. */
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Compute } from '../src/domain/compute/compute.ts';
import { limitsForChanges } from '../src/domain/evaluate/ready-waves.ts';
import { WAVE_MS } from '../src/domain/policy/waves.ts';
import { limitsOf } from '../src/domain/rate-budget/limits.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { printTable } from './figures.ts';
import { type Seen, type Stage, startDaemon } from './fleet-stage.ts';
import { boundS } from './limit.ts';

const SIZES = [1_000, 3_000] as const;
const PER_MINUTE = 700;
const RESERVE = 0.05;
const DAEMONS = 2;

/** Projects whose change shows what the service does, before the herd is raised. */
const WARM_UP = 5;

/** After the reading of the fleet, until the first wave: projects are read again, and a quiet minute passes. */
const QUIET_S = 110;
const READ_EACH_S = 0.03;

/** How long after the instant changes are still waited for, and how often it is looked whether all are made. */
const AFTER_MS = 90_000;
const LOOK_EVERY_MS = 10_000;

/** `EBB_BENCH_PROJECTS=1000` chooses the sizes, `EBB_BENCH_KEEP` is a folder for requests and logs. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`ready is left out: ${missing('redis-server')}\n`);
    return;
  }
  const sizes = process.env.EBB_BENCH_PROJECTS?.split(',').map(Number) ?? SIZES;
  const rows: string[][] = [];
  for (const projects of sizes) rows.push(await measure(projects));
  printTable(
    ['computes', 'at size in time', 'last', 'first', 'needed', 'first wave', 'waves', 'within their wave', '429'],
    rows,
  );
}

function projectsOf(projects: number): Pick<Compute, 'account' | 'projectId'>[] {
  return Array.from({ length: projects + WARM_UP }, (_, index) => ({ account: 'default', projectId: `p-${index}` }));
}

/** Waves as the daemon logs them that fixes them for all daemons and commands. */
interface LoggedWaves {
  waves: { lead_s: number; computes: number }[];
}

async function measure(projects: number): Promise<string[]> {
  const limits = limitsOf(PER_MINUTE, RESERVE);
  // The list of the projects confirms what was read before each wave.
  const beside = limitsForChanges(limits, projectsOf(projects))('default');
  const neededS = boundS(projects, beside);
  // Each daemon reads each project.
  const readS = 20 + (DAEMONS * projects * 60) / limits.perMinute;
  const minute = (ms: number) => Math.ceil(ms / 60_000) * 60_000;
  const warmMs = Math.ceil((Date.now() + 25_000) / 1000) * 1000;
  const opensAtMs = minute(Date.now() + (readS + QUIET_S + READ_EACH_S * projects + neededS + 30) * 1000);
  const stage = await startDaemon({
    ...{ projects, warmUp: WARM_UP, perMinute: PER_MINUTE, daemons: DAEMONS },
    policy: `version: 1\npolicies:\n${schedule('warm', warmMs, false)}${schedule('bench', opensAtMs, true)}`,
  });
  try {
    await sleep(Math.max(0, opensAtMs + LOOK_EVERY_MS - Date.now()));
    let all = await stage.requests();
    while (all.filter(isChange).length < projects && Date.now() < opensAtMs + AFTER_MS) {
      await sleep(LOOK_EVERY_MS);
      all = await stage.requests();
    }
    const { EBB_BENCH_KEEP: folder } = process.env;
    if (folder) await keep(folder, { stage, all, opensAtMs });
    const waves = await wavesOf(stage);
    return [String(projects), ...figures(all, { opensAtMs, projects, neededS, waves })];
  } finally {
    await stage.close();
  }
}

function isChange({ method, status, path }: Seen): boolean {
  return method === 'PATCH' && status === 200 && path.includes('/p-bench-');
}

function figures(
  all: readonly Seen[],
  given: { opensAtMs: number; projects: number; neededS: number; waves: LoggedWaves['waves'] },
): string[] {
  const { opensAtMs, projects, neededS, waves } = given;
  const beforeS = all
    .filter(isChange)
    .map(({ atMs }) => (opensAtMs - atMs) / 1000)
    .toSorted((a, b) => b - a);
  const inTime = beforeS.filter((seconds) => seconds > 0).length;
  const begins = waves.flatMap(({ lead_s, computes }) => Array.from({ length: computes }, () => lead_s));
  const within = beforeS.filter((seconds, index) => {
    const leadS = begins[index] ?? Number.NaN;
    return seconds <= leadS && seconds > leadS - WAVE_MS / 1000;
  }).length;
  const first = beforeS[0] ?? Number.NaN;
  const last = beforeS.at(-1) ?? Number.NaN;
  return [
    `${inTime} of ${projects}`,
    `${(-last).toFixed(1)} s`,
    `${(-first).toFixed(1)} s`,
    `${(-neededS).toFixed(1)} s`,
    `${-(begins[0] ?? Number.NaN)} s`,
    String(waves.length),
    `${within} of ${projects}`,
    String(all.filter(({ status }) => status === 429).length),
  ];
}

/** The waves of the herd, from the log of the daemon that fixed them. */
async function wavesOf({ logs }: Stage): Promise<LoggedWaves['waves']> {
  for (const log of logs) {
    for (const line of (await readFile(log, 'utf8')).split('\n')) {
      if (line.includes('"ebb.ready_waves"')) return (JSON.parse(line) as LoggedWaves).waves;
    }
  }
  return [];
}

/** Puts every request and the logs there, to be examined. */
async function keep(folder: string, { stage, all, opensAtMs }: { stage: Stage; all: Seen[]; opensAtMs: number }) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'requests.json'), JSON.stringify({ opensAtMs, all }));
  for (const [index, log] of stage.logs.entries()) await copyFile(log, join(folder, `ebb-${index}.log`));
}

function schedule(name: string, atMs: number, ready: boolean): string {
  const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
  const window = `at: ${iso(atMs)}/${iso(atMs + 7_200_000)}, size: 1-2, suspend_after: 10m, ready: ${ready}`;
  return `  - name: ${name}
    kind: schedule
    select: { projects: ["${name}-*"] }
    windows: [{ ${window} }]
    otherwise: leave
    disruption: { raise: { when: any } }
`;
}
