import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { openOnceMet, startTestDaemon } from '../support/daemon.ts';
import { boundarySoon, makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { type Scrape, scrape } from '../support/scrape.ts';

const WAIT = { timeout: 60_000, interval: 100 };
const NAMES = Array.from({ length: 20 }, (_, index) => `web-${index}`);

/** Two daemons on one Redis: who holds the leader lease first, and the other. */
async function startTwo(computes: { state?: 'active' } = {}) {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const platform = await startTestPlatform(Object.fromEntries(NAMES.map((name) => [name, computes])));
  onTestFinished(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': boundarySoon(3_600_000) });
  onTestFinished(() => folder.remove());
  const start = async () => {
    const env = { EBB_QUEUE_URL: redis.url };
    const daemon = await startTestDaemon({ platform, folder: folder.path, env, reloads: true });
    onTestFinished(() => daemon.stop());
    return daemon;
  };
  return { platform, folder: folder.path, holder: await start(), other: await start() };
}

async function deleteAt({ url, apiKey }: Platform, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await request(`${url}/${path}`, { method: 'DELETE', headers });
  await answer.body.dump();
  expect(answer.statusCode).toBe(200);
}

function ids(names: readonly string[]): string[] {
  return names.map((name) => `ep-${name}`).toSorted();
}

function withSeries(one: Scrape, name = 'ebb_compute_max_cu'): string[] {
  return Object.keys(one.byCompute(name)).toSorted();
}

const SERIES_OF_COMPUTES = /^ebb_(compute_|connections\{|max_connections|connection_headroom)/m;

describeWith('redis-server', 'of two daemons on one Redis', () => {
  it('one exports all computes, also those that the other reconciles, and the other none', async () => {
    const { folder, holder, other } = await startTwo({ state: 'active' });
    await expect.poll(async () => withSeries(await scrape(holder.url)), WAIT).toEqual(ids(NAMES));
    const all = (value: string) => Object.fromEntries(ids(NAMES).map((id) => [id, value]));
    const wanted = async () => (await scrape(holder.url)).byCompute('ebb_compute_desired_max_cu');
    expect(await wanted()).toEqual(all('0.25'));

    await openOnceMet(folder, [holder, other], { computes: NAMES.length, inMs: 6_000 });
    await expect.poll(wanted, WAIT).toEqual(all('2'));
    await expect.poll(async () => (await scrape(holder.url)).byCompute('ebb_compute_max_cu'), WAIT).toEqual(all('2'));
    const writers = [holder, other].map(({ events }) => events.filter(({ kind }) => kind === 'write_ended').length);
    expect(Math.min(...writers)).toBeGreaterThan(0);

    const [held, left] = [await scrape(holder.url), await scrape(other.url)];
    expect([held.value('ebb_leader'), left.value('ebb_leader')]).toEqual(['1', '0']);
    expect(left.text).not.toMatch(SERIES_OF_COMPUTES);
    // What dashboards take the highest of, or add up, counts the fleet once.
    expect(held.value('ebb_computes', 'status="enforced"')).toBe('20');
    expect(left.value('ebb_computes', 'status="enforced"')).toBe('0');
    expect(left.value('ebb_inventory_age_seconds')).toBe('0');
    expect(left.value('ebb_estimated_saved_cu_seconds_total', 'bound="high"')).toBe('0');
    expect(left.value('ebb_estimated_added_cu_seconds_total', 'bound="high"')).toBe('0');
    await expect
      .poll(async () =>
        Number((await scrape(holder.url)).value('ebb_estimated_added_cu_seconds_total', 'bound="high"')),
      )
      .toBeGreaterThan(0);
  });

  it('a compute or project that is deleted loses its series; after a stop the other exports the rest', async () => {
    const { platform, holder, other } = await startTwo();
    await expect.poll(async () => withSeries(await scrape(holder.url)), WAIT).toEqual(ids(NAMES));
    await deleteAt(platform, 'projects/web-3/endpoints/ep-web-3');
    await deleteAt(platform, 'projects/web-4');
    const rest = ids(NAMES.filter((name) => name !== 'web-3' && name !== 'web-4'));
    await expect.poll(async () => withSeries(await scrape(holder.url)), WAIT).toEqual(rest);
    expect((await scrape(holder.url)).text).not.toMatch(/ep-web-[34]"/);
    await expect
      .poll(async () => {
        const { computes } = (await (await request(`${other.url}/api/v1/computes?limit=100`)).body.json()) as {
          computes: { project_id: string }[];
        };
        return computes.map(({ project_id }) => project_id);
      }, WAIT)
      .not.toContain('web-4');

    await holder.stop();
    await expect.poll(async () => withSeries(await scrape(other.url)), WAIT).toEqual(rest);
    await deleteAt(platform, 'projects/web-5');
    await expect.poll(async () => withSeries(await scrape(other.url)), WAIT).not.toContain('ep-web-5');
  });
});
