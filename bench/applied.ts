/** All findings of generated fleets applied: how far the next month's bill falls on the emulator, next to the saving that was expected. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { request } from 'undici';
import type { AwakeInterval } from '../src/domain/awake/intervals.ts';
import type { AccountPlan } from '../src/domain/compute/cost.ts';
import { forecastFleet } from '../src/domain/forecast/forecast.ts';
import { compilePolicies } from '../src/domain/policy/compiled-policies.ts';
import { type Fields, withProposed } from '../src/domain/recommend/finding.ts';
import { type Evidence, savingOf } from '../src/domain/recommend/saving.ts';
import { type Emulator, startEmulator } from '../src/emulator/server.ts';
import { parsePolicyFiles } from '../src/policy/parse.ts';
import { aCompute } from '../test/support/builders.ts';
import { HOUR } from '../test/support/demand.ts';
import { makeFolder } from '../test/support/platform.ts';
import { printTable } from './figures.ts';
import { PAST_MS, projectsOf } from './real-fleet.ts';

/** Fleets that nothing was tuned on. EBB_SEED names another first one. */
const FIRST_SEED = Number(process.env.EBB_SEED ?? 7201);
const FLEETS = Number(process.env.EBB_FLEETS ?? 20);
const PLANS: readonly AccountPlan[] = ['scale', 'launch', 'scale', 'free'];
const MONTH_MS = 730 * HOUR;
interface State {
  project_id: string;
  compute_id: string;
  min_cu: number;
  max_cu: number;
  suspend_timeout_seconds: number;
  cu_seconds: number;
}

const CLI = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

async function told<T>(platform: Emulator, path: string): Promise<T> {
  return (await (await request(`${platform.origin}/_emulator/${path}`)).body.json()) as T;
}

async function usedUntil(platform: Emulator, atMs: number): Promise<number> {
  await setClock(platform, atMs);
  const { computes } = await told<{ computes: State[] }>(platform, 'state');
  return computes.reduce((sum, { cu_seconds: used }) => sum + used, 0) / 3600;
}

async function setClock(platform: Emulator, atMs: number): Promise<void> {
  const body = JSON.stringify({ now: new Date(atMs).toISOString() });
  const headers = { 'content-type': 'application/json' };
  await (await request(`${platform.origin}/_emulator/clock`, { method: 'POST', headers, body })).body.dump();
}

async function startsSince(platform: Emulator, fromMs: number): Promise<number> {
  const { computes } = await told<{ computes: { awake: { from: string }[] }[] }>(platform, 'state/usage');
  return computes.flatMap(({ awake }) => awake).filter(({ from }) => Date.parse(from) >= fromMs).length;
}

interface UsageState {
  branches: { branch_id: string; quarters: { start: string; cu_seconds: number }[] }[];
  computes: { compute_id: string; branch_id: string; awake: { from: string; to?: string }[] }[];
}

/** What the same settings save of the month itself, by the same estimate: then use is known, and only the effect of timeouts is not. */
async function savingInHindsight(
  platform: Emulator,
  made: readonly Shown[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<number> {
  const { branches, computes } = await told<UsageState>(platform, 'state/usage');
  const { computes: states } = await told<{ computes: State[] }>(platform, 'state');
  const savings = states.map(({ compute_id: id, min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: seconds }) => {
    const proposals = made.filter(({ compute_id: of }) => of === id);
    if (proposals.length === 0) return 0;
    const { branch_id: branchId, awake = [] } = computes.find((one) => one.compute_id === id) ?? {};
    const quarters = branches.find((one) => one.branch_id === branchId)?.quarters ?? [];
    const hours = new Map<number, number>();
    for (const { start, cu_seconds: used } of quarters) {
      const startMs = Math.floor(Date.parse(start) / HOUR) * HOUR;
      if (startMs >= fromMs) hours.set(startMs, (hours.get(startMs) ?? 0) + used);
    }
    const had = { minCu, maxCu, suspendTimeoutSeconds: seconds };
    const intervals = awake.flatMap(({ from, to }): AwakeInterval[] => {
      const endMs = to === undefined ? toMs : Date.parse(to);
      const startMs = Math.max(fromMs, Date.parse(from));
      return endMs > fromMs ? [{ startMs, endMs, start: 'client', end: to === undefined ? 'open' : 'timeout' }] : [];
    });
    const evidence: Evidence = {
      ...{ compute: aCompute({ ...had, computeId: id }), had },
      hours: [...hours].map(([startMs, cuSeconds]) => ({ startMs, seconds: 3600, cuSeconds })),
      history: { fromMs, toMs, intervals, unknown: [], startDurationsMs: [] },
    };
    const wanted = proposals.reduce((settings, { proposed }) => withProposed(settings, proposed), had);
    const saving = savingOf({ evidence, rules: [{ ...wanted, fromMs, toMs }], priceAt: () => undefined });
    return (saving?.month.saved.cuSeconds.mid ?? 0) / 3600;
  });
  return savings.reduce((sum, saved) => sum + saved, 0);
}

/** Writes the settings that the policies want, when they want them, until the end. */
async function followPolicies(
  platform: Emulator,
  folder: string,
  { plan, ...span }: { plan: AccountPlan; fromMs: number; toMs: number },
): Promise<void> {
  const paths = await readdir(folder).catch(() => []);
  const files = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(folder, path), 'utf8') })),
  );
  if (files.length === 0) return;
  const parsed = parsePolicyFiles(files);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  const { computes } = await told<{ computes: State[] }>(platform, 'state');
  const subjects = computes.map((one) => ({
    compute: aCompute({
      ...{ computeId: one.compute_id, projectId: one.project_id, projectName: one.project_id },
      ...{ minCu: one.min_cu, maxCu: one.max_cu, suspendTimeoutSeconds: one.suspend_timeout_seconds },
    }),
  }));
  const policies = compilePolicies(parsed.set);
  const changes = forecastFleet({ policies, subjects, ...span }).flatMap(({ segments }, index) =>
    segments.map((segment) => ({ ...segment, compute: subjects[index]?.compute })),
  );
  for (const { compute, fromMs, ...settings } of changes.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (fromMs > span.fromMs) await setClock(platform, fromMs);
    const { minCu, maxCu, suspendTimeoutSeconds } = settings;
    await patch(platform, `projects/${compute?.projectId}/endpoints/${compute?.computeId}`, {
      ...{ autoscaling_limit_min_cu: minCu, autoscaling_limit_max_cu: maxCu },
      ...(plan !== 'free' && { suspend_timeout_seconds: suspendTimeoutSeconds }),
    });
  }
}

