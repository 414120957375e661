/** An emulated control API with a sleeping fleet, and a daemon on Redis that keeps it: processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { endServer, freePort } from '../test/support/child-server.ts';
import { startRedisServer } from '../test/support/redis-server.ts';

export const KEY = 'bench-key';

/** More than any daemon asks: then only the daemon's own speed counts. */
export const UNLIMITED = 1_000_000;

export interface Seen {
  method: string;
  path: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  status: number;
}

export interface Stage extends PlatformStage {
  daemonUrl: string;
  /** The first of them. */
  daemon: ChildProcess;
  daemons: readonly ChildProcess[];
  /** The URL of each. */
  urls: readonly string[];
  redisUrl: string;
  /** The log of each daemon. */
  logs: readonly string[];
  /** Stops these daemons, all at once, and starts them again; resolves when they have started. */
  restart(...indexes: number[]): Promise<void>;
}

function fleetFile(options: FleetOptions): string {
  const { projects, computesEach = 1, state = 'idle', connections = 0, warmUp = 0, accounts } = options;
  const compute = (project: string, index: number) => ({
    id: `ep-${project}-${index}`,
    branch_id: `br-${project}-${index}`,
    type: 'read_write',
    min_cu: 0.25,
    max_cu: 0.5,
    suspend_timeout_seconds: 300,
    state,
    connections,
  });
  const names = [
    ...Array.from({ length: warmUp }, (_, project) => `warm-${project}`),
    ...Array.from({ length: projects }, (_, project) => `bench-${project}`),
  ];
  return JSON.stringify({
    projects: names.map((name, place) => ({
      id: `p-${name}`,
      ...(accounts !== undefined && { account: accountOf(place % accounts) }),
      name,
      region_id: 'aws-eu-central-1',
      pg_version: 17,
      computes: Array.from({ length: computesEach }, (_each, index) => compute(name, index)),
    })),
  });
}

/** The name of an account, and of its organization behind `org-`. */
const accountOf = (index: number) => `account-${index}`;
const keyOf = (index: number) => `bench-key-${index}`;

interface FleetOptions {
  projects: number;
  /** 1 by default. */
  computesEach?: number;
  /** They sleep by default. */
  state?: 'idle' | 'active';
  /** None by default. */
  connections?: number;
  /** Projects `warm-*` besides; none by default. */
  warmUp?: number;
  /** Over so many accounts; one by default. */
  accounts?: number | undefined;
  /** Makes up a fleet with clients, that has lived for so many days; then only `projects` counts. */
  historyDays?: number;
}

interface PlatformOptions extends FleetOptions {
  perMinute: number;
  /** More arguments of the emulator. */
  emulator?: readonly string[];
}

/** What each operation takes on the emulated platform. */
export const OPERATION_MS = 1_000;

interface PlatformStage {
  apiUrl: string;
  platformUrl: string;
  folder: string;
  requests(): Promise<Seen[]>;
  /** Adds what is to be ended before the platform is. */
  onClose(step: () => Promise<unknown>): void;
  close(): Promise<void>;
}

