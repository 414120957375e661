/**
 * Holds that are set while daemons change computes at a boundary, on each store, with real processes: a change that reaches the control
 * API after a hold was acknowledged does not contradict it, unless the acknowledgement names it.
 */
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { expect, it, type TestContext } from 'vitest';
import { seededRandom } from '../../src/domain/random.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { SEED } from '../support/seed.ts';
import { CASE_MS, eventually } from './fault-case.ts';

/** All of one project, so that they are changed one after the other. */
const COMPUTES = 40;
/** Between two boundaries: time to make the changes, to release the holds, and to make those changes. */
const PERIOD_MS = 8_000;
/** Holds that are to be set so near to the change of their compute, and how many are. */
const NEAR_MS = 50;
const ENOUGH = Number(process.env.EBB_HOLDS_AT_BOUNDARIES ?? 40);
/** Even, since policies have one window for two boundaries. Two near holds a boundary are few, on a busy machine. */
const MAX_BOUNDARIES = Math.max(24, 2 * Math.ceil(ENOUGH / 4));
const TIMEOUT_MS = CASE_MS + Math.max(0, MAX_BOUNDARIES - 24) * PERIOD_MS;
/** What holds ask for; policies never do. */
const HELD_CU = 4;

interface SaidHold {
  compute: string;
  ackedMs: number;
  releasedMs: number;
  /** The sizes that the acknowledgement names. */
  named: (number | null)[];
}

interface Change {
  compute: string;
  atMs: number;
  maxCu: number | undefined;
}

const TOKEN = 'a-token-of-sixteen-or-more';
const ids = Array.from({ length: COMPUTES }, (_, index) => `ep-web-${100 + index}`);

/** Size 1 and 2 in turns, from `startMs` on. */
function policies(startMs: number): string {
  const iso = (ms: number) => new Date(ms).toISOString().replace('.000', '');
  const windows = Array.from({ length: MAX_BOUNDARIES / 2 }, (_, index) => {
    const from = startMs + 2 * index * PERIOD_MS;
    return `      - { at: ${iso(from)}/${iso(from + PERIOD_MS)}, size: 1 }`;
  });
  return `version: 1
policies:
  - name: in-turns
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows:
${windows.join('\n')}
    otherwise: { size: 2 }
`;
}

