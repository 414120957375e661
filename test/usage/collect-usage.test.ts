import { describe, expect, it } from 'vitest';
import { collectUsage } from '../../src/app/usage/collect-usage.ts';
import { monthCosts } from '../../src/app/usage/month-costs.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { billOf } from '../../src/domain/usage/bill.ts';
import { mergeUsage, noUsage, seriesOf } from '../../src/domain/usage/stored.ts';
import { unitName } from '../../src/domain/usage/usage.ts';
import type { Consumption } from '../../src/emulator/fleet.ts';
import { execute } from '../../src/emulator/world/execute.ts';
import { NO_COSTS } from '../support/builders.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS, passTo, START_MS, truthOf, usageApi, usageFleet, usageWorld } from './support.ts';

const ORGANIZATION = { account: 'main', organization: 'org-acme', projectIds: ['one', 'two', 'three'] };

function start(consumption: Partial<Consumption> = {}, seed = 3) {
  const world = usageWorld(usageFleet(consumption), seed);
  const api = usageApi(world);
  const store = memoryUsageStore();
  const stored = usageAccount(store, ORGANIZATION);
  const collect = async () => {
    const read = await collectUsage({ api, stored, organization: ORGANIZATION, nowMs: world.nowMs });
    if (!read.ok) throw new Error(read.error.message);
    return read.value;
  };
  /** Collects every hour until then. */
  const until = async (ms: number) => {
    let corrected = 0;
    while (world.nowMs + HOUR_MS <= ms) {
      passTo(world, world.nowMs + HOUR_MS);
      corrected += (await collect()).corrected;
    }
    return corrected;
  };
  const series = async () => (await stored.read(await stored.units())).map(seriesOf);
  return { world, api, store, stored, collect, until, series };
}

type Started = ReturnType<typeof start>;

/** By how many CU-seconds what is known differs from what was used, at most, of all units; and how many hours are unknown. */
async function compare({ world, series }: Started, untilMs: number): Promise<{ worst: number; unknown: number }> {
  let worst = 0;
  let unknown = 0;
  for (const { buckets, ...unit } of await series()) {
    for (const { startMs, seconds, cuSeconds } of buckets) {
      if (startMs < START_MS || startMs >= untilMs) continue;
      const used = truthOf(world, unit, seconds).get(startMs) ?? 0;
      if (cuSeconds === null) unknown += seconds / 3600;
      else worst = Math.max(worst, Math.abs(cuSeconds - used));
    }
  }
  return { worst, unknown };
}

