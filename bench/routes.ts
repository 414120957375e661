import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { request } from 'undici';
import { percentile, printTable } from './figures.ts';
import { startDaemon, UNLIMITED } from './fleet-stage.ts';

const PROJECTS = 1000;
const COMPUTES_EACH = 5;
const REQUESTS = 7;
const HOLDS = 1000;
const TOKEN = 'bench-token-bench-token';

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

const owners = Array.from({ length: 20 }, (_, team) => [`bench-*${team}`, `team-${team}`]);
const SETTINGS = `owners: ${JSON.stringify(Object.fromEntries(owners))}\n`;

/** The most that a selector may have: in a body, and in an address. */
const largest = (length: number) => ({
  projects: [
    ...Array.from({ length }, (_, index) => `web-${index}`),
    ...Array.from({ length: 25 }, (_, index) => `*a*${index}`),
  ],
});
const inAddress = (value: unknown) => encodeURIComponent(JSON.stringify(value));
const common = { owner: 'bench', reason: 'bench', for_seconds: 3600 };
const targets = Array.from({ length: 1000 }, (_, index) => `bench-x${index}`);

interface Asked {
  path: string;
  method?: 'POST' | 'DELETE';
  body?: object;
}

/** Each route, as people ask it, and in the form that costs most. */
const REQUESTED: Record<string, Asked> = {
  'nothing, for comparison': { path: '/healthz' },
  'GET /readyz': { path: '/readyz' },
  'GET /metrics': { path: '/metrics' },
  'GET /': { path: '/' },
  'GET /, a search of ten words': { path: `/?q=${'abcdefghi+'.repeat(10)}&group=owner&sort=project` },
  'GET /, by project': { path: '/?group=project' },
  'GET /waste': { path: '/waste' },
  'GET /computes/{id}': { path: '/computes/ep-bench-7-1' },
  'GET /status': { path: '/api/v1/status' },
  'GET /status, of an owner': { path: '/api/v1/status?owner=team-3' },
  'GET /status, the largest selector': { path: `/api/v1/status?select=${inAddress(largest(400))}` },
  'GET /computes': { path: '/api/v1/computes' },
  'GET /computes/{id}, of the API': { path: '/api/v1/computes/ep-bench-7-1' },
  'GET /fleet': { path: '/api/v1/fleet' },
  'GET /fleet, by project': { path: '/api/v1/fleet?group=project&sort=project&page=17' },
  'GET /decisions': { path: '/api/v1/decisions?limit=1000' },
  'GET /audit': { path: '/api/v1/audit?owner=team-3' },
  'GET /plan': { path: '/api/v1/plan' },
  'GET /records': { path: '/api/v1/records' },
  'GET /usage': { path: '/api/v1/usage?account=default/default' },
  'GET /notifications': { path: '/api/v1/notifications' },
  'GET /holds': { path: '/api/v1/holds' },
  'GET /freezes': { path: '/api/v1/freezes' },
  'GET /openapi.json': { path: '/api/v1/openapi.json' },
  'POST /holds, of an unknown project': {
    ...{ path: '/api/v1/holds', method: 'POST' },
    body: { ...common, compute: 'no-such-project', freeze: true },
  },
  'POST /freezes, 1,000 globs': {
    ...{ path: '/api/v1/freezes', method: 'POST' },
    body: { ...common, select: largest(950) },
  },
  'POST /restore, 1,000 unknown computes': {
    ...{ path: '/api/v1/restore', method: 'POST' },
    body: {
      ...{ computes: targets, owner: 'bench' },
      baselines: targets
        .slice(0, 400)
        .map((id) => ({ compute_id: id, min_cu: 1, max_cu: 1, suspend_timeout_seconds: 60 })),
    },
  },
  'POST /release': { path: '/api/v1/release', method: 'POST', body: { target: 'no-such-project', owner: 'bench' } },
  'DELETE /freezes': { path: '/api/v1/freezes?owner=bench', method: 'DELETE' },
};

/** How long each route keeps the event loop of a daemon at most, at 5,000 computes, with as many freezes as a store takes. */
export async function run(): Promise<void> {
  const stage = await startDaemon({
    ...{ projects: PROJECTS, computesEach: COMPUTES_EACH, perMinute: UNLIMITED, policy: POLICY, settings: SETTINGS },
    env: {
      EBB_MODE: 'observe',
      EBB_TOKEN: TOKEN,
      NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, 'event-loop.mjs')).href}`,
    },
  });
  try {
    const ask = (asked: Asked) => tell(stage.daemonUrl, asked);
    await untilKnown(ask);
    await fill(ask);
    await sleep(20_000);
    const rows: string[][] = [];
    for (const [name, asked] of Object.entries(REQUESTED)) {
      const longest: number[] = [];
      let last = { status: 0, bytes: 0 };
      for (let count = 0; count < REQUESTS; count += 1) {
        await longestMs(stage.daemon);
        last = await ask(asked);
        longest.push(await longestMs(stage.daemon));
      }
      const shown = [Math.min(...longest), percentile(longest, 0.5)].map((ms) => `${ms.toFixed(0)} ms`);
      rows.push([name, ...shown, String(last.status), `${(last.bytes / 1000).toFixed(0)} kB`]);
    }
    printTable([`${REQUESTS} requests each`, 'longest turn, least', 'median', 'status', 'size'], rows);
  } finally {
    await stage.close();
  }
}

type Ask = (asked: Asked) => Promise<{ status: number; bytes: number; text: string }>;

async function tell(daemonUrl: string, { path, method, body }: Asked): ReturnType<Ask> {
  const answer = await request(`${daemonUrl}${path}`, {
    ...(method && { method }),
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  return { status: answer.statusCode, bytes: bytes.length, text: bytes.toString() };
}

/** How long the daemon's event loop was kept at most since it was last asked. */
async function longestMs(daemon: ChildProcess): Promise<number> {
  const answered = once(daemon, 'message');
  daemon.send('longest');
  const [{ longestMs: ms }] = (await answered) as [{ longestMs: number }];
  return ms;
}

/** Holds, and freezes of 1,000 globs until there is no room. */
async function fill(ask: Ask): Promise<void> {
  for (let index = 0; index < HOLDS; index += 1) {
    const compute = `ep-bench-${index % PROJECTS}-${index % COMPUTES_EACH}`;
    await ask({ path: '/api/v1/holds', method: 'POST', body: { ...common, compute, freeze: true } });
  }
  const freeze = { path: '/api/v1/freezes', method: 'POST', body: { ...common, select: largest(950) } } as const;
  let count = 0;
  while ((await ask(freeze)).status === 201) count += 1;
  process.stdout.write(`${HOLDS} holds, ${count} freezes\n`);
}

/** Until every compute is evaluated. */
async function untilKnown(ask: Ask): Promise<void> {
  let known = 0;
  while (known < PROJECTS * COMPUTES_EACH) {
    await sleep(500);
    known = (JSON.parse((await ask({ path: '/api/v1/fleet' })).text) as { known: number }).known;
  }
}