async function startCase(test: TestContext, queue: { url: string; group: string }, daemons: number) {
  const projects = [
    { id: 'web', name: 'web', regionId: 'aws-eu-central-1', pgVersion: 17, computes: ids.map(aCompute) },
  ];
  const platform = await startTestPlatform({}, { fleet: { projects }, operationTimeMs: 100, seed: SEED });
  test.onTestFinished(() => platform.close());
  const api = await watchPatches(Number(new URL(platform.origin).port));
  test.onTestFinished(() => api.close());
  const startMs = Math.ceil(Date.now() / 1000) * 1000 + 20_000;
  const folder = await makeFolder({
    'policy.yaml': policies(startMs),
    'ebb.yaml': 'api_requests_per_minute: 20000\n',
  });
  test.onTestFinished(() => folder.remove());
  const urls: string[] = [];
  for (let index = 0; index < daemons; index += 1) {
    const port = await freePort();
    const env = {
      ...{
        EBB_API_URL: platform.url.replace(/:\d+\//, `:${api.port}/`),
        EBB_API_KEY: platform.apiKey,
        EBB_TOKEN: TOKEN,
        EBB_LISTEN: `127.0.0.1:${port}`,
      },
      ...{ EBB_QUEUE_URL: queue.url, EBB_GROUP: queue.group },
    };
    const ebb = startEbb(['run', '--mode', 'enforce', '--policies', 'policy.yaml'], { cwd: folder.path, env });
    test.onTestFinished(() => ebb.kill());
    test.onTestFailed(() => void process.stdout.write(`${[...ebb.lines.slice(-40), ebb.stderr()].join('\n')}\n`));
    urls.push(`http://127.0.0.1:${port}`);
  }
  for (const url of urls) {
    await eventually(async () => expect((await request(`${url}/readyz`, { headers: AUTH })).statusCode).toBe(200));
  }
  return { platform, api, urls, startMs };
}

const AUTH = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

function aCompute(id: string): FleetCompute {
  const size = { minCu: 2, maxCu: 2 };
  return {
    id,
    branchId: `br-${id}`,
    type: 'read_write',
    ...size,
    suspendTimeoutSeconds: 300,
    state: 'idle',
    connections: 0,
  };
}

/** A way to the control API that tells at once which compute a PATCH is for, and whether it is a change that holds do not ask for. */
async function watchPatches(targetPort: number) {
  let onPatch: (compute: string) => void = () => {};
  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1');
    client.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      const compute = /PATCH \S*\/endpoints\/(ep-[\w-]+)/.exec(text)?.[1];
      if (compute !== undefined && !text.includes(`"autoscaling_limit_max_cu":${HELD_CU}`)) onPatch(compute);
    });
    client.pipe(upstream).pipe(client);
    for (const end of [client, upstream]) end.on('error', () => [client, upstream].map((one) => one.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  return {
    port: address !== null && typeof address !== 'string' ? address.port : 0,
    onPatch(call: (compute: string) => void) {
      onPatch = call;
    },
    close: () => new Promise<void>((closed) => void server.close(() => closed())),
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  return address !== null && typeof address !== 'string' ? address.port : 0;
}

async function tell(method: 'POST' | 'DELETE', url: string, body?: unknown): Promise<unknown> {
  const answer = await request(url, { method, headers: AUTH, ...(body ? { body: JSON.stringify(body) } : {}) });
  const document = await answer.body.json();
  if (answer.statusCode >= 300) throw new Error(`${method} ${url}: ${answer.statusCode} ${JSON.stringify(document)}`);
  return document;
}

async function hold(url: string, compute: string): Promise<{ id: string } & SaidHold> {
  const size = { min_cu: HELD_CU, max_cu: HELD_CU };
  const body = { compute, owner: 'ann', reason: 'import', for_seconds: 600, size };
  const answer = (await tell('POST', `${url}/api/v1/holds`, body)) as {
    id: string;
    in_flight: { to: { max_cu: number | null } }[];
  };
  const named = answer.in_flight.map(({ to }) => to.max_cu);
  return { id: answer.id, compute, ackedMs: Date.now(), releasedMs: Number.POSITIVE_INFINITY, named };
}

async function changesOf(platform: Platform): Promise<Change[]> {
  return (await platform.writes()).map(({ at, path, body }) => {
    const { endpoint } = body as { endpoint: { autoscaling_limit_max_cu?: number } };
    return {
      ...{ atMs: Date.parse(at), compute: path.split('/').at(-1) ?? '' },
      maxCu: endpoint.autoscaling_limit_max_cu,
    };
  });
}

/** Those that reached the API under a hold and are not what it asks for, without the ones that its acknowledgement names. */
function contradicting(holds: readonly SaidHold[], changes: readonly Change[]): string[] {
  return holds.flatMap(({ compute, ackedMs, releasedMs, named }) => {
    const under = changes.filter((one) => one.compute === compute && one.atMs > ackedMs && one.atMs < releasedMs);
    const left = [...named];
    return under.flatMap(({ maxCu, atMs }) => {
      if (maxCu === HELD_CU) return [];
      const index = left.indexOf(maxCu ?? null);
      if (index < 0) return [`${compute}: ${maxCu} CU ${atMs - ackedMs} ms after a hold was acknowledged`];
      left.splice(index, 1);
      return [];
    });
  });
}

/** How many holds were acknowledged within {@link NEAR_MS} of a change of their compute. */
function countNear(holds: readonly SaidHold[], changes: readonly Change[]): number {
  const isNear = ({ compute, ackedMs }: SaidHold) =>
    changes.some((one) => one.compute === compute && Math.abs(one.atMs - ackedMs) <= NEAR_MS);
  return holds.filter(isNear).length;
}

async function holdAtBoundaries(test: TestContext, queue: { url: string; group: string }, daemons: number) {
  const { platform, api, urls, startMs } = await startCase(test, queue, daemons);
  const random = seededRandom(SEED);
  const holds: SaidHold[] = [];
  for (let boundary = 0; boundary < MAX_BOUNDARIES; boundary += 1) {
    const asked = new Map<string, ReturnType<typeof hold>>();
    // Some while its change is on its way, most just before it: the changes of a project follow each other.
    api.onPatch((compute) => {
      const target = random() < 0.25 ? compute : ids[ids.indexOf(compute) + 1];
      if (target === undefined || asked.has(target)) return;
      const url = urls[Math.floor(random() * urls.length)] ?? '';
      asked.set(
        target,
        delay(random() < 0.5 ? 0 : random() * 25).then(() => hold(url, target)),
      );
    });
    await delay(Math.max(0, startMs + boundary * PERIOD_MS + PERIOD_MS / 2 - Date.now()));
    api.onPatch(() => {});
    const set = await Promise.all(asked.values());
    await eventually(async () => {
      const sizes = new Map((await changesOf(platform)).map(({ compute, maxCu }) => [compute, maxCu]));
      expect(set.filter(({ compute }) => sizes.get(compute) !== HELD_CU)).toEqual([]);
    });
    for (const one of set) one.releasedMs = Date.now();
    await Promise.all(set.map(({ id }) => tell('DELETE', `${urls[0]}/api/v1/holds/${id}?owner=ann`)));
    holds.push(...set);
    if (countNear(holds, await changesOf(platform)) >= ENOUGH) break;
  }
  const changes = await changesOf(platform);
  const near = countNear(holds, changes);
  const named = holds.filter((one) => one.named.length > 0).length;
  process.stdout.write(
    `${test.task.name}: ${holds.length} holds, ${near} within ${NEAR_MS} ms of a change, ${named} named one, ${changes.length} changes; EBB_SEED=${SEED}\n`,
  );
  expect(contradicting(holds, changes)).toEqual([]);
  expect(near).toBeGreaterThanOrEqual(ENOUGH);
}

describeWith('redis-server', 'holds at boundaries, on Redis', () => {
  it('two daemons contradict none', { timeout: TIMEOUT_MS }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    await holdAtBoundaries(test, { url: redis.url, group: 'test' }, 2);
  });
});

describeWith('postgres', 'holds at boundaries, on Postgres', () => {
  it('two daemons contradict none', { timeout: TIMEOUT_MS }, async (test) => {
    const postgres = await startPostgresServer();
    test.onTestFinished(() => postgres.close());
    await holdAtBoundaries(test, { url: postgres.url, group: 'test' }, 2);
  });
});

it('a daemon with an embedded store contradicts none', { timeout: TIMEOUT_MS }, async (test) => {
  const folder = await makeFolder();
  test.onTestFinished(() => folder.remove());
  await holdAtBoundaries(test, await prepareQueue(folder.path), 1);
});
