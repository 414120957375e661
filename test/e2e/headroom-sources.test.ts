/** What a daemon makes of a source that fails, and several daemons of one source. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fastClock, startTestDaemon } from '../support/daemon.ts';
import { type MetricsServer, startMetricsServer, vector } from '../support/metrics-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { scrape } from '../support/scrape.ts';

const WAIT = { timeout: 60_000, interval: 100 };

/** Wants 0.25 CU of every compute, and 70 % of its connections free; counts are taken from a source every simulated 30 s. */
async function startFleet(answer: () => string) {
  const source: MetricsServer = await startMetricsServer((_query, response) => response.end(answer()));
  onTestFinished(() => source.close());
  const clock = fastClock(10);
  const shop = { state: 'active', maxCu: 1, suspendTimeoutSeconds: -1, connections: 3 } as const;
  const platform = await startTestPlatform({ shop }, { clock, operationTimeMs: 500 });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await writeFile(
    join(folder.path, 'ebb.yaml'),
    `sources: { counts: { from: prometheus, url: "${source.url}", query: 'sum(c{id="$compute"})', every: 30s } }\n`,
  );
  await writeFile(
    join(folder.path, 'policy.yaml'),
    `version: 1
policies:
  - name: evening
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: ${new Date(clock.now() + 180_000).toISOString().slice(0, 19)}Z/2099-01-01T00:00:00Z, size: 0.25 }]
    otherwise: leave
    disruption: { lower: { when: any }, cooldown: 0s }
  - name: room
    kind: headroom
    select: { projects: ["*"], min_age: 0s }
    connections: counts
    target: 30%
    max_size: 2
    scale_down: { after: 1m }
`,
  );
  const sizes = async () => (await platform.writes()).map(({ body }) => JSON.stringify(body));
  return { source, clock, platform, folder: folder.path, sizes };
}

const LOWERED = '{"endpoint":{"autoscaling_limit_min_cu":0.25,"autoscaling_limit_max_cu":0.25}}';

describe('a source that fails', () => {
  it('is logged once, lowers nothing, and when it answers the waiting change is made', async () => {
    let answer = vector();
    const { source, clock, platform, folder, sizes } = await startFleet(() => answer);
    const daemon = await startTestDaemon({ platform, folder, clock });
    onTestFinished(() => daemon.stop());
    const told = (event: string) => daemon.logs.filter((line) => line.event === event).map(({ codes }) => codes);
    const asked = async (more: number) => {
      const before = source.queries.length;
      await expect.poll(() => source.queries.length, WAIT).toBeGreaterThan(before + more);
    };
    await expect.poll(() => told('ebb.source_failed'), WAIT).toEqual([['no_data']]);
    await asked(3);
    answer = vector({ labels: { id: 'ep-shop' }, value: '1' }, { labels: { id: 'ep-shop', db: 'b' }, value: '2' });
    await expect.poll(() => told('ebb.source_failed'), WAIT).toEqual([['no_data'], ['malformed']]);
    await asked(3);
    expect(await sizes()).toEqual([]);
    const said = daemon.logs.filter(({ event }) => event === 'ebb.headroom').at(-1);
    expect(said).toMatchObject({ steps: [{ code: 'connections_unknown', policy: 'room' }] });
    answer = vector({ labels: { id: 'ep-shop' }, value: '3' });
    await expect.poll(() => told('ebb.source_recovered'), WAIT).toHaveLength(1);
    await expect.poll(sizes, WAIT).toEqual([LOWERED]);
  });
});

describeWith('redis-server', 'several daemons of one source', () => {
  it('ask it as often as one, and all know what it said', async () => {
    const { source, clock, platform, folder } = await startFleet(() =>
      vector({ labels: { id: 'ep-shop' }, value: '99' }),
    );
    const redis = await startRedisServer();
    onTestFinished(() => redis.close());
    const options = { platform, folder, clock, env: { EBB_QUEUE_URL: redis.url } };
    const [one, other] = [await startTestDaemon(options), await startTestDaemon(options)];
    for (const daemon of [one, other]) onTestFinished(() => daemon.stop());
    const startedMs = clock.now();
    const before = source.queries.length;
    await expect.poll(() => source.queries.length, WAIT).toBeGreaterThanOrEqual(before + 6);
    // Six intervals of 30 s: two that ask on their own would have needed three.
    expect(clock.now() - startedMs).toBeGreaterThan(4 * 30_000);
    const exported = async ({ url }: typeof one) => (await scrape(url)).byCompute('ebb_connections');
    await expect.poll(() => exported(one), WAIT).toEqual({ 'ep-shop': '99' });
    expect(await exported(other)).toEqual({});
    await one.stop();
    await expect.poll(() => exported(other), WAIT).toEqual({ 'ep-shop': '99' });
  });
});
