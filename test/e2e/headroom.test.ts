/** Headroom on real connections: computes that are real Postgres servers, clients that are real sessions. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { afterEach, expect, it } from 'vitest';
import { findPostgres } from '../../src/emulator/postgres/binaries.ts';
import { fastClock, startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { describeWith } from '../support/requirements.ts';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const WAIT = { timeout: 60_000, interval: 100 };
const ROOM = `  - name: room
    kind: headroom
    select: { projects: ["*"], min_age: 0s }
    connections: pg
    target: 70%
    critical: 90%
    max_size: 2
    scale_down: { after: 1m }
    disruption: { lower: { when: any }, cooldown: 0s }
`;

const EVENING = `  - name: evening
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: always, size: 0.25 }]
    otherwise: leave
    disruption: { lower: { when: any }, cooldown: 0s }
`;

/** A platform, ten times as fast as life, and a daemon that counts the connections of `ep-shop` every simulated 10 s. */
async function start(compute: Parameters<typeof startTestPlatform>[0][string], policies: string) {
  const postgres = findPostgres();
  if (postgres === undefined) throw new Error('no Postgres');
  const clock = fastClock(10);
  const platform = await startTestPlatform({ shop: compute }, { postgres, clock, operationTimeMs: 2_000 });
  undo.push(() => platform.close());
  const folder = await makeFolder();
  undo.push(() => folder.remove());
  await prepareQueue(folder.path);
  const sources = 'sources: { pg: { from: postgres, dsn_env: EBB_DSN_SHOP, every: 10s } }';
  await writeFile(join(folder.path, 'policy.yaml'), `version: 1\n${sources}\npolicies:\n${policies}`);
  const env = { EBB_DSN_SHOP: (await state(platform)).postgres_url };
  const daemon = await startTestDaemon({ platform, folder: folder.path, clock, env });
  undo.push(() => daemon.stop());
  return { platform, daemon };
}

async function state(platform: Platform) {
  const { body } = await request(`${platform.origin}/_emulator/state`);
  // biome-ignore lint/suspicious/noExplicitAny: what the emulator says of itself is not typed
  return ((await body.json()) as { computes: any[] }).computes[0];
}

const sizes = async (platform: Platform) =>
  (await platform.writes())
    .filter(({ method }) => method === 'PATCH')
    .map(({ body }) => (body as { endpoint: Record<string, number> }).endpoint.autoscaling_limit_max_cu);

async function metric(daemon: TestDaemon, name: string): Promise<number | undefined> {
  const { body } = await request(`${daemon.url}/metrics`);
  const line = (await body.text()).split('\n').find((one) => one.startsWith(`${name}{`));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

describeWith('postgres', 'headroom on real connections', () => {
  it('raises before anybody is refused, and goes back once', async () => {
    const { platform, daemon } = await start({ maxCu: 0.5, suspendTimeoutSeconds: 3_600 }, EVENING + ROOM);
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25]);
    await platform.control('computes/ep-shop/connect', { connections: 90, reconnect: true });
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25, 0.5]);
    await expect.poll(() => metric(daemon, 'ebb_max_connections'), WAIT).toBe(225);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(90);
    expect(await metric(daemon, 'ebb_connection_headroom_ratio')).toBeCloseTo(1 - 90 / 225);
    expect(await metric(daemon, 'ebb_connections_dropped_total')).toBe(90);
    expect(await state(platform)).toMatchObject({ connections: 90, restarts: 1 });
    expect((await state(platform)).connections_refused ?? 0).toBe(0);

    await platform.control('computes/ep-shop/disconnect', {});
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25, 0.5, 0.25]);
    await expect.poll(() => metric(daemon, 'ebb_max_connections'), WAIT).toBe(112);
    expect(await sizes(platform)).toEqual([0.25, 0.5, 0.25]);
  }, 180_000);

  it('keeps what is needed when a schedule wants less, and says why', async () => {
    const shop = { state: 'active', maxCu: 0.5, suspendTimeoutSeconds: -1, connections: 150 } as const;
    const { platform, daemon } = await start(shop, EVENING + ROOM);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(150);
    const desired = () => metric(daemon, 'ebb_compute_desired_max_cu');
    await expect.poll(desired, WAIT).toBe(0.5);
    const said = () => daemon.logs.filter(({ event }) => event === 'ebb.headroom').at(-1);
    const steps = [{ code: 'headroom', policy: 'room', peak: 150, need: 215, usable: 225 }];
    await expect.poll(said, WAIT).toMatchObject({ steps });
    expect(await sizes(platform)).toEqual([]);
  }, 180_000);

  it('lets a compute sleep that it watches, and does not wake it', async () => {
    const { platform, daemon } = await start({ state: 'active', suspendTimeoutSeconds: 300 }, ROOM);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(0);
    await expect.poll(async () => (await state(platform)).state, WAIT).toBe('idle');
    const awakeSeconds = (await state(platform)).active_seconds;
    const rounds = async () =>
      (await platform.requests()).filter(({ path }) => path.startsWith('/api/v2/projects?')).length;
    const before = await rounds();
    await expect.poll(rounds, WAIT).toBeGreaterThan(before + 30);
    expect(await state(platform)).toMatchObject({ state: 'idle', active_seconds: awakeSeconds });
  }, 180_000);
});
