/** Costs and savings of what daemons have collected: longer than the control API knows it, and the same as on files. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collectUsage } from '../../src/app/usage/collect-usage.ts';
import { keepTrialDays, keepTrialPolicies } from '../../src/app/usage/trial-days.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { openStore } from '../../src/compose/store.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { type UsageUnit, unitName } from '../../src/domain/usage/usage.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import type { ControlApi, UsagePages } from '../../src/ports/control-api.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue } from '../support/platform.ts';
import { DAY_MS, HOUR_MS, usageFleet } from '../usage/support.ts';
import { onTrial } from './fleet-files.ts';

const PLACE = { account: 'default', organization: 'org-acme' };
const PROJECTS = ['one', 'two', 'three'];
const NOW_MS = Date.now() - (Date.now() % HOUR_MS);
const TODAY_MS = NOW_MS - (NOW_MS % DAY_MS);
/** Eight weeks that have ended four days ago. */
const [FROM_MS, UNTIL_MS] = [TODAY_MS - 60 * DAY_MS, TODAY_MS - 4 * DAY_MS];
const BEGIN_MS = FROM_MS - 60 * DAY_MS;
/** A month of which the control API no longer knows the first days. */
const MONTH = new Date(TODAY_MS - 75 * DAY_MS).toISOString().slice(0, 7);

const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const POLICIES = onTrial(day(FROM_MS), day(UNTIL_MS), 'timezone: Europe/Berlin\nowner: team-web\n');

/** CU-seconds by hour of each branch, and of the project that has it. */
function hoursUsed(): Map<string, Map<number, number>> {
  const random = seededRandom(5);
  const used = new Map<string, Map<number, number>>();
  for (const projectId of PROJECTS) {
    const ofProject = new Map<number, number>();
    for (const branch of ['main', 'dev']) {
      const hours = new Map<number, number>();
      for (let ms = BEGIN_MS; ms < NOW_MS - HOUR_MS; ms += HOUR_MS) {
        hours.set(ms, Math.round(4000 * random()));
        ofProject.set(ms, (ofProject.get(ms) ?? 0) + (hours.get(ms) ?? 0));
      }
      used.set(`${projectId}/br-${projectId}-${branch}`, hours);
    }
    used.set(projectId, ofProject);
  }
  return used;
}

const USED = hoursUsed();
const UNITS = [...USED.keys()].map((name): UsageUnit => {
  const [projectId = '', branchId = null] = name.split('/');
  return { projectId, branchId };
});

/** The routes for usage as they answered at an instant. */
function usageAt(nowMs: number): ControlApi['usage'] {
  return async ({ level, granularity, fromMs, toMs }) => {
    const seconds = { hourly: 3600, daily: 86_400, monthly: 86_400 * 31 }[granularity];
    const units = UNITS.filter(({ branchId }) => (branchId === null) === (level === 'projects'));
    const pages: UsagePages = { plans: new Map(), units: [] };
    for (const unit of granularity === 'monthly' ? [] : units) {
      const buckets = new Map<number, Record<string, number>>();
      for (const [ms, value] of USED.get(unitName(unit)) ?? []) {
        if (ms < fromMs || ms >= toMs || ms + HOUR_MS > nowMs - HOUR_MS) continue;
        const startMs = ms - (ms % (seconds * 1000));
        buckets.set(startMs, { compute_unit_seconds: (buckets.get(startMs)?.compute_unit_seconds ?? 0) + value });
      }
      pages.units.push({ ...unit, buckets });
    }
    return { ok: true, value: pages };
  };
}

/** Every hour that there was, as somebody has stored it who exported it each week. */
function usageFile(): string {
  const lines = [...USED].flatMap(([name, hours]) => {
    const [projectId = '', branchId = ''] = name.split('/');
    return [...hours].map(
      ([ms, value]) => `${name},${projectId},${branchId},${new Date(ms).toISOString()},3600,${value}`,
    );
  });
  return ['unit,project_id,branch_id,start,seconds,cu_seconds', ...lines, ''].join('\n');
}

