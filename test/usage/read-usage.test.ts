import { afterEach, describe, expect, it } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { readFleet } from '../../src/app/fleet/read-fleet.ts';
import { readKnownUsage } from '../../src/app/usage/read-usage.ts';
import { NO_METRICS } from '../../src/compose/control-api.ts';
import { billOf } from '../../src/domain/usage/bill.ts';
import { type UsageLowerBound, usageLowerBound } from '../../src/domain/usage/lower-bound.ts';
import type { Consumption } from '../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../src/emulator/server.ts';
import { startTestEmulator, type TestEmulator } from '../emulator/support.ts';
import { REAL } from '../support/builders.ts';
import { DAY_MS, HOUR_MS, usageFleet } from './support.ts';

let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

/** An emulator with eight days behind it, and a client of it. */
async function start(consumption: Partial<Consumption> = {}, options: Partial<EmulatorOptions> = {}) {
  const fleet = { ...usageFleet(consumption), historyMs: 8 * DAY_MS };
  const emulator = await startTestEmulator({ fleet, availabilityCheckMs: 0, ...options });
  const api = createControlApi({
    baseUrl: emulator.emulator.url,
    accounts: [{ name: 'main', key: () => emulator.emulator.apiKey }],
    metrics: NO_METRICS,
    ...REAL,
  });
  closing.push(
    () => emulator.emulator.close(),
    () => api.close(),
  );
  const projectIds = ['one', 'two', 'three'];
  const read = (lowerBound?: UsageLowerBound) =>
    readKnownUsage(undefined, {
      ...{ api, account: 'main', organization: 'org-acme', projectIds, nowMs: emulator.nowMs(), lowerBound },
    });
  const usage = async () => {
    const answer = await read();
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value;
  };
  return { emulator, api, read, usage };
}

/** CU-seconds that were really used in a span, by branch. */
async function truth(emulator: TestEmulator, fromMs: number, toMs: number): Promise<Map<string, number>> {
  const { body } = await emulator.control('GET', '/state/usage');
  const used = new Map<string, number>();
  for (const { branch_id: id, quarters } of body.branches) {
    for (const { start, cu_seconds: cuSeconds } of quarters) {
      const ms = Date.parse(start);
      if (ms >= fromMs && ms < toMs) used.set(id, (used.get(id) ?? 0) + cuSeconds);
    }
  }
  return used;
}

function billBetween(
  series: Awaited<ReturnType<Awaited<ReturnType<typeof start>>['usage']>>['series'],
  fromMs: number,
  toMs: number,
) {
  return billOf({
    ...{ series, fromMs, toMs, byProject: false },
    lineOf: ({ branchId, projectId }) => branchId ?? projectId,
    priceAt: () => 0.2,
  });
}

const near = (share: number, expected: number, actual: number | undefined) =>
  expect(Math.abs((actual ?? Number.NaN) / expected - 1)).toBeLessThan(share);

