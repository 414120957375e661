/** The emulator's response times: from demand over size, as counters that a Prometheus scrapes, with faults. */
import { describe, expect, it } from 'vitest';
import { responseSeconds } from '../../src/emulator/world/latency.ts';
import { compute, fleetOf, startTestEmulator } from './support.ts';

const FULL = { state: 'active', suspendTimeoutSeconds: -1 } as const;

async function scraping(...ids: string[]) {
  const world = await startTestEmulator({
    fleet: fleetOf(
      ...ids.map((id) =>
        compute({ id, ...FULL, minCu: 1, maxCu: 2, load: [{ class: 'replication', cu: 1 }], createdAtMs: 0 }),
      ),
    ),
  });
  const scrape = async (afterSeconds: number) => {
    world.pass(afterSeconds * 1000);
    const text = await (await fetch(`${world.emulator.origin}/_emulator/metrics`)).text();
    return new Map(
      [...text.matchAll(/^(\w+)\{.*compute_id="([^"]+)"(?:,le="([^"]+)")?\} (\S+)$/gm)].map(
        ([, name, id, le, value]) => [`${id} ${name?.split('_').at(-1)}${le ? ` ${le}` : ''}`, Number(value)] as const,
      ),
    );
  };
  const fault = (body: object) => world.control('POST', '/faults', { kind: 'metrics', ...body });
  const mean = async (id: string) => {
    const before = await scrape(0);
    const after = await scrape(60);
    const grown = (of: string) => (after.get(`${id} ${of}`) ?? Number.NaN) - (before.get(`${id} ${of}`) ?? Number.NaN);
    return grown('sum') / grown('count');
  };
  return { world, scrape, fault, mean };
}

describe('the response times of a compute', () => {
  const served = { computeId: 'ep-1', demandCu: 1, sizeCu: 2, awakeMs: 3_600_000 };

  it('double where half is used, have an end where all is, and begin high after a start', () => {
    expect(responseSeconds({ ...served, demandCu: 0 })).toBeCloseTo(0.02);
    expect(responseSeconds(served)).toBeCloseTo(0.04);
    expect(responseSeconds({ ...served, sizeCu: 0.25 })).toBeCloseTo(1);
    expect(responseSeconds({ ...served, awakeMs: 0 })).toBeCloseTo(0.2);
    expect(responseSeconds({ ...served, awakeMs: 60_000, refillMs: 600_000 })).toBeGreaterThan(0.14);
  });
});

describe('a scrape', () => {
  it('counts requests by their time, with labels that a guard can match; none of a compute that sleeps', async (test) => {
    const { world, scrape, mean } = await scraping('ep-1');
    test.onTestFinished(() => world.emulator.close());
    await scrape(3600);
    const before = await scrape(0);
    const after = await scrape(60);
    const grown = (of: string) => (after.get(`ep-1 ${of}`) ?? 0) - (before.get(`ep-1 ${of}`) ?? 0);
    expect([grown('count'), grown('bucket +Inf'), grown('bucket 0.025'), grown('bucket 0.1')]).toEqual([
      600, 600, 279, 551,
    ]);
    expect(await mean('ep-1')).toBeCloseTo(0.04);
    const text = await (await fetch(`${world.emulator.origin}/_emulator/metrics`)).text();
    expect(text).toContain('_bucket{service="shop-prod",project_id="shop",compute_id="ep-1",le="0.005"}');
    expect(text).toContain('# TYPE http_request_duration_seconds histogram');
    await world.control('POST', '/computes/ep-1/disconnect');
    expect(await mean('ep-1')).toBeNaN();
  });

  it('has the faults of measuring: noise, gaps and resets', async (test) => {
    const { world, scrape, fault, mean } = await scraping('ep-1', 'ep-2');
    test.onTestFinished(() => world.emulator.close());
    await scrape(3600);
    const { body } = await fault({ effect: 'noise', factor: 4, compute: 'ep-1' });
    expect(body).toMatchObject({ kind: 'metrics', effect: 'noise', factor: 4, compute: 'ep-1' });
    const values = [await mean('ep-1'), await mean('ep-1')];
    expect(values[0]).not.toBe(values[1]);
    for (const value of values) expect(Math.abs(Math.log(value / 0.04))).toBeLessThanOrEqual(Math.log(4) + 1e-9);
    expect(await mean('ep-2')).toBeCloseTo(0.04);
    await fault({ effect: 'resets', compute: 'ep-2', count: 1 });
    expect((await scrape(60)).get('ep-2 count')).toBe(600);
    expect((await scrape(60)).get('ep-2 count')).toBe(1200);
    await fault({ effect: 'gaps', compute: 'ep-2', for_seconds: 60 });
    expect((await scrape(0)).has('ep-2 count')).toBe(false);
    expect((await scrape(60)).get('ep-2 count')).toBe(1800);
  });

  it('has outages of all computes and deploys, from an instant on', async (test) => {
    const { world, scrape, fault, mean } = await scraping('ep-1', 'ep-2');
    test.onTestFinished(() => world.emulator.close());
    await scrape(3600);
    const { body } = await fault({ effect: 'outage' });
    expect([await mean('ep-1'), await mean('ep-2')].map((value) => value / 0.04)).toEqual([
      expect.closeTo(20),
      expect.closeTo(20),
    ]);
    await world.control('DELETE', `/faults/${body.id}`);
    const atMs = world.nowMs() + 90_000;
    await fault({ effect: 'deploy', at: new Date(atMs).toISOString() });
    expect(await mean('ep-1')).toBeCloseTo(0.04);
    expect((await scrape(30)).get('ep-1 count')).toBe(300);
    expect(await mean('ep-1')).toBeCloseTo(0.2);
    await scrape(60);
    expect(await mean('ep-1')).toBeCloseTo(0.04);
    expect((await world.control('GET', '/faults')).body.faults).toMatchObject([
      { effect: 'deploy', at: expect.any(String) },
    ]);
  });
});
