/** What `ebb recommend --write` writes, applied: the same clients come for a fortnight, on a platform with and one without it. */

import { request } from 'undici';
import { expect, it } from 'vitest';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { FleetCompute, Load } from '../../src/emulator/fleet.ts';
import { DAY, HOUR, logNormal, SECOND, visits } from '../support/demand.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { printSeed, SEED } from '../support/seed.ts';

const PAST_DAYS = 28;
const FORTNIGHT_MS = 14 * DAY;
const MONTH_MS = 730 * HOUR;

/** Visits at random, about an hour apart, from the past to the end. */
function lonely(seed: number, nowMs: number): Load {
  const random = seededRandom(seed);
  const span = { fromMs: nowMs - PAST_DAYS * DAY, toMs: nowMs + FORTNIGHT_MS + DAY };
  const gap = () => logNormal(random, HOUR, 0.5);
  const all = visits(span, gap, () => 5 * SECOND);
  return {
    class: 'trace',
    points: all.flatMap(({ fromMs, toMs }) => [fromMs, toMs].map((atMs, end) => ({ atMs, cu: end === 0 ? 0.1 : 0 }))),
  };
}

const every = (minutes: number): Load => ({ class: 'cron_ping', cu: 0.1, everySeconds: 60 * minutes });

function computes(nowMs: number): Record<string, Partial<FleetCompute>> {
  const sized = { maxCu: 2, createdAtMs: nowMs - 100 * DAY };
  const visited = Array.from({ length: 6 }, (_, index): [string, Partial<FleetCompute>] => [
    `visited-${index}`,
    { ...sized, load: [lonely(SEED + index, nowMs)] },
  ]);
  return {
    ...Object.fromEntries(visited),
    'cron-30': { ...sized, load: [every(30)] },
    'cron-60': { ...sized, minCu: 0.5, load: [every(60)] },
    // It starts again half a minute after each suspend: a longer timeout uses a little more, and starts no more.
    'cron-5': { ...sized, load: [every(5.5)] },
    office: { ...sized, load: [{ class: 'office_users', cu: 1, utcOffsetHours: 1 }] },
    api: { ...sized, load: [{ class: 'bursty_api', cu: 1, utcOffsetHours: 0 }] },
    never: { ...sized, state: 'active', suspendTimeoutSeconds: -1, load: [every(120)] },
    forgotten: { ...sized, lastActiveAtMs: nowMs - 90 * DAY },
    busy: { ...sized, minCu: 1, maxCu: 4, state: 'active', connections: 300, load: [every(1)] },
  };
}

interface State {
  compute_id: string;
  cu_seconds: number;
  connections: number;
  connections_dropped: number;
  waiting: number;
  min_cu: number;
  max_cu: number;
}

interface Range {
  low: number;
  high: number;
}

interface Shown {
  compute_id: string;
  figure: string;
  proposed: object;
  saves: { cu_hours_month: Range; usd_month: Range };
  policy: string | null;
}

interface Changed {
  compute_id: string;
  differences: { new: object }[];
}

async function stateAt(platform: Platform, atMs: number): Promise<State[]> {
  await platform.control('clock', { now: new Date(atMs).toISOString() });
  const answer = await request(`${platform.origin}/_emulator/state`);
  return ((await answer.body.json()) as { computes: State[] }).computes;
}

function usedBy(states: readonly State[], ids: ReadonlySet<string>): number {
  return states.reduce((sum, { compute_id: id, cu_seconds: used }) => sum + (ids.has(id) ? used : 0), 0);
}