describe('reading usage', () => {
  it('gives each branch what it used, to 0.1 %, and wakes nobody', async () => {
    const { emulator, usage } = await start();
    const before = (await emulator.control('GET', '/state')).body;
    const { series, plans } = await usage();
    expect((await emulator.control('GET', '/state')).body).toEqual(before);
    expect(plans.at(-1)?.[1]).toBe('scale');
    const untilMs = emulator.nowMs() - (emulator.nowMs() % HOUR_MS) - 3 * HOUR_MS;
    const used = await truth(emulator, untilMs - 5 * DAY_MS, untilMs);
    const { lines, total } = billBetween(series, untilMs - 5 * DAY_MS, untilMs);
    expect(total.unknownHours).toBe(0);
    expect(used.size).toBe(6);
    for (const [branchId, cuSeconds] of used) {
      near(0.001, cuSeconds, lines.find(({ name }) => name === branchId)?.cuSeconds);
    }
  });

  it('has the figure of a month that has ended', async () => {
    const { emulator, usage } = await start();
    emulator.pass(9 * DAY_MS);
    const { series, months } = await usage();
    const [monthMs, figure] = [...months].find(([, cuSeconds]) => cuSeconds > 0) ?? [0, 0];
    const { total } = billBetween(series, monthMs, Date.parse('2026-12-01T00:00:00Z'));
    expect(total.unknownHours).toBe(0);
    near(0.001, figure, total.cuSeconds);
  });

  it('doubts no hour that has arrived, whatever computes show', async () => {
    const { emulator, api, read } = await start();
    emulator.pass(5 * HOUR_MS);
    const { computes } = await readFleet({ api, readBranches: false });
    const hours = async (lowerBound?: UsageLowerBound) => {
      const answer = await read(lowerBound);
      return answer.ok ? answer.value.series : [];
    };
    expect(await hours(usageLowerBound(computes, emulator.nowMs()))).toEqual(await hours());
  });

  it('leaves a stall unknown, and knows it once it has been filled', async () => {
    const { emulator, usage } = await start();
    const fromMs = emulator.nowMs() - 10 * 60_000;
    await emulator.control('POST', '/consumption', {
      stalls: [{ from: new Date(fromMs).toISOString(), to: new Date(fromMs + 6 * HOUR_MS).toISOString() }],
    });
    emulator.pass(5 * HOUR_MS);
    const stalled = [fromMs - HOUR_MS, fromMs + 3 * HOUR_MS].map((ms) => ms - (ms % HOUR_MS)) as [number, number];
    expect(billBetween((await usage()).series, ...stalled).total.unknownHours).toBe(3 * 3);
    emulator.pass(4 * HOUR_MS);
    const { total } = billBetween((await usage()).series, ...stalled);
    expect(total.unknownHours).toBe(0);
    const used = [...(await truth(emulator, ...stalled)).values()].reduce((sum, one) => sum + one, 0);
    expect(Math.abs(total.cuSeconds - used)).toBeLessThan(40);
  });

  it('has what was corrected a day later', async () => {
    const { emulator, usage } = await start({ corrections: 1 });
    const span = [emulator.nowMs() - 20 * HOUR_MS, emulator.nowMs() - 10 * HOUR_MS] as const;
    const used = [...(await truth(emulator, ...span)).values()].reduce((sum, one) => sum + one, 0);
    near(0.01, 0.9 * used, billBetween((await usage()).series, ...span).total.cuSeconds);
    emulator.pass(DAY_MS);
    near(0.002, used, billBetween((await usage()).series, ...span).total.cuSeconds);
  });

  it.each(['listed', 'hidden'] as const)('has the usage of deleted branches that are %s', async (deleted) => {
    const { emulator, usage } = await start({ deleted });
    for (let tries = 0; tries < 200; tries += 1) {
      if ((await emulator.call('DELETE', '/projects/one/branches/br-one-dev')).status === 200) break;
      emulator.pass(1000);
    }
    const span = [
      emulator.nowMs() - 5 * DAY_MS,
      emulator.nowMs() - (emulator.nowMs() % HOUR_MS) - 3 * HOUR_MS,
    ] as const;
    const aligned = [span[0] - (span[0] % HOUR_MS), span[1]] as const;
    const used = await truth(emulator, ...aligned);
    const { lines, total } = billBetween((await usage()).series, ...aligned);
    const line = deleted === 'listed' ? 'br-one-dev' : 'unattributed';
    near(0.002, used.get('br-one-dev') ?? 0, lines.find(({ name }) => name === line)?.cuSeconds);
    near(
      0.001,
      [...used.values()].reduce((sum, one) => sum + one, 0),
      total.cuSeconds,
    );
  });

  it('knows projects where branches are unavailable, and says why', async () => {
    const { usage } = await start({ routes: 'projects' });
    const { series, branchesProblem } = await usage();
    expect(series.map(({ branchId }) => branchId)).toEqual([null, null, null]);
    expect(branchesProblem).toContain('not found');
  });

  it.each([
    ['the routes are not there', { routes: 'none' } as const, 404],
    ['the plan has none', {}, 403],
  ])('is an error and never zero where %s', async (_, consumption, status) => {
    const { emulator, read } = await start(consumption);
    if (status === 403) await emulator.control('POST', '/plan', { plan: 'free', org: 'org-acme' });
    expect(await read()).toMatchObject({ ok: false, error: { status } });
  });

  it('takes half of the limit of these routes at most, so that it is never refused', async () => {
    const { emulator, usage } = await start({}, { usageLimitPerMinute: 25 });
    for (let round = 0; round < 2; round += 1) await usage();
    const { body } = await emulator.control('GET', '/requests');
    expect(body.requests.filter(({ status }: { status: number }) => status === 429)).toEqual([]);
  });
});