describe('what daemons have collected', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let cwd = '';
  let env: Record<string, string> = {};
  let asked = async (): Promise<number> => 0;
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  beforeAll(async () => {
    const emulator = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet: usageFleet() });
    undo.push(() => emulator.close());
    asked = async () => {
      const answer = await fetch(`${new URL(emulator.url).origin}/_emulator/requests`);
      const { requests } = (await answer.json()) as { requests: { path: string }[] };
      return requests.filter(({ path }) => path.includes('consumption_history')).length;
    };
    const folder = await makeFolder({
      'policies.yaml': POLICIES,
      'usage.csv': usageFile(),
      'ebb.yaml': 'plan: scale\npolicies: policies.yaml\nowners: { "one-*": shop }\n',
    });
    undo.push(() => folder.remove());
    cwd = folder.path;
    const { url, group } = await prepareQueue(cwd);
    env = { EBB_API_URL: emulator.url, EBB_API_KEY: emulator.apiKey, EBB_QUEUE_URL: url, EBB_GROUP: group };
    const read = readSettings({ env, cwd });
    const loaded = await loadPolicySet({ paths: [join(cwd, 'policies.yaml')], settings: DEFAULT_POLICY_SETTINGS });
    if (!read.ok || !loaded.ok) throw new Error(JSON.stringify([read, loaded]));
    const trial = loaded.set.policies.find((policy) => policy.kind === 'trial');
    if (!trial) throw new Error('no trial');
    const opened = await openStore(read.settings);
    if (!opened.ok) throw new Error(opened.problem);
    const { store, close } = opened.value;
    // A daemon has been here.
    await store.raiseGeneration({ setHash: 'a1' });
    const stored = usageAccount(store, PLACE);
    const units = PROJECTS.map((projectId) => ({ projectId, branchId: null }));
    // A reading a day: hours are stored for two weeks, so the days of the trial must be stored as they come.
    const readings = Array.from({ length: (TODAY_MS - BEGIN_MS) / DAY_MS }, (_, index) => TODAY_MS - index * DAY_MS);
    for (const nowMs of [...readings.reverse(), NOW_MS]) {
      const keepTrials = async () => {
        await keepTrialDays(store, PLACE, { stored, trial: { ...trial, units }, nowMs });
        return [trial.name];
      };
      const organization = { ...PLACE, projectIds: PROJECTS };
      const done = await collectUsage({ api: { usage: usageAt(nowMs) }, stored, organization, nowMs, keepTrials });
      if (!done.ok) throw new Error(done.error.message);
    }
    for (const [day, revision] of ['v1', 'v1', 'v2'].entries()) {
      const now = { atMs: FROM_MS + (1 + day) * DAY_MS, setHash: `hash of ${revision}`, revision };
      await keepTrialPolicies(store, PLACE, trial, now);
    }
    await close();
  });

  async function ebb(...args: string[]) {
    const run = startEbb(args, { cwd, env });
    const status = await run.ended;
    return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
  }

  it('ebb cost knows more than 60 days, and the same as the files', async () => {
    const before = await asked();
    const stored = await ebb('cost', '--month', MONTH, '--json');
    expect(stored.status, stored.stderr).toBe(0);
    expect(await asked()).toBe(before);
    expect((await ebb('snapshot', '--out', 'fleet.yaml')).status).toBe(0);
    const files = await ebb('cost', '--month', MONTH, '--json', '--usage', 'usage.csv', '--fleet', 'fleet.yaml');
    expect(JSON.parse(stored.stdout)).toEqual(JSON.parse(files.stdout));
    expect(JSON.parse(stored.stdout).lines.map(({ name }: { name: string }) => name)).toContain('shop');
  });

  it('ebb savings measures a trial by local days: the same as on the files', async () => {
    const stored = await ebb('savings', '--json');
    expect({ ...stored, stdout: '' }).toEqual({ status: 0, stdout: '', stderr: '' });
    const report = JSON.parse(stored.stdout);
    expect(report).toMatchObject({ state: 'complete', unknown_hours: 0, units: 3 });
    // The first day of each of eight periods is left out.
    expect(report.unit_days.control + report.unit_days.treated).toBe(3 * 48);
    await ebb('snapshot', '--out', 'fleet.yaml');
    const files = await ebb('savings', '--json', '--usage', 'usage.csv', '--fleet', 'fleet.yaml');
    expect(JSON.parse(files.stdout)).toEqual({ ...report, policies_changed: null });
    const at = new Date(FROM_MS + 3 * DAY_MS).toISOString().replace('.000', '');
    expect(report.policies_changed).toEqual([{ at, set_hash: 'hash of v2', revision: 'v2' }]);
    expect((await ebb('savings')).stdout).toContain(`changed   policies, during the trial: ${at} (v2)`);
  });

  it('ebb forecast says what is expected, within its bounds', async () => {
    const forecast = await ebb('forecast', '--json');
    expect(forecast.status, forecast.stderr).toBe(0);
    for (const { cu_hours, cu_hours_expected: expected } of JSON.parse(forecast.stdout).computes) {
      const { figure, low, mid, high } = expected;
      const ends = [cu_hours.low, low, mid, high, cu_hours.high];
      expect([figure, ends]).toEqual(['estimate', ends.toSorted((a, b) => a - b)]);
    }
    await ebb('snapshot', '--out', 'fleet.yaml');
    const fromFiles = ['forecast', '--fleet', 'fleet.yaml'];
    const [known, unknown] = await Promise.all([ebb(...fromFiles, '--usage', 'usage.csv'), ebb(...fromFiles)]);
    expect(known.stdout).toMatch(/^Expected: [\d,.]+ CU-hours \(.*\), \$[\d,.]+ a month \(\$/m);
    expect(unknown.stdout).toContain('Expected: no usage data');
  });

  it('ebb diff and plan say what policies cost or save a month', async () => {
    await ebb('snapshot', '--out', 'fleet.yaml');
    await writeFile(join(cwd, 'larger.yaml'), POLICIES.replaceAll('size: 1-4', 'size: 4'));
    const files = ['--fleet', 'fleet.yaml', '--usage', 'usage.csv'];
    const [diff, plan] = await Promise.all([
      ebb('diff', 'policies.yaml', 'larger.yaml', ...files),
      ebb('plan', ...files),
    ]);
    expect(diff.stdout, diff.stderr).toMatch(
      /it costs \$[\d,.]+ a month \(.* to .*\); the expected cost goes from \$[\d,.]+ to \$[\d,.]+/,
    );
    expect(plan.stdout, plan.stderr).toMatch(/^With these policies it (saves|costs) \$[\d,.]+ a month \(/m);
  });

  it('what is exported of it gives the same bill', async () => {
    expect((await ebb('usage', 'export', '--out', 'past')).status).toBe(0);
    await ebb('snapshot', '--out', 'fleet.yaml');
    const [exported, whole] = await Promise.all(
      ['past/usage.csv', 'usage.csv'].map((file) =>
        ebb('cost', '--month', MONTH, '--csv', '--usage', file, '--fleet', 'fleet.yaml'),
      ),
    );
    expect(exported).toEqual(whole);
  });

  it('without a store the control API is asked', async () => {
    const before = await asked();
    await ebb('cost', '--queue-url', 'embedded:nothing', '--json');
    expect(await asked()).toBeGreaterThan(before);
  });
});