it('saves in a fortnight at least what was promised, and drops no client', async (test) => {
  printSeed();
  const nowMs = Date.now();
  const folder = await makeFolder({
    'ebb.yaml': 'plan: scale\nmode: enforce\n',
    'none.yaml': 'version: 1\npolicies: []\n',
  });
  test.onTestFinished(() => folder.remove());
  const platforms = await Promise.all(
    ['as it is', 'recommended'].map(() =>
      startTestPlatform(computes(nowMs), { historyMs: PAST_DAYS * DAY, seed: SEED }),
    ),
  );
  for (const platform of platforms) test.onTestFinished(() => platform.close());
  const [asItIs, recommended] = platforms as [Platform, Platform];
  const queue = await prepareQueue(folder.path);
  const ebb = async (platform: Platform, ...args: string[]) => {
    const env = {
      EBB_API_URL: platform.url,
      EBB_API_KEY: platform.apiKey,
      EBB_QUEUE_URL: queue.url,
      EBB_GROUP: queue.group,
    };
    const child = startEbb(args, { cwd: folder.path, env });
    expect({ status: await child.ended, stderr: child.stderr() }).toMatchObject({ status: 0 });
    return child.lines.join('\n');
  };

  const { findings } = JSON.parse(await ebb(asItIs, 'recommend', '--json', '--write', 'out')) as { findings: Shown[] };
  const certain = findings.filter(({ figure }) => figure === 'at_least' || figure === 'replayed');
  expect(new Set(certain.map(({ figure }) => figure)).size).toBe(2);
  const promised = certain.reduce((sum, { saves }) => sum + saves.cu_hours_month.low, 0) * (FORTNIGHT_MS / MONTH_MS);
  expect(promised).toBeGreaterThan(0);

  await ebb(asItIs, 'validate', 'out', '--strict');
  const diff = JSON.parse(await ebb(asItIs, 'diff', 'none.yaml', 'out', '--json')) as {
    computes: Changed[];
    saves: { figure: string; cu_hours_month: Range; usd_month: Range }[];
  };
  const shown = diff.computes.flatMap(({ compute_id: id, differences }) => differences.map((one) => [id, one.new]));
  const withPolicy = findings.filter(({ policy }) => policy !== null);
  expect(new Map(shown as [string, object][])).toEqual(
    new Map(withPolicy.map(({ compute_id: id, proposed }) => [id, expect.objectContaining(proposed)])),
  );
  // What is promised of a change is the same in both; a moment later the log is a moment longer.
  const byPolicy = (figure: string) => withPolicy.filter((one) => one.figure === figure);
  expect(diff.saves.map(({ figure }) => figure).toSorted()).toEqual(
    [...new Set(withPolicy.map(({ figure }) => figure))].toSorted(),
  );
  for (const { figure, ...saves } of diff.saves) {
    for (const unit of ['cu_hours_month', 'usd_month'] as const) {
      for (const end of ['low', 'high'] as const) {
        const same = byPolicy(figure).reduce((sum, one) => sum + one.saves[unit][end], 0);
        process.stdout.write(`${figure} ${unit} ${end}: recommend ${same.toFixed(2)}, diff ${saves[unit][end]}\n`);
        expect(Math.abs(saves[unit][end] - same)).toBeLessThanOrEqual(0.01 * Math.abs(same) + 0.05);
      }
    }
  }
  expect(await asItIs.writes()).toEqual([]);
  await ebb(recommended, 'apply', '--yes', '--policies', 'out');

  const fromMs = Date.now() + HOUR;
  const before = await Promise.all(platforms.map((platform) => stateAt(platform, fromMs)));
  const after = await Promise.all(platforms.map((platform) => stateAt(platform, fromMs + FORTNIGHT_MS)));
  const ids = new Set(certain.map(({ compute_id: id }) => id));
  const [used, less] = after.map((states, index) => usedBy(states, ids) - usedBy(before[index] ?? [], ids));
  const saved = ((used ?? 0) - (less ?? 0)) / 3600;
  process.stdout.write(`promised ${promised.toFixed(2)} CU-hours, saved ${saved.toFixed(2)}\n`);
  expect(saved).toBeGreaterThanOrEqual(promised);
  const dropped = after.map((states) => states.map(({ connections_dropped: many }) => many));
  expect(dropped[1]).toEqual(dropped[0]);
  for (const { connections, waiting, min_cu: minCu, max_cu: maxCu } of after[1] ?? []) {
    expect(waiting).toBeLessThanOrEqual(1);
    expect(CONNECTION_PROFILES.specification.maxConnections({ minCu, maxCu })).toBeGreaterThan(connections);
  }
}, 240_000);
