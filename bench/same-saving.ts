/** The saving of the same policies, wherever ebb says it: in recommend, plan, diff and the API, without a daemon, from files, and beside a daemon. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { request } from 'undici';
import { startEmulator } from '../src/emulator/server.ts';
import { startTestDaemon } from '../test/support/daemon.ts';
import { makeFolder, prepareQueue } from '../test/support/platform.ts';
import { printTable } from './figures.ts';
import { PAST_MS, projectsOf } from './real-fleet.ts';

/** Fleets that nothing was tuned on. EBB_SEED names another first one. */
const FIRST_SEED = Number(process.env.EBB_SEED ?? 7301);
const FLEETS = Number(process.env.EBB_FLEETS ?? 5);

const CLI = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

interface Findings {
  findings: { saves: { usd_month: { mid: number } | null }; policy: string | null }[];
}

/** Dollars a month of the findings that have a policy. */
const sumOf = ({ findings }: Findings) =>
  findings.reduce((sum, { saves, policy }) => sum + (policy === null ? 0 : (saves.usd_month?.mid ?? 0)), 0);

/** The first amount of the sentence of plan and diff. */
function savedIn(text: string): number {
  const [, dollars] = /it saves (?:up to )?\$([\d.,]+)/.exec(text) ?? [];
  return Number(dollars?.replaceAll(',', '') ?? Number.NaN);
}

async function placesOf(seed: number): Promise<[place: string, dollars: number][]> {
  const projects = projectsOf(seed, 'scale', Date.now());
  const listen = { host: '127.0.0.1', port: 0 };
  const platform = await startEmulator({ listen, fleet: { projects, historyMs: PAST_MS }, seed });
  const folder = await makeFolder({ 'ebb.yaml': 'plan: scale\n', 'none.yaml': 'version: 1\npolicies: []\n' });
  const { url: queueUrl, group } = await prepareQueue(folder.path);
  const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: queueUrl, EBB_GROUP: group };
  const ebb = async (...args: string[]) => {
    const options = { cwd: folder.path, env: { ...process.env, ...env, NO_COLOR: '1' }, maxBuffer: 2 ** 26 };
    const run = promisify(execFile)(process.execPath, [CLI, ...args], options);
    // Exit code 2 is a plan with something to do.
    const { stdout } = await run.catch((error) => (error.code === 2 ? error : Promise.reject(error)));
    return String(stdout);
  };
  const everywhere = async (where: string, files: string[]) => {
    return [
      [`recommend${where}`, sumOf(JSON.parse(await ebb('recommend', '--json', ...files)))],
      [`plan${where}`, savedIn(await ebb('plan', '--policies', 'out', ...files))],
      [`diff${where}`, savedIn(await ebb('diff', 'none.yaml', 'out', ...files))],
    ] satisfies [string, number][];
  };
  try {
    await ebb('recommend', '--write', 'out');
    const places: [string, number][] = await everywhere('', []);
    await ebb('usage', 'export', '--out', 'past');
    await ebb('snapshot', '--out', 'fleet.json');
    const past = ['--usage', 'past/usage.csv', '--operations', 'past/operations.csv', '--fleet', 'fleet.json'];
    places.push(...(await everywhere(' from files', past)));
    await writeFile(join(folder.path, 'policy.yaml'), 'version: 1\npolicies: []\n');
    const daemonEnv = { ...env, EBB_MODE: 'observe' };
    const daemon = await startTestDaemon({
      platform: platform as never,
      folder: folder.path,
      env: daemonEnv,
      wasteMs: 1_000,
    });
    try {
      const wasteUrl = `${daemon.url}/api/v1/waste`;
      for (let known = 0; known < projects.length; ) {
        await new Promise((wake) => setTimeout(wake, 500));
        const answer = (await (await request(wasteUrl)).body.json()) as Findings & { projects: number };
        known = answer.projects;
        if (known === projects.length) places.push(['/api/v1/waste', sumOf(answer)]);
      }
      places.push(...(await everywhere(' beside a daemon', [])));
    } finally {
      await daemon.stop();
    }
    return places;
  } finally {
    await Promise.all([platform.close(), folder.remove()]);
  }
}

export async function run(): Promise<void> {
  const columns: [place: string, dollars: number][][] = [];
  for (let index = 0; index < FLEETS; index += 1) columns.push(await placesOf(FIRST_SEED + index));
  const rows = (columns[0] ?? []).map(([place], row) => [
    place,
    ...columns.map((column) => (column[row]?.[1] ?? Number.NaN).toFixed(2)),
  ]);
  printTable(['dollars a month, by', ...columns.map((_, index) => `fleet ${FIRST_SEED + index}`)], rows);
}
