/** A daemon lowers no awake compute while its guard is bad, or can't be asked; everything else goes on. After a lowering it watches. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { fastClock, startTestDaemon } from '../support/daemon.ts';
import { type Reply, startMetricsServer, vector } from '../support/metrics-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { scrape } from '../support/scrape.ts';

const TOKEN = 'token-of-a-test-that-is-long-enough';
const WAIT = { timeout: 60_000, interval: 100 };

const POLICIES = (fromIso: string) => `version: 1
policies:
  - name: evening
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: ${fromIso}/2099-01-01T00:00:00Z, size: 0.5 }]
    otherwise: leave
    disruption: { lower: { when: any }, cooldown: 0s, newly_discovered: act }
  - name: latency
    kind: guard
    select: { projects: ["*"], min_age: 0s }
    source: main
    query: p95
    match: { service: "{compute_id}" }
    bad_when: "> 0.4"
`;

it('a lowering waits for its guard, whatever the source answers; a raise and a sleeping compute do not', async () => {
  // Its source is down when the daemon starts.
  let reply: Reply = (_query, response) => response.socket?.destroy();
  const source = await startMetricsServer((...asked) => reply(...asked));
  onTestFinished(() => source.close());
  const clock = fastClock(10);
  const own = { suspendTimeoutSeconds: -1 } as const;
  const platform = await startTestPlatform(
    {
      awake: { ...own, state: 'active', maxCu: 1 },
      asleep: { ...own, state: 'idle', maxCu: 1 },
      raised: { ...own, state: 'active', minCu: 0.25, maxCu: 0.25 },
    },
    { clock, operationTimeMs: 500 },
  );
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await writeFile(join(folder.path, 'ebb.yaml'), `sources: { main: { from: prometheus, url: "${source.url}" } }\n`);
  const fromIso = `${new Date(clock.now() + 30_000).toISOString().slice(0, 19)}Z`;
  await writeFile(join(folder.path, 'policy.yaml'), POLICIES(fromIso));
  const daemon = await startTestDaemon({ platform, folder: folder.path, clock });
  onTestFinished(() => daemon.stop());
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1)).toSorted();
  const told = (event: string) => daemon.logs.filter((line) => line.event === event).map(({ code }) => code);
  const asked = async (more: number) => {
    const before = source.queries.length;
    await expect.poll(() => source.queries.length, WAIT).toBeGreaterThan(before + more);
  };

  await expect.poll(changed, WAIT).toEqual(['ep-asleep', 'ep-raised']);
  await asked(3);
  expect(await changed()).toEqual(['ep-asleep', 'ep-raised']);
  expect(told('ebb.guard_failed')).toEqual(['unavailable']);
  reply = (_query, response) => response.end(vector({ labels: { service: 'ep-awake' }, value: '0.5' }));
  await expect.poll(() => told('ebb.guard_recovered'), WAIT).toHaveLength(1);
  await asked(3);
  const held = daemon.logs.filter(({ event }) => event === 'ebb.held_back').map(({ reasons }) => reasons);
  expect(JSON.stringify(held)).toContain('"code":"guard"');

  const failures: [Reply, string][] = [
    [(_query, response) => response.writeHead(401).end(), 'unauthorised'],
    [(_query, response) => response.end(' '.repeat(10_000_000)), 'malformed'],
    [(_query, response) => response.socket?.destroy(), 'unavailable'],
  ];
  for (const [failing, code] of failures) {
    reply = failing;
    await expect.poll(() => told('ebb.guard_failed').at(-1), WAIT).toBe(code);
    await asked(2);
  }
  const unknown = [
    vector(),
    vector({ labels: { service: 'ep-awake' }, value: 'NaN' }),
    vector(
      { labels: { service: 'ep-awake' }, value: '0.1' },
      { labels: { service: 'ep-awake', le: '1' }, value: '0.1' },
    ),
  ];
  for (const text of unknown) {
    reply = (_query, response) => response.end(text);
    await asked(3);
  }
  expect(await changed()).toEqual(['ep-asleep', 'ep-raised']);
  const { text } = await scrape(daemon.url);
  expect(text).toContain('ebb_guard_computes{guard="latency",state="unknown"}');

  reply = (_query, response) => response.end(vector({ labels: { service: 'ep-awake' }, value: '0.1' }));
  await expect.poll(changed, WAIT).toEqual(['ep-asleep', 'ep-awake', 'ep-raised']);
  expect(told('ebb.guard_recovered')).toHaveLength(2);
});

/** A daemon over one awake compute that a guard watches; `value` is what its source says. */
async function lowering(remedy: string) {
  const said = { value: '0.1' };
  const source = await startMetricsServer((_query, response) =>
    response.end(vector({ labels: { service: 'ep-awake' }, value: said.value })),
  );
  onTestFinished(() => source.close());
  const clock = fastClock(10);
  const own = { suspendTimeoutSeconds: -1, state: 'active', minCu: 1, maxCu: 1 } as const;
  const platform = await startTestPlatform({ awake: own }, { clock, operationTimeMs: 500 });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await writeFile(join(folder.path, 'ebb.yaml'), `sources: { main: { from: prometheus, url: "${source.url}" } }\n`);
  const fromIso = `${new Date(clock.now() + 30_000).toISOString().slice(0, 19)}Z`;
  const watch = `    for: 1m\n    settle: 0s\n    watch: 10m\n    then: ${remedy}\n`;
  await writeFile(join(folder.path, 'policy.yaml'), `${POLICIES(fromIso)}${watch}`);
  const start = async () => {
    const daemon = await startTestDaemon({ platform, folder: folder.path, clock, env: { EBB_TOKEN: TOKEN } });
    onTestFinished(() => daemon.stop());
    return daemon;
  };
  const sizes = async () => (await platform.writes()).map(({ body }) => (body as { endpoint?: object }).endpoint);
  const asked = async (more: number) => {
    const before = source.queries.length;
    await expect.poll(() => source.queries.length, WAIT).toBeGreaterThan(before + more);
  };
  return { said, start, sizes, asked };
}

