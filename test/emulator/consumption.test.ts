import { createApiClient } from '@neondatabase/api-client';
import { afterEach, describe, expect, it } from 'vitest';
import type { Consumption, Fleet } from '../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../src/emulator/server.ts';
import { compute, START_MS, startTestEmulator, type TestEmulator } from './support.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const API = { class: 'bursty_api', cu: 1, utcOffsetHours: 0 } as const;

/** Two projects of an organization, one of them with a second branch, and a week behind them. */
function fleet(consumption: Partial<Consumption> = {}, projects = 2): Fleet {
  const project = (id: string) => ({
    ...{ id, name: id, account: 'acme', regionId: 'aws-eu-central-1', pgVersion: 17 },
    computes: [
      compute({ id: `ep-${id}`, branchId: `br-${id}`, load: [API] }),
      compute({ id: `ep-${id}-dev`, branchId: `br-${id}-dev`, load: [{ ...API, cu: 2 }] }),
    ],
  });
  const names = ['one', 'two', 'three'].slice(0, projects);
  return { projects: names.map(project), historyMs: 8 * DAY_MS, consumption };
}

let running: TestEmulator | undefined;
afterEach(async () => {
  await running?.emulator.close();
  running = undefined;
});

async function start(of: Fleet, options: Partial<EmulatorOptions> = {}): Promise<TestEmulator> {
  running = await startTestEmulator({ fleet: of, availabilityCheckMs: 0, ...options });
  return running;
}

const iso = (ms: number): string => new Date(ms).toISOString();

interface Asked {
  fromMs?: number;
  toMs?: number;
  granularity?: string;
  more?: string;
}

function path(route: 'projects' | 'branches', emulator: TestEmulator, asked: Asked = {}): string {
  const { fromMs = emulator.nowMs() - 6 * DAY_MS, toMs = emulator.nowMs(), granularity = 'hourly', more = '' } = asked;
  const ids = route === 'branches' ? '&project_ids=one,two,three' : '';
  const range = `from=${iso(fromMs)}&to=${iso(toMs)}&granularity=${granularity}`;
  return `/consumption_history/v2/${route}?org_id=org-acme&${range}&metrics=compute_unit_seconds${ids}${more}`;
}

interface Bucket {
  timeframe_start: string;
  metrics: { metric_name: string; value: number }[];
}

/** CU-seconds of a unit by the start of the bucket. */
function valuesOf(item: { periods: { consumption: Bucket[] }[] }): Map<number, number> {
  const values = new Map<number, number>();
  for (const { timeframe_start: start, metrics } of item.periods.flatMap(({ consumption }) => consumption)) {
    const ms = Date.parse(start);
    const value = metrics.find(({ metric_name: name }) => name === 'compute_unit_seconds')?.value ?? 0;
    values.set(ms, (values.get(ms) ?? 0) + value);
  }
  return values;
}

/** What a branch really used in each hour. */
async function truth(emulator: TestEmulator, branchId: string): Promise<Map<number, number>> {
  const { body } = await emulator.control('GET', '/state/usage');
  const hours = new Map<number, number>();
  for (const branch of body.branches) {
    if (branch.branch_id !== branchId) continue;
    for (const { start, cu_seconds: used } of branch.quarters) {
      const hour = Math.floor(Date.parse(start) / HOUR_MS) * HOUR_MS;
      hours.set(hour, (hours.get(hour) ?? 0) + used);
    }
  }
  return hours;
}

async function branchValues(emulator: TestEmulator, branchId: string, asked: Asked = {}): Promise<Map<number, number>> {
  const { body } = await emulator.call(
    'GET',
    path('branches', emulator, { ...asked, more: `&branch_ids=${branchId}` }),
  );
  return valuesOf(body.branches[0] ?? { periods: [] });
}

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

