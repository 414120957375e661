import { expect, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { scrape } from '../support/scrape.ts';
import { CASE_MS, eventually, hourIn, NEVER, sizedAt, startFaultCase } from './fault-case.ts';

const NAMES = Array.from({ length: 20 }, (_, index) => `web-${index}`);
const SERIES = /^ebb_compute_/m;

describeWith('redis-server', 'when the daemon that exports the fleet is killed', () => {
  it('another of its group exports all of it, and follows what happens from then on', {
    timeout: CASE_MS,
  }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const at = await startFaultCase({
      ...{ redisPort: redis.port, test, policies: sizedAt('1-2', NEVER) },
      computes: Object.fromEntries(NAMES.map((name) => [name, {}])),
    });
    const start = async () => {
      const listen = `127.0.0.1:${await freePort()}`;
      return { ebb: await at.start(undefined, { EBB_LISTEN: listen }), url: `http://${listen}` };
    };
    const holder = await start();
    const other = await start();
    // Those that stand beside the case's own are computes too.
    const all = [...NAMES, 'in-use', 'held-still'].map((name) => `ep-${name}`).toSorted();
    const exported = async (url: string) => Object.keys((await scrape(url)).byCompute('ebb_compute_max_cu')).toSorted();
    await eventually(async () => expect(await exported(holder.url)).toEqual(all));
    expect((await scrape(other.url)).text).not.toMatch(SERIES);

    await holder.ebb.kill('SIGKILL');
    await eventually(async () => expect(await exported(other.url)).toEqual(all));
    expect((await scrape(other.url)).value('ebb_leader')).toBe('1');

    const third = await start();
    const { at: hour } = hourIn(20_000);
    await at.writePolicies(sizedAt('1-2', hour));
    await eventually(async () => {
      const now = (await scrape(other.url)).byCompute('ebb_compute_max_cu');
      expect(NAMES.map((name) => now[`ep-${name}`])).toEqual(NAMES.map(() => '2'));
    });
    expect((await scrape(third.url)).text).not.toMatch(SERIES);

    await redis.kill();
    await eventually(async () =>
      expect((await scrape(other.url)).value('ebb_outages_total', 'dependency="Redis"')).toBe('1'),
    );
    expect([await exported(other.url), await exported(third.url)]).toEqual([all, []]);
    await other.ebb.kill('SIGTERM');
    expect(await other.ebb.ended).toBe(0);
    await at.expectNothingForbidden();
  });
});