describe('collecting usage', () => {
  it('knows every unit and hour as it was, and asks once an hour', async () => {
    const started = start();
    await started.until(START_MS + 3 * DAY_MS);
    expect(await compare(started, START_MS + 3 * DAY_MS - 4 * HOUR_MS)).toEqual({
      worst: expect.closeTo(0.5, 0),
      unknown: 0,
    });
    const before = started.api.calls;
    expect(await started.collect()).toEqual({ isRead: false, corrected: 0 });
    expect(started.api.calls).toBe(before);
    // Two lists each hour, and a few more a day.
    expect(before).toBeLessThan(72 * 2 + 4 * 4);
  });

  it.each([
    ['hour', START_MS + 2 * DAY_MS + 7 * HOUR_MS],
    ['day', START_MS + 2 * DAY_MS],
    ['month', Date.parse('2026-12-01T00:00:00Z')],
  ])('is given what it asks for also where the next %s begins meanwhile', async (_, beginsMs) => {
    const { world, api, stored } = start();
    passTo(world, beginsMs + 1_000);
    const nowMs = beginsMs - 1_000;
    const read = await collectUsage({ api, stored, organization: ORGANIZATION, nowMs });
    expect(read).toEqual({ ok: true, value: { isRead: true, corrected: 0 } });
  });

  it('never calls an hour of a stall known, and knows it afterwards', async () => {
    const stall = { fromMs: START_MS + 20 * HOUR_MS + 1_200_000, toMs: START_MS + 26 * HOUR_MS + 1_200_000 };
    const started = start({ stalls: [stall] });
    await started.until(START_MS + 26 * HOUR_MS);
    const during = await compare(started, START_MS + 26 * HOUR_MS);
    expect(during.worst).toBeLessThanOrEqual(1);
    expect(during.unknown).toBeGreaterThanOrEqual(9 * 5);
    await started.until(START_MS + 32 * HOUR_MS);
    expect((await compare(started, START_MS + 28 * HOUR_MS)).unknown).toBe(0);
  });

  it('takes corrections over, and counts them', async () => {
    const started = start({ corrections: 0.5 });
    const corrected = await started.until(START_MS + 4 * DAY_MS);
    expect(corrected).toBeGreaterThan(20);
    // The whole week is read again once a day.
    expect((await compare(started, START_MS + 2 * DAY_MS)).worst).toBeLessThanOrEqual(12);
  });

  it('keeps what deleted branches used: by themselves for two weeks, then as a part of their project', async () => {
    const started = start({ deleted: 'hidden' });
    const { world, stored, series } = started;
    await started.until(START_MS + 2 * DAY_MS);
    for (let tries = 0; tries < 500; tries += 1) {
      const command = { kind: 'delete_branch', projectId: 'one', branchId: 'br-one-dev' } as const;
      if (execute(world, command, world.nowMs + 1000).outcome.ok) break;
    }
    const names = async () => (await stored.units()).map(unitName);
    await started.until(START_MS + 10 * DAY_MS);
    expect(await names()).toContain('one/br-one-dev');
    await started.until(START_MS + 18 * DAY_MS);
    expect(await names()).not.toContain('one/br-one-dev');
    const deleted = (await series()).find(({ branchId }) => branchId === 'deleted');
    const used = [...truthOf(world, { projectId: 'one', branchId: 'br-one-dev' }).values()].reduce(
      (sum, one) => sum + one,
      0,
    );
    const known = deleted?.buckets.reduce((sum, { cuSeconds }) => sum + (cuSeconds ?? 0), 0) ?? 0;
    // What it used in its last hours is in no list any more: it is a part of what nobody is known to have used.
    expect(known).toBeGreaterThan(0.9 * used);
    expect(known).toBeLessThan(1.001 * used);
  });

  it('reads all that there is after a long absence', async () => {
    const started = start();
    await started.until(START_MS + DAY_MS);
    passTo(started.world, START_MS + 12 * DAY_MS);
    await started.collect();
    expect((await compare(started, START_MS + 11 * DAY_MS)).unknown).toBe(0);
  });

  it('forgets a deleted project once its last day is older than days are kept', async () => {
    const { stored, world, until } = start();
    const buckets = (fromMs: number) => [{ startMs: fromMs, seconds: 86_400, cuSeconds: 7 }];
    const unit = { projectId: 'gone', branchId: null };
    const old = { ...unit, branchId: 'deleted' };
    await stored.put([
      mergeUsage(noUsage(unit), { buckets: buckets(START_MS - 399 * DAY_MS) }).usage,
      mergeUsage(noUsage(old), { buckets: buckets(START_MS - 410 * DAY_MS) }).usage,
    ]);
    const names = async () => (await stored.units()).map(unitName).filter((name) => name.startsWith('gone'));
    await until(START_MS + DAY_MS);
    expect(await names()).toEqual(['gone']);
    await until(world.nowMs + 2 * DAY_MS);
    expect(await names()).toEqual([]);
  });

  it('needs at most 3 KB for a unit', async () => {
    const started = start();
    await started.until(START_MS + 20 * DAY_MS);
    const sizes = [...started.store.bytes.values()].flatMap((units) => [...units.values()].map(({ length }) => length));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(3 * 1024);
  });

  it('changes nothing if an answer is not whole', async () => {
    const { stored, world, store } = start();
    passTo(world, START_MS + DAY_MS);
    const error = { code: 'unavailable', route: 'GET x', message: 'cut off' } as const;
    const read = await collectUsage({
      api: { usage: async () => ({ ok: false, error }) },
      ...{ stored, organization: ORGANIZATION, nowMs: world.nowMs },
    });
    expect(read).toEqual({ ok: false, error });
    expect([...(store.bytes.get('main/org-acme') ?? [])]).toEqual([]);
  });

  it('makes a bill of the month, that of the same series', async () => {
    const started = start();
    await started.until(START_MS + 4 * DAY_MS);
    const costs = { ...NO_COSTS, prices: { free: 0, launch: 0.1, scale: 0.2 } };
    const { stored, world } = started;
    const ownerOf = ({ projectId }: { projectId: string }) => (projectId === 'one' ? 'shop' : 'others');
    const month = await monthCosts({ stored, ...ORGANIZATION, nowMs: world.nowMs, costs, ownerOf });
    const { fromMs, untilMs } = month?.month ?? { fromMs: 0, untilMs: 0 };
    const span = { fromMs, toMs: untilMs, priceAt: () => 0.2, lineOf: ownerOf, byProject: false };
    const { total } = billOf({ ...span, series: await started.series() });
    expect(total.cuSeconds).toBeGreaterThan(0);
    const sum = month?.lines.reduce((all, line) => ({ cu: all.cu + line.cuSeconds, usd: all.usd + (line.usd ?? 0) }), {
      cu: 0,
      usd: 0,
    });
    expect(sum).toEqual({ cu: total.cuSeconds, usd: expect.closeTo(total.usd ?? -1, 9) });
    expect(world.nowMs - (month?.knownUntilMs ?? 0)).toBeLessThanOrEqual(4 * HOUR_MS);
  });
});
