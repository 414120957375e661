import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS_HEADER, operationLine } from '../../src/domain/awake/operations-csv.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { cron, DAY, MINUTE, simulate } from '../support/demand.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { fleetFile } from './fleet-files.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 14 * DAY, toMs: TO };

function operations(): string {
  const random = seededRandom(5);
  const activities = cron(random, SPAN, 20 * MINUTE);
  const { operations: rows } = simulate({
    ...SPAN,
    random,
    activities,
    timeoutSeconds: 300,
    projectId: 'web',
    computeId: 'ep-web',
  });
  return [OPERATIONS_HEADER, ...rows.map(operationLine), ''].join('\n');
}

let platform: Platform;
let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  platform = await startTestPlatform({ calm: {}, never: { state: 'active', suspendTimeoutSeconds: -1 } });
  const fleet = fleetFile({ 'web/ep-web': { state: 'idle' }, 'never/ep-never': { suspend_timeout_seconds: -1 } });
  folder = await makeFolder({
    'operations.csv': operations(),
    'broken.csv': `${OPERATIONS_HEADER}\nweb,ep-web,start_compute,finished,yesterday,1\n`,
    'fleet.json': fleet,
    'ebb.yaml': 'plan: launch\n',
  });
});

afterAll(async () => {
  await platform.close();
  await folder.remove();
});

async function ebb(args: string[], env: Record<string, string> = {}) {
  const child = startEbb(args, { cwd: folder.path, env });
  const status = await child.ended;
  return { status, stdout: child.lines.join('\n'), stderr: child.stderr() };
}

const FILES = ['--operations', 'operations.csv', '--fleet', 'fleet.json'];

describe('ebb awake', () => {
  it('finds causes in files, without a key', async () => {
    const { status, stdout, stderr } = await ebb(['awake', '--json', ...FILES]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const probe = {
      ...{ project_id: 'web', compute_id: 'ep-web', cause: 'periodic_probe', figure: 'estimate' },
      ...{ period_seconds: expect.closeTo(1200, -1), awake_share: expect.closeTo(0.25, 1) },
    };
    expect(JSON.parse(stdout)).toEqual([expect.objectContaining(probe)]);
    // A quarter of 730 hours, from 0.25 to 1 CU, at $0.106.
    const [{ usd_month }] = JSON.parse(stdout);
    expect(usd_month.high / usd_month.low).toBeCloseTo(4, 1);
    expect(usd_month.low).toBeCloseTo(730 * 0.25 * 0.25 * 0.106, 0);
    const text = await ebb(['awake', 'web', ...FILES]);
    expect(text.stdout).toContain('web / ep-web: periodic_probe every 20m, awake');
  });

  it('shows what an owner has, or what is selected, and refuses an owner of nothing', async () => {
    const idsOf = async (...flags: string[]) => {
      const { stdout } = await ebb(['awake', '--json', ...FILES, ...flags]);
      return (JSON.parse(stdout) as { compute_id: string }[]).map(({ compute_id: id }) => id);
    };
    expect(await idsOf('--owner', 'unowned', '--select', 'projects=web')).toEqual(['ep-web']);
    expect(await idsOf('--select', 'projects=never')).toEqual([]);
    const refused = await ebb(['awake', ...FILES, '--owner', 'somebody']);
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('--owner: nothing belongs to somebody; owners are unowned'),
    });
  });

  it('says in which line a file is wrong, and which flags belong together', async () => {
    const wrong = await ebb(['awake', '--operations', 'broken.csv', '--fleet', 'fleet.json']);
    expect(wrong).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/broken\.csv:2: created_at is not an instant/),
    });
    const alone = await ebb(['awake', '--operations', 'operations.csv']);
    expect(alone).toMatchObject({ status: 1, stderr: expect.stringMatching(/--operations needs --fleet/) });
    const days = await ebb(['awake', '--days', '1', ...FILES]);
    expect(days).toMatchObject({ status: 1, stderr: expect.stringMatching(/whole days from 2 to 180/) });
  });

  it('reads the live fleet once, writes nothing and starts nothing', async () => {
    const env = { EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey };
    const { status, stdout } = await ebb(['awake', '--json'], env);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ compute_id: 'ep-never', cause: 'never_suspends', advice: expect.any(String) }),
    ]);
    expect(await platform.writes()).toEqual([]);
    const routes = (await platform.requests()).map(({ route }) => route);
    expect(routes.filter((route) => route.endsWith('/operations'))).toHaveLength(2);
    // The usage of the billing period of each project, too, since nothing has hourly usage here.
    expect(routes.length).toBeLessThanOrEqual(8);
  });
});