const harmsIn = ({ logs }: Awaited<ReturnType<typeof startTestDaemon>>) =>
  logs.filter(({ event }) => event === 'ebb.guard_harm');

it('what hurts after a lowering is found once, also by the daemon that comes after', async () => {
  const { said, start, sizes, asked } = await lowering('notify');
  const first = await start();
  await expect.poll(async () => (await sizes()).length, WAIT).toBe(1);
  said.value = '0.5';
  await expect.poll(() => harmsIn(first).length, WAIT).toBe(1);
  expect(harmsIn(first)[0]).toMatchObject({ guard: 'latency', compute: 'ep-awake' });
  const { text } = await scrape(first.url, TOKEN);
  expect(text).toContain('ebb_guard_watches_total{guard="latency",outcome="harm"} 1');
  await first.stop();
  const second = await start();
  await asked(8);
  expect(harmsIn(second)).toEqual([]);
  expect(await sizes()).toHaveLength(1);
});

it('is taken back with a restart where the guard says so, and not lowered again before a person releases it', async () => {
  const { said, start, sizes, asked } = await lowering('undo_with_restart');
  const first = await start();
  await expect.poll(async () => (await sizes()).length, WAIT).toBe(1);
  said.value = '0.5';
  const small = { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 0.5 };
  const large = { autoscaling_limit_min_cu: 1, autoscaling_limit_max_cu: 1 };
  await expect.poll(sizes, WAIT).toEqual([small, large]);
  said.value = '0.1';
  await first.stop();
  const second = await start();
  await asked(8);
  expect(await sizes()).toEqual([small, large]);
  const { text } = await scrape(second.url, TOKEN);
  expect(text).toContain('ebb_guard_floors{guard="latency"} 1');
  const released = await request(`${second.url}/api/v1/release`, {
    ...{ method: 'POST', headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' } },
    body: JSON.stringify({ target: 'ep-awake', owner: 'test', guard: true }),
  });
  expect(await released.body.json()).toMatchObject({ computes: [{ compute_id: 'ep-awake' }] });
  await expect.poll(sizes, WAIT).toEqual([small, large, small]);
});
