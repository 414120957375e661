/** How soon `ebb recommend` shows first findings of a fleet under the vendor's limits, and what it asks for, alone and beside another client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { endServer } from '../test/support/child-server.ts';
import { makeFolder } from '../test/support/platform.ts';
import { printTable } from './figures.ts';
import { KEY, requestsOf, type Seen } from './fleet-stage.ts';

const PROJECTS = 300;
const PER_MINUTE = 700;
const HISTORY_DAYS = 7;
const MAIN = join(import.meta.dirname, '../dist/cli/main.js');

/** What another client on the account asks for in a minute, at an even pace. */
const OTHERS_PER_MINUTE = [0, 300];

export async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const others of OTHERS_PER_MINUTE) rows.push(await measure(others));
  printTable(
    [
      ...[`${PROJECTS} projects, others a minute`, 'first findings', 'all', 'requests', 'in the busiest minute'],
      ...['429 of ebb', '429 of others', 'writes'],
    ],
    rows,
  );
}

async function measure(others: number): Promise<string[]> {
  const fleet = [
    '--projects',
    String(PROJECTS),
    '--computes-per-project',
    '1',
    '--load',
    '--history',
    String(HISTORY_DAYS),
    '--seed',
    '1',
  ];
  const limits = ['--rate-limit', `${PER_MINUTE}/min`, '--burst', '40/s', '--usage-limit', '50'];
  const emulator = spawn(process.execPath, [MAIN, 'emulator', ...fleet, ...limits, '--api-key', KEY], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const folder = await makeFolder();
  const stop = new AbortController();
  try {
    const [line] = await once(createInterface({ input: emulator.stdout }), 'line');
    const { url } = JSON.parse(line) as { url: string };
    const platform = url.replace('/api/v2', '');
    const beside = askBeside(url, others, stop.signal);
    // The limit counts a minute: the other client is there before ebb comes.
    if (others > 0) await sleep(60_000);
    const { firstS, allS } = await recommend(url, folder.path);
    stop.abort();
    await beside;
    const all = await requestsOf(platform);
    const [ebbs, theirs] = [all.filter((one) => !isOther(one)), all.filter(isOther)];
    const refused = (seen: readonly Seen[]) => String(seen.filter(({ status }) => status === 429).length);
    return [
      ...[String(others), `${firstS.toFixed(0)} s`, `${allS.toFixed(0)} s`, String(ebbs.length), share(ebbs)],
      ...[refused(ebbs), `${refused(theirs)} of ${theirs.length}`],
      String(all.filter(({ method }) => method !== 'GET').length),
    ];
  } finally {
    stop.abort();
    await endServer(emulator, 'SIGTERM');
    await folder.remove();
  }
}

/** A route that ebb does not ask. */
const OTHER_ROUTE = '/users/me';
const isOther = ({ path }: Seen) => path.endsWith(OTHER_ROUTE);

async function askBeside(url: string, perMinute: number, signal: AbortSignal): Promise<void> {
  while (perMinute > 0 && !signal.aborted) {
    const { body } = await request(`${url}${OTHER_ROUTE}`, { headers: { authorization: `Bearer ${KEY}` } });
    await body.dump();
    await sleep(60_000 / perMinute, undefined, { signal }).catch(() => undefined);
  }
}

/** Seconds from the start of the command to its first findings, and to its end. */
async function recommend(apiUrl: string, cwd: string): Promise<{ firstS: number; allS: number }> {
  const env = { PATH: process.env.PATH, EBB_API_URL: apiUrl, EBB_API_KEY: KEY };
  const startedMs = performance.now();
  const passedS = () => (performance.now() - startedMs) / 1000;
  const child = spawn(process.execPath, [MAIN, 'recommend', '--json'], {
    cwd,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let firstS: number | undefined;
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.startsWith('first findings')) firstS ??= passedS();
    else process.stdout.write(`  ${line}\n`);
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.stdout.write(`ebb recommend ended with ${code}\n`);
  return { firstS: firstS ?? passedS(), allS: passedS() };
}

/** The most requests in a minute, and which share of the limit that is. */
function share(seen: readonly Seen[]): string {
  const most = Math.max(
    ...seen.map(({ atMs: from }) => seen.filter(({ atMs }) => atMs >= from && atMs < from + 60_000).length),
  );
  return `${most} (${Math.round((100 * most) / PER_MINUTE)} %)`;
}