describe('the consumption routes', () => {
  it('show what each branch used by the hour, and what their project did', async () => {
    const emulator = await start(fleet());
    const shown = await branchValues(emulator, 'br-one');
    const used = await truth(emulator, 'br-one');
    expect(shown.size).toBeGreaterThan(24);
    for (const [hour, value] of shown) {
      // The newest whole hour has not arrived in full.
      if (hour < emulator.nowMs() - 2 * HOUR_MS) expect(value).toBe(Math.round(used.get(hour) ?? -1));
    }
    const other = await branchValues(emulator, 'br-one-dev');
    const { body } = await emulator.call('GET', path('projects', emulator, { more: '&project_ids=one' }));
    expect(Math.abs(sum(valuesOf(body.projects[0]).values()) - sum(shown.values()) - sum(other.values()))).toBeLessThan(
      200,
    );
  });

  it('page projects newest first and branches by id; an empty last page has the cursor that it was asked with', async () => {
    const emulator = await start(fleet());
    const seen: string[] = [];
    let cursor = '';
    for (let page = 0; page < 5; page += 1) {
      const { body } = await emulator.call('GET', path('branches', emulator, { more: `&limit=1&cursor=${cursor}` }));
      seen.push(...body.branches.map((one: { branch_id: string }) => one.branch_id));
      if (page === 4) expect(body.pagination.cursor).toBe(cursor);
      cursor = body.pagination.cursor;
    }
    expect(seen).toEqual(['br-one', 'br-one-dev', 'br-two', 'br-two-dev']);
  });

  it('are read by the client of the vendor, and wake nobody', async () => {
    const emulator = await start(fleet());
    const before = (await emulator.control('GET', '/state')).body;
    const api = createApiClient({ apiKey: emulator.emulator.apiKey, baseURL: emulator.emulator.url });
    const asked = {
      ...{ org_id: 'org-acme', from: iso(START_MS - 5 * DAY_MS), to: iso(START_MS), metrics: ['compute_unit_seconds'] },
      granularity: 'daily' as never,
    };
    const { data } = await api.getConsumptionHistoryPerProjectV2(asked);
    expect(data.projects.map(({ project_id: id }) => id).sort()).toEqual(['one', 'two']);
    const { data: ofBranches } = await api.getConsumptionHistoryPerBranchV2({ ...asked, project_ids: ['one'] });
    expect(ofBranches.branches[0]?.periods[0]?.period_plan).toBe('scale');
    expect((await emulator.control('GET', '/state')).body).toEqual(before);
  });

  it('round both ends down, so that the hour that has not ended is never there, unless it is switched on', async () => {
    const emulator = await start(fleet({ delayMinutes: 0 }));
    emulator.pass(30 * 60_000);
    const asked = { fromMs: START_MS - DAY_MS };
    expect([...(await branchValues(emulator, 'br-one', asked)).keys()].every((ms) => ms < START_MS)).toBe(true);
    await emulator.control('POST', '/consumption', { open_bucket: 'sent', zeros: 'sent' });
    expect((await branchValues(emulator, 'br-one', asked)).has(START_MS)).toBe(true);
  });

  it('leave out hours without any and metrics that are zero, unless that is switched off', async () => {
    const emulator = await start(fleet());
    const hours = (await branchValues(emulator, 'br-one')).size;
    await emulator.control('POST', '/consumption', { zeros: 'sent' });
    expect((await branchValues(emulator, 'br-one')).size).toBeGreaterThan(hours);
  });

  it('show usage late, in quarters of an hour', async () => {
    const emulator = await start(fleet({ delayMinutes: 45 }));
    const newest = START_MS - HOUR_MS;
    const values = () => branchValues(emulator, 'br-one-dev', { fromMs: START_MS - 4 * HOUR_MS });
    const first = (await values()).get(newest) ?? 0;
    emulator.pass(2 * HOUR_MS);
    const last = (await values()).get(newest) ?? 0;
    expect(last).toBe(Math.round((await truth(emulator, 'br-one-dev')).get(newest) ?? -1));
    expect(first).toBeLessThan(last);
  });

  it('stall, and fill the gap afterwards', async () => {
    const stall = { fromMs: START_MS, toMs: START_MS + 6 * HOUR_MS };
    const emulator = await start(fleet({ stalls: [stall] }));
    emulator.pass(6 * HOUR_MS - 1);
    const during = await branchValues(emulator, 'br-one-dev');
    expect(Math.max(...during.keys())).toBeLessThan(START_MS);
    emulator.pass(2 * HOUR_MS);
    const after = await branchValues(emulator, 'br-one-dev');
    expect(Math.max(...after.keys())).toBeGreaterThanOrEqual(START_MS + 5 * HOUR_MS);
  });

  it('correct hours after a day', async () => {
    const emulator = await start(fleet({ corrections: 1 }));
    const hour = START_MS - 12 * HOUR_MS;
    const asked = { fromMs: START_MS - 4 * DAY_MS, toMs: START_MS - 3 * HOUR_MS };
    const early = await branchValues(emulator, 'br-one-dev', asked);
    emulator.pass(25 * HOUR_MS);
    const late = await branchValues(emulator, 'br-one-dev', asked);
    const used = await truth(emulator, 'br-one-dev');
    expect(late.get(hour)).toBe(Math.round(used.get(hour) ?? -1));
    expect(early.get(hour)).toBe(Math.round(0.9 * (used.get(hour) ?? -1)));
    expect(early.get(hour - 2 * DAY_MS)).toBe(late.get(hour - 2 * DAY_MS));
  });

  it.each(['listed', 'hidden'] as const)('have deleted branches %s', async (deleted) => {
    const emulator = await start(fleet({ deleted }));
    emulator.pass(HOUR_MS);
    // While an operation runs nothing can be deleted.
    for (let tries = 0; tries < 100; tries += 1) {
      const { status } = await emulator.call('DELETE', '/projects/one/branches/br-one-dev');
      if (status === 200) break;
      emulator.pass(1000);
    }
    const { body } = await emulator.call('GET', path('branches', emulator));
    const ids = body.branches.map(({ branch_id: id }: { branch_id: string }) => id);
    expect(ids.includes('br-one-dev')).toBe(deleted === 'listed');
    const { body: whole } = await emulator.call('GET', path('projects', emulator, { more: '&project_ids=one' }));
    const used = sum((await truth(emulator, 'br-one')).values()) + sum((await truth(emulator, 'br-one-dev')).values());
    expect(sum(valuesOf(whole.projects[0]).values())).toBeGreaterThan(0.7 * used);
  });

  it('show a change of plan as two periods of one month, and nothing of the time on the free plan', async () => {
    const emulator = await start(fleet());
    await emulator.control('POST', '/plan', { plan: 'launch', org: 'org-acme' });
    emulator.pass(10 * HOUR_MS);
    const { body } = await emulator.call('GET', path('projects', emulator, { more: '&project_ids=one' }));
    const periods = body.projects[0].periods;
    expect(periods.map(({ period_plan: plan }: { period_plan: string }) => plan)).toEqual(['scale', 'launch']);
    expect(Date.parse(periods[1].period_start)).toBe(START_MS);
    await emulator.control('POST', '/plan', { plan: 'free', org: 'org-acme' });
    expect((await emulator.call('GET', path('projects', emulator))).status).toBe(403);
  });

  it('begin to know branches later than projects', async () => {
    const emulator = await start(fleet({ branchesFromMs: START_MS - 2 * DAY_MS }));
    const values = await branchValues(emulator, 'br-one-dev');
    expect(Math.min(...values.keys())).toBeGreaterThanOrEqual(START_MS - 2 * DAY_MS);
  });

  it('have a share of a project that belongs to no branch', async () => {
    const emulator = await start(fleet({ unattributed: 0.2 }));
    const branches = [await branchValues(emulator, 'br-one'), await branchValues(emulator, 'br-one-dev')];
    const { body } = await emulator.call('GET', path('projects', emulator, { more: '&project_ids=one' }));
    const ofBranches = sum(branches.map((values) => sum(values.values())));
    expect(sum(valuesOf(body.projects[0]).values()) * 0.8).toBeCloseTo(ofBranches, -3);
  });

  it.each([
    ['both are not there', { routes: 'none' }, 'projects', {}, 404],
    ['that of branches is not there', { routes: 'projects' }, 'branches', {}, 404],
    ['hours of more than a week ago', {}, 'projects', { fromMs: START_MS - 8 * DAY_MS }, 406],
    ['days of more than sixty ago', {}, 'projects', { fromMs: START_MS - 61 * DAY_MS, granularity: 'daily' }, 406],
    ['a range without a bucket', {}, 'projects', { fromMs: START_MS }, 406],
    ['metrics of projects for branches', {}, 'branches', { more: '&metrics=extra_branches_month' }, 400],
  ] as const)('refuse: %s', async (_, consumption, route, asked, status) => {
    const emulator = await start(fleet(consumption));
    const url = path(route, emulator, asked)
      .replace(/metrics=compute_unit_seconds(.*&metrics=)/, '$1')
      .replace('&&', '&');
    expect((await emulator.call('GET', url)).status).toBe(status);
  });

  it('refuse keys of one project, and organizations that a key does not see', async () => {
    const emulator = await start(fleet());
    const { body } = await emulator.control('POST', '/keys', { kind: 'project', project: 'one' });
    const headers = { authorization: `Bearer ${body.key}` };
    expect((await emulator.call('GET', path('projects', emulator), undefined, headers)).status).toBe(404);
    const other = path('projects', emulator).replace('org-acme', 'org-other');
    expect((await emulator.call('GET', other)).status).toBe(404);
  });

  it('have a limit of their own', async () => {
    const emulator = await start(fleet(), { usageLimitPerMinute: 3 });
    const statuses = [];
    for (const route of ['projects', 'branches', 'projects', 'branches'] as const) {
      statuses.push((await emulator.call('GET', path(route, emulator))).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect((await emulator.call('GET', '/projects')).status).toBe(200);
  });
});
