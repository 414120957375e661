/** How long `ebb explain` takes for one compute of a fleet under the rate limit, as a command of its own, and what it asks for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { KEY, type Stage, secondsOf, startDaemon } from './fleet-stage.ts';

const PROJECTS = 300;
const PER_MINUTE = 700;
const RUNS = 5;

const POLICY = `version: 1
policies:
  - name: bench
    kind: schedule
    select: { projects: ["bench-*"] }
    windows: [{ at: "Mon-Sun 00:00-12:00", size: 1-2 }]
    otherwise: { size: 1 }
    disruption: { raise: { when: idle } }
`;

/** Beside a daemon on Redis, whose budget it shares, and without one. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`explain is left out: ${missing('redis-server')}\n`);
    return;
  }
  const rows: string[][] = [];
  for (const state of ['idle', 'active'] as const) {
    const stage = await startDaemon({ projects: PROJECTS, state, perMinute: PER_MINUTE, policy: POLICY });
    try {
      // Once all have been read, and that is over a minute ago: the daemon's own requests are not to be counted.
      await sleep(100_000);
      rows.push([`${state}, beside a daemon`, ...(await timesOf(stage, { EBB_QUEUE_URL: stage.redisUrl }))]);
      stage.daemon.kill('SIGKILL');
      rows.push([`${state}, without one`, ...(await timesOf(stage, {}))]);
    } finally {
      await stage.close();
    }
  }
  printTable([`${PROJECTS} projects`, 'p50', 'slowest', 'requests (and those of the daemon)'], rows);
}

async function timesOf(stage: Stage, more: Record<string, string>): Promise<string[]> {
  const seconds: number[] = [];
  const before = (await stage.requests()).length;
  for (let nth = 0; nth < RUNS; nth += 1) {
    const name = `p-bench-${nth * 50}/ep-bench-${nth * 50}-0`;
    const args = ['explain', name, '--policies', 'policy.yaml'];
    seconds.push(await secondsOf(stage, args, { env: { EBB_API_KEY: KEY, ...more } }));
  }
  const asked = ((await stage.requests()).length - before) / RUNS;
  return [`${percentile(seconds, 0.5).toFixed(2)} s`, `${Math.max(...seconds).toFixed(2)} s`, asked.toFixed(1)];
}
