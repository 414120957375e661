/** Headroom on real connections: computes that are real Postgres servers, clients that are real sessions. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { clockByTable } from '../../src/compose/run-daemon.ts';
import { findPostgres } from '../../src/emulator/postgres/data-folders.ts';
import { fastClock, startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { describeWith } from '../support/requirements.ts';

const WAIT = { timeout: 60_000, interval: 100 };
const HOUR_MS = 3_600_000;

/** Ten times as fast as life until a compute has fallen asleep, then an hour in 18 s. */
function lateFastClock(): ReturnType<typeof fastClock> {
  const nowMs = Date.now();
  return clockByTable({
    table: [
      { realMs: 0, simulatedMs: nowMs },
      { realMs: 45_000, simulatedMs: nowMs + 450_000 },
      { realMs: 105_000, simulatedMs: nowMs + 450_000 + 60_000 * 200 },
    ],
  });
}

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
async function start(
  compute: Parameters<typeof startTestPlatform>[0][string],
  policies: string,
  clock = fastClock(10),
) {
  const postgres = findPostgres();
  if (postgres === undefined) throw new Error('no Postgres');
  const platform = await startTestPlatform({ shop: compute }, { postgres, clock, operationTimeMs: 2_000 });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await prepareQueue(folder.path);
  const sources = 'sources: { pg: { from: postgres, dsn_env: EBB_DSN_SHOP, every: 10s } }';
  await writeFile(join(folder.path, 'policy.yaml'), `version: 1\n${sources}\npolicies:\n${policies}`);
  const env = { EBB_DSN_SHOP: (await state(platform)).postgres_url };
  const daemon = await startTestDaemon({ platform, folder: folder.path, clock, env });
  onTestFinished(() => daemon.stop());
  return { platform, daemon, clock };
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

/** Clients of the test's own, each of which connects again as soon as it is cut off. */
async function stayConnected(url: string, many: number) {
  const errors: string[] = [];
  const open = new Set<pg.Client>();
  let connected = 0;
  let hasLeft = false;
  const connect = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    client.on('end', () => {
      if (open.delete(client) && !hasLeft) void connect();
    });
    await client.connect().then(
      () => {
        connected += 1;
        open.add(client);
      },
      (error: Error) => void errors.push(error.message),
    );
  };
  const leave = async () => {
    hasLeft = true;
    await Promise.all([...open].map((client) => client.end().catch(() => undefined)));
  };
  onTestFinished(leave);
  await Promise.all(Array.from({ length: many }, connect));
  return { errors, open: () => open.size, connected: () => connected, leave };
}

describeWith('postgres', 'headroom on real connections', () => {
  it('raises before anybody is refused, and goes back once', async () => {
    const { platform, daemon } = await start({ maxCu: 0.5, suspendTimeoutSeconds: 3_600 }, EVENING + ROOM);
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25]);
    const clients = await stayConnected((await state(platform)).postgres_url, 5);
    await platform.control('computes/ep-shop/connect', { connections: 85, reconnect: true });
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25, 0.5]);
    await expect.poll(() => metric(daemon, 'ebb_max_connections'), WAIT).toBe(225);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(90);
    expect(await metric(daemon, 'ebb_connection_headroom_ratio')).toBeCloseTo(1 - 90 / 225);
    expect(await metric(daemon, 'ebb_connections_dropped_total')).toBe(90);
    expect(await state(platform)).toMatchObject({ connections: 90, restarts: 1, connections_refused: 0 });
    expect([clients.errors, clients.open(), clients.connected()]).toEqual([[], 5, 10]);

    await clients.leave();
    await platform.control('computes/ep-shop/disconnect', {});
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.25, 0.5, 0.25]);
    await expect.poll(() => metric(daemon, 'ebb_max_connections'), WAIT).toBe(112);
    expect(await sizes(platform)).toEqual([0.25, 0.5, 0.25]);
  });

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
  });

  it('takes a server that is full for full, and raises', async () => {
    const shop = { state: 'active', suspendTimeoutSeconds: -1 } as const;
    const { platform, daemon } = await start(shop, ROOM);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(0);
    await platform.control('computes/ep-shop/connect', { connections: 130, reconnect: true });
    await expect.poll(() => sizes(platform), WAIT).toEqual([0.5]);
    const { connections_refused: refused } = await state(platform);
    expect(refused).toBeGreaterThan(0);
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(130);
    expect(daemon.logs.filter(({ event }) => event === 'ebb.source_failed')).toEqual([]);
  });

  it('lets a compute sleep that it watches, and does not wake it for an hour', async () => {
    const { platform, daemon, clock } = await start(
      { state: 'active', suspendTimeoutSeconds: 300 },
      ROOM,
      lateFastClock(),
    );
    await expect.poll(() => metric(daemon, 'ebb_connections'), WAIT).toBe(0);
    const watchedSeconds = (await state(platform)).active_seconds;
    await expect.poll(async () => (await state(platform)).state, WAIT).toBe('idle');
    const awakeSeconds = (await state(platform)).active_seconds;
    // It counts from the last look that saw nobody: the first one, or one that came while that one still showed as activity.
    expect(awakeSeconds - watchedSeconds).toBeLessThan(2 * 300);
    const asleepAtMs = clock.now();
    await expect.poll(() => clock.now(), WAIT).toBeGreaterThan(asleepAtMs + HOUR_MS);
    expect(await state(platform)).toMatchObject({ state: 'idle', active_seconds: awakeSeconds, restarts: 0 });
    const headers = { authorization: `Bearer ${platform.apiKey}` };
    const { body } = await request(`${platform.url}/projects/shop/operations`, { headers });
    const { operations } = (await body.json()) as { operations: { action: string }[] };
    expect(operations.map(({ action }) => action)).toEqual(['suspend_compute']);
  });
});