async function patch(platform: Emulator, path: string, endpoint: object): Promise<void> {
  const headers = { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ endpoint });
  const answer = await request(`${platform.url}/${path}`, { method: 'PATCH', headers, body });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${text}`);
}

interface Shown {
  compute_id: string;
  proposed: Fields;
  saves: { cu_hours_month: { low: number; mid: number; high: number } };
  policy: string | null;
}

export async function run(): Promise<void> {
  const rows: string[][] = [];
  const all = { mid: 0, fell: 0, hindsight: 0 };
  for (let index = 0; index < FLEETS; index += 1) {
    const seed = FIRST_SEED + index;
    const plan = PLANS[index % PLANS.length] ?? 'scale';
    const nowMs = Date.now();
    const projects = projectsOf(seed, plan, nowMs);
    const start = () =>
      startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet: { projects, historyMs: PAST_MS }, seed });
    const [asItIs, applied] = await Promise.all([start(), start()]);
    const folder = await makeFolder({ 'ebb.yaml': `plan: ${plan}\n` });
    try {
      const env = { EBB_API_URL: asItIs.url, EBB_API_KEY: asItIs.apiKey };
      const options = { cwd: folder.path, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 };
      const args = [CLI, 'recommend', '--json', '--write', 'out'];
      const { stdout } = await promisify(execFile)(process.execPath, args, options);
      const { findings } = JSON.parse(stdout) as { findings: Shown[] };
      const made = findings.filter(({ policy }) => policy !== null);
      const sum = (end: 'low' | 'mid' | 'high') =>
        made.reduce((total, { saves }) => total + saves.cu_hours_month[end], 0);
      const fromMs = Date.now() + HOUR;
      const platforms = [asItIs, applied] as const;
      const before = await Promise.all(platforms.map((platform) => usedUntil(platform, fromMs)));
      await followPolicies(applied, join(folder.path, 'out'), { plan, fromMs, toMs: fromMs + MONTH_MS });
      const after = await Promise.all(platforms.map((platform) => usedUntil(platform, fromMs + MONTH_MS)));
      const [bill = 0, less = 0] = after.map((used, at) => used - (before[at] ?? 0));
      const starts = await Promise.all(platforms.map((platform) => startsSince(platform, fromMs)));
      const added = ((starts[1] ?? 0) - (starts[0] ?? 0)) / projects.length;
      const hindsight = await savingInHindsight(asItIs, made, { fromMs, toMs: fromMs + MONTH_MS });
      all.hindsight += hindsight;
      all.mid += sum('mid');
      all.fell += bill - less;
      const ratio = sum('mid') > 0 ? ((bill - less) / sum('mid')).toFixed(2) : 'nothing to apply';
      const expected = `${sum('mid').toFixed(0)} (${sum('low').toFixed(0)}–${sum('high').toFixed(0)})`;
      rows.push([
        String(seed),
        plan,
        String(made.length),
        bill.toFixed(0),
        expected,
        (bill - less).toFixed(0),
        ratio,
        hindsight > 0 ? ((bill - less) / hindsight).toFixed(2) : '',
        added.toFixed(0),
      ]);
      process.stderr.write(`${rows.at(-1)?.join(' ')}\n`);
    } finally {
      await Promise.all([asItIs.close(), applied.close(), folder.remove()]);
    }
  }
  const ratios = [all.mid, all.hindsight].map((expected) => (all.fell / expected).toFixed(2));
  rows.push(['all', '', '', '', all.mid.toFixed(0), all.fell.toFixed(0), ...ratios, '']);
  const head = [
    'fleet',
    'plan',
    'findings',
    'CU-hours a month',
    'expected to save',
    'saved',
    'saved ÷ expected',
    '÷ in hindsight',
  ];
  printTable([...head, 'starts added a compute'], rows);
}
