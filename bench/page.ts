import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { percentile, printTable } from './figures.ts';
import { startDaemon, UNLIMITED } from './fleet-stage.ts';

const PROJECTS = 300;
const COMPUTES_EACH = 2;
const REQUESTS = 40;

/** Twenty schedules, each with hours of its own for its projects. */
const POLICY = `version: 1
timezone: Europe/Berlin
policies:
${Array.from(
  { length: 20 },
  (_, team) => `  - name: team-${team}
    kind: schedule
    select: { projects: ["bench-*${team}", "!bench-1${team}"] }
    windows: [{ at: "Mon-Fri ${String(6 + (team % 5)).padStart(2, '0')}:30-18:00", size: 1-4, suspend_after: never }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
`,
).join('')}`;

const PATHS: Record<string, string> = {
  'the fleet, 300 of 600 computes': '/',
  'the second half': '/?page=2',
  'totals by owner': '/?group=owner',
  'one project': '/?q=bench-17',
  'metrics, for comparison': '/metrics',
};

/** What pages of a fleet of 600 computes take and weigh, from a daemon on Redis. */
export async function run(): Promise<void> {
  const stage = await startDaemon({
    ...{ projects: PROJECTS, computesEach: COMPUTES_EACH, perMinute: UNLIMITED, policy: POLICY },
  });
  try {
    await untilKnown(`${stage.daemonUrl}/api/v1/fleet`);
    const rows: string[][] = [];
    for (const [name, path] of Object.entries(PATHS)) {
      const first = await ask(`${stage.daemonUrl}${path}`);
      const before = await cpuSeconds(stage.daemonUrl);
      const answers: Answer[] = [];
      for (let count = 0; count < REQUESTS; count += 1) answers.push(await ask(`${stage.daemonUrl}${path}`));
      const cpuMs = (1000 * ((await cpuSeconds(stage.daemonUrl)) - before)) / REQUESTS;
      const times = answers.map(({ firstByteMs }) => firstByteMs);
      const shown = [first.firstByteMs, percentile(times, 0.5), percentile(times, 0.95), cpuMs];
      const weights = [first.bytes, first.gzipped].map((count) => `${(count / 1000).toFixed(0)} kB`);
      rows.push([name, ...shown.map((ms) => `${ms.toFixed(0)} ms`), ...weights]);
    }
    printTable([`${REQUESTS} requests each`, 'first', 'median', '95 %', 'CPU', 'size', 'gzipped'], rows);
  } finally {
    await stage.close();
  }
}

interface Answer {
  firstByteMs: number;
  bytes: number;
  gzipped: number;
}

async function ask(url: string): Promise<Answer> {
  const begunMs = performance.now();
  const { body } = await request(url);
  const firstByteMs = performance.now() - begunMs;
  const bytes = Buffer.from(await body.arrayBuffer());
  return { firstByteMs, bytes: bytes.length, gzipped: gzipSync(bytes).length };
}

async function cpuSeconds(daemonUrl: string): Promise<number> {
  const { body } = await request(`${daemonUrl}/metrics`);
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(await body.text())?.[1]);
}

/** Until every compute is evaluated, and the first burst of work is over. */
async function untilKnown(url: string): Promise<void> {
  let known = 0;
  while (known < PROJECTS * COMPUTES_EACH) {
    await sleep(500);
    const { body } = await request(url);
    known = ((await body.json()) as { known: number }).known;
  }
  await sleep(5_000);
}
