/** What commands show of a budget whose last step limits, as a leader has stored it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBudgets } from '../../src/app/usage/budget-store.ts';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { fleetFile } from './fleet-files.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.now() - (Date.now() % HOUR_MS);
const [FROM_MS, TO_MS] = [NOW_MS - 20 * DAY_MS, NOW_MS + 10 * DAY_MS];
const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');

const BASE = `version: 1
sources: { counts: { from: postgres, dsn_env: EBB_DSN_X } }
policies:
  - name: large
    kind: schedule
    select: { projects: ["dev"] }
    windows: [{ at: always, size: 0.25-4 }]
    otherwise: leave
  - name: room
    kind: headroom
    select: { projects: ["dev"] }
    connections: counts
    target: 80%
    max_size: 4
`;
const BUDGET = `  - name: dev-budget
    kind: budget
    select: { projects: ["dev"] }
    month: 100 CUh
    include_protected: true
    steps:
      - { at: 80% projected, limits: { size: { max: 2 } } }
      - { at: 100% spent, limits: { size: { max: 1 } } }
`;

describe('a budget whose last step limits', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let cwd = '';
  let env: Record<string, string> = {};
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  beforeAll(async () => {
    const platform = await startTestPlatform({ dev: { minCu: 0.25, maxCu: 4 } });
    undo.push(() => platform.close());
    // It sleeps before its clients come.
    const counts = Array.from({ length: 30 }, (_, minute) => {
      return `${iso(NOW_MS - HOUR_MS + minute * 60_000)},ep-dev,${minute < 10 ? 0 : 10}\n`;
    });
    const folder = await makeFolder({
      'policies.yaml': BASE + BUDGET,
      'without.yaml': BASE,
      'counts.csv': `time,compute,connections\n${counts.join('')}`,
      'fleet.json': fleetFile({ 'dev/ep-dev': { max_cu: 4 } }),
      'ebb.yaml': 'policies: policies.yaml\n',
    });
    undo.push(() => folder.remove());
    cwd = folder.path;
    const { url, group } = await prepareQueue(cwd);
    env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: url, EBB_GROUP: group };
    const read = readSettings({ env, cwd });
    if (!read.ok) throw new Error(JSON.stringify(read));
    const opened = await openStore(read.settings);
    if (!opened.ok) throw new Error(opened.problem);
    const { store, close } = opened.value;
    // A daemon has been here.
    await store.raiseGeneration({ setHash: 'a1' });
    const kept = await openBudgets(store);
    const step = { at: 1, of: 'spent' as const };
    await kept.replace([
      {
        ...{ policy: 'dev-budget', account: 'default', month: { unit: 'cu_hours', amount: 100 } },
        ...{ fromMs: FROM_MS, toMs: TO_MS, knownUntilMs: NOW_MS, decidedAtMs: NOW_MS, unknownHours: 0 },
        ...{ spent: 104, projected: { low: 110, mid: 120, high: 130 }, notified: [], released: [] },
        spans: [{ policy: 'dev-budget', account: 'default', ...step, fromMs: NOW_MS - DAY_MS, untilMs: TO_MS }],
      },
    ]);
    await close();
  });

  /** One at a time: an embedded store has one user. */
  async function ebb(...args: string[]) {
    const run = startEbb(args, { cwd, env });
    const status = await run.ended;
    return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
  }

  it('is shown, and counts in what is decided and foreseen', async () => {
    const explain = await ebb('explain', 'ep-dev');
    const status = await ebb('status');
    const forecast = await ebb('forecast', '--json');
    expect(explain.stdout, explain.stderr).toContain('step 100% spent (0.25-4 CU → 0.25-1 CU) [budget_step]');
    expect(status.stdout, status.stderr).toContain(
      'budget dev-budget (default): 104 % of 100 CUh spent, 110 % to 130 % by the end of the month; limits: 100% spent',
    );
    expect(forecast.stderr).toBe('');
    const { computes, budget_steps: expected } = JSON.parse(forecast.stdout);
    expect(computes[0].segments).toMatchObject([{ max_cu: 1, policies: ['dev-budget'] }]);
    // Only what does not limit yet is expected.
    expect(expected.map(({ step }: { step: string }) => step)).toEqual(['80% projected']);
  });

  it('counts in a diff, which names the step', async () => {
    const { status, stdout, stderr } = await ebb('diff', 'without.yaml', 'policies.yaml');
    expect(status, stderr).toBe(0);
    expect(stdout).toContain('size 0.25-4 → 0.25-1 CU: from ');
    const time = `from ${iso(NOW_MS - DAY_MS)} to ${iso(TO_MS)}`;
    expect(stdout).toContain(`\n  dev-budget (account default): 100% spent limits ${time}.\n`);
    expect(stderr).not.toContain('dev-budget');
  });

  it('counts in a backtest, from when the step began to limit', async () => {
    const backtest = ['backtest', '--policy', 'room', '--connections', 'counts.csv', '--fleet', 'fleet.json'];
    const text = await ebb(...backtest);
    const json = await ebb(...backtest, '--json');
    expect(text.stdout, text.stderr).toContain('dev-budget (account default): 100% spent limits from ');
    expect(JSON.parse(json.stdout).computes[0].changes).toMatchObject([
      { before: { max_cu: 4 }, after: { max_cu: 1 }, disconnects: false, policy: 'dev-budget' },
    ]);
  });

  it('is taken to limit nothing where nothing is known, and a note says so', async () => {
    const fleet = ['--fleet', 'fleet.json'];
    for (const args of [['forecast'], ['diff', 'without.yaml', 'policies.yaml']]) {
      const { stdout, stderr } = await ebb(...args, ...fleet, '--json');
      expect(stderr).toContain(
        'note: the spending of dev-budget is unknown: the forecast assumes that none of its steps limits',
      );
      expect(stdout).not.toContain('"max_cu": 1');
    }
  });

  it('is refused in one line where it is written wrongly, or is not there', async () => {
    await writeFile(join(cwd, 'wrong.yaml'), `${BASE}${BUDGET}`.replace('100% spent', '70% spent'));
    const validate = await ebb('validate', 'wrong.yaml');
    const release = await ebb('release', '--budget', 'nothing');
    const nothing = await ebb('release');
    expect([validate.status, release.status, nothing.status]).toEqual([1, 1, 1]);
    expect(`${validate.stdout}${validate.stderr}`).toMatch(/^wrong\.yaml:\d+:\d+: .*steps/m);
    expect(release.stderr).toBe('ebb: no budget nothing is known: ebb status');
    expect(nothing.stderr).toBe('ebb: give the id of a compute or of a hold, or --budget and the name of a budget');
  });
});