export async function startPlatform({
  perMinute,
  emulator: more = [],
  ...fleet
}: PlatformOptions): Promise<PlatformStage> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-bench-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const { projects, historyDays } = fleet;
    await writeFile(join(folder, 'fleet.json'), fleetFile(fleet));
    const lived = [
      '--projects',
      String(projects),
      '--computes-per-project',
      '1',
      '--load',
      '--history',
      String(historyDays),
    ];
    const which = historyDays === undefined ? ['--fleet', join(folder, 'fleet.json')] : lived;
    const limits = perMinute === UNLIMITED ? [] : ['--rate-limit', `${perMinute}/min`, '--burst', '40/s'];
    const args = [...which, '--api-key', KEY, '--operation-time', String(OPERATION_MS)];
    const emulator = command(['emulator', ...args, ...limits, ...more], {}, folder);
    undo.push(() => endServer(emulator, 'SIGTERM'));
    const { url } = JSON.parse(await firstLine(emulator, (line) => line.includes('"url"'))) as { url: string };
    const platformUrl = url.replace('/api/v2', '');
    for (let index = 0; index < (fleet.accounts ?? 0); index += 1) await makeKey(platformUrl, index);
    const onClose = (step: () => Promise<unknown>) => void undo.push(step);
    return { apiUrl: url, platformUrl, folder, requests: () => requestsOf(platformUrl), onClose, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface DaemonOptions {
  policy: string;
  daemons?: number;
  /** More lines of `ebb.yaml`. */
  settings?: string;
  /** More variables. */
  env?: Readonly<Record<string, string>>;
}

/** One daemon, or several on one Redis. */
export async function startDaemon({
  policy,
  daemons = 1,
  settings = '',
  env: more = {},
  ...options
}: PlatformOptions & DaemonOptions): Promise<Stage> {
  const platform = await startPlatform(options);
  const { folder, onClose } = platform;
  try {
    const redis = await startRedisServer();
    onClose(() => redis.close());
    await writeFile(join(folder, 'policy.yaml'), policy);
    await writeFile(join(folder, 'ebb.yaml'), `${settingsOf(options)}${settings}`);
    const env = {
      EBB_API_URL: platform.apiUrl,
      ...(options.accounts === undefined && { EBB_API_KEY: KEY }),
      ...Object.fromEntries(
        Array.from({ length: options.accounts ?? 0 }, (_, index) => [variableOf(index), keyOf(index)]),
      ),
      EBB_MODE: 'enforce',
      EBB_QUEUE_URL: redis.url,
      EBB_POLICIES: join(folder, 'policy.yaml'),
      EBB_LOG_LEVEL: 'info',
      ...more,
    };
    const start = async (each: number) => {
      const log = join(folder, `ebb-${each}.log`);
      const listen = `127.0.0.1:${await freePort()}`;
      const local = { EBB_LISTEN: listen, EBB_STATE_DIR: join(folder, `state-${each}`) };
      const daemon = command(['run'], { ...env, ...local }, folder, log);
      onClose(() => endServer(daemon, 'SIGTERM'));
      await waitForLine(log, '"ebb.start"');
      return { daemon, daemonUrl: `http://${listen}`, log };
    };
    const started: Awaited<ReturnType<typeof start>>[] = [];
    for (let each = 0; each < daemons; each += 1) started.push(await start(each));
    const [first] = started;
    if (first === undefined) throw new Error('no daemon');
    const all = {
      logs: started.map(({ log }) => log),
      daemons: started.map(({ daemon: one }) => one),
      urls: started.map(({ daemonUrl }) => daemonUrl),
    };
    const restart = async (...indexes: number[]) => {
      await Promise.all(indexes.map((each) => endServer(all.daemons[each] as ChildProcess, 'SIGTERM')));
      const again = await Promise.all(indexes.map(start));
      for (const [place, one] of again.entries()) {
        all.daemons[indexes[place] as number] = one.daemon;
        all.urls[indexes[place] as number] = one.daemonUrl;
      }
    };
    return { ...platform, ...first, ...all, redisUrl: redis.url, restart };
  } catch (error) {
    await platform.close();
    throw error;
  }
}

const variableOf = (index: number) => `EBB_API_KEY_${index}`;

function settingsOf({ perMinute, accounts = 0 }: PlatformOptions): string {
  const each = Array.from({ length: accounts }, (_, index) => {
    const account = { name: accountOf(index), api_key_env: variableOf(index), organization: `org-${accountOf(index)}` };
    return `  - ${JSON.stringify(account)}\n`;
  });
  return `api_requests_per_minute: ${perMinute}\n${accounts > 0 ? `accounts:\n${each.join('')}` : ''}`;
}

async function makeKey(platformUrl: string, index: number): Promise<void> {
  const key = { kind: 'organization', org: `org-${accountOf(index)}`, key: keyOf(index), name: keyOf(index) };
  const { body } = await request(`${platformUrl}/_emulator/keys`, { method: 'POST', body: JSON.stringify(key) });
  await body.dump();
}

/** With a log its output goes there: a reader that is slow must not slow down what is measured. */
function command(args: readonly string[], env: Record<string, string>, cwd: string, log?: string): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, '../dist/cli/main.js'), ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', log === undefined ? 'pipe' : openSync(log, 'w'), 'inherit', 'ipc'],
  });
}

async function waitForLine(file: string, wanted: string): Promise<void> {
  const giveUpMs = Date.now() + 60_000;
  while (!(await readFile(file, 'utf8')).includes(wanted)) {
    if (Date.now() > giveUpMs) throw new Error(`it never says ${wanted}`);
    await sleep(100);
  }
}

async function firstLine(child: ChildProcess, wanted: (line: string) => boolean): Promise<string> {
  if (!child.stdout) throw new Error('no output');
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => wanted(line) && resolve(line));
    child.on('close', () => reject(new Error('it ended before it was ready')));
  });
}

export async function requestsOf(platformUrl: string): Promise<Seen[]> {
  const { body } = await request(`${platformUrl}/_emulator/requests`);
  const { requests } = (await body.json()) as {
    requests: { method: string; path: string; at: string; status: number }[];
  };
  return requests.map(({ method, path, at, status }) => ({ method, path, status, atMs: Date.parse(at) }));
}

/** The sum of a daemon's metric over all labels. */
export async function metricOf(daemonUrl: string, name: string): Promise<number> {
  const { body } = await request(`${daemonUrl}/metrics`);
  const values = (await body.text()).matchAll(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'gm'));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Runs a command of the built ebb in the folder of a stage. Returns how long it took, in seconds. Throws if it ends with another exit code. */
export async function secondsOf(
  { apiUrl, folder }: Stage,
  args: readonly string[],
  { env, codes = [0] }: { env: Record<string, string>; codes?: readonly number[] },
): Promise<number> {
  const startedMs = performance.now();
  const main = join(import.meta.dirname, '../dist/cli/main.js');
  const child = spawn(process.execPath, [main, ...args], {
    ...{ cwd: folder, stdio: 'ignore' },
    env: { PATH: process.env.PATH, EBB_API_URL: apiUrl, ...env },
  });
  const [code] = await once(child, 'exit');
  if (!codes.includes(code)) throw new Error(`ebb ${args.join(' ')} ended with ${code}`);
  return (performance.now() - startedMs) / 1000;
}
