/** A small fleet under real daemons, each a process of its own, with a gate before the API and one before Redis. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { request } from 'undici';
import { expect, type TestContext, vi } from 'vitest';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../src/emulator/server.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { askRedis } from '../support/engine-daemon.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { replaceFile } from '../support/replace-file.ts';
import { SEED } from '../support/seed.ts';
import { type Gate, startGate } from './gate.ts';

/** Long: what is waited for takes a second on a machine that is at rest, or the end of a killed daemon's lease. */
const WAIT = { timeout: 100_000, interval: 50 };

/** Resolves once what is expected is so. Unlike `expect.poll` it knows its way among concurrent cases. */
export function eventually(expected: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(expected, WAIT);
}

/**
 * Prints how long it takes from now until what it gives is called, with the start of the next daemon. 30 s are promised of a daemon that
 * runs: a killed daemon's lease may take 8, and a change of which nobody knows whether it was sent 20. Nothing is asserted: a busy
 * machine would decide it.
 */
export function timeRecovery(from: string): () => void {
  const startedMs = performance.now();
  return () => {
    process.stdout.write(`as desired ${((performance.now() - startedMs) / 1000).toFixed(1)} s after: ${from}\n`);
  };
}

/** A case may take so long on a busy machine. */
export const CASE_MS = 240_000;

export interface FaultCase {
  platform: Platform;
  api: Gate;
  redis: Gate;
  /** Starts a daemon that enforces; on policies of its own if a text is given, and with more variables. */
  start(policies?: string, more?: Record<string, string>): Promise<EbbProcess>;
  writePolicies(text: string): Promise<void>;
  /** What was carried out, in order: the compute, and the maximum that it was given. */
  appliedMaxima(): Promise<[string, number | undefined][]>;
  /** Sizes as `min-max` by compute, of what no gate protects. */
  sizes(): Promise<Record<string, string>>;
  /** Clients connect to the only compute of a project, and come back when they are cut off; resolves when it is awake. */
  wake(project: string): Promise<void>;
  /** What the store has, by compute. */
  records(): Promise<Map<string, ComputeRecord>>;
  /** What the store has of the only compute of a project. */
  record(project: string): Promise<ComputeRecord | undefined>;
  /** At the end of each case: nothing that a gate forbade was ever asked for, and nothing but what ebb may do. */
  expectNothingForbidden(): Promise<void>;
}

export interface FaultCaseOptions {
  redisPort: number;
  /** One of its own if it is left out: neither another case on this Redis nor an earlier try of this one has used it. */
  group?: string;
  computes: Record<string, Partial<FleetCompute>>;
  policies?: string;
  /** An `ebb.yaml`. */
  settings?: string;
  options?: Partial<EmulatorOptions>;
  /** The test's own, since cases run side by side. */
  test: Pick<TestContext, 'onTestFinished' | 'onTestFailed' | 'task'>;
}

/** Computes that stand beside those of every case, and must not be touched: clients are connected, and a freeze. */
const FORBIDDEN = {
  'in-use': { state: 'active', connections: 2 },
  'held-still': {},
} as const satisfies Record<string, Partial<FleetCompute>>;

/** Every compute of the case at this size; those beside them for a moment that never comes. */
export function sizedAt(size: string, at = 'always'): string {
  return `version: 1
policies:
  - name: sized
    kind: schedule
    select: { projects: ["*", "!in-use"], min_age: 1m }
    windows: [{ at: ${at}, size: ${size} }]
    otherwise: leave
  - name: when-asleep
    kind: schedule
    select: { projects: [in-use], min_age: 1m }
    windows: [{ at: always, size: 4 }]
    otherwise: leave
    disruption: { raise: { when: idle } }
  - name: still
    kind: freeze
    select: { projects: [held-still], min_age: 1m }
    at: always
`;
}

/** A time that does not come, as policies write it. */
export const NEVER = '2099-01-01T00:00:00Z/2099-01-02T00:00:00Z';

/** An hour that opens in so many milliseconds, as policies write it; and its start as an instant. */
export function hourIn(inMs: number): { startMs: number; at: string } {
  const startMs = Math.ceil((Date.now() + inMs) / 1000) * 1000;
  const [start, end] = [startMs, startMs + 3_600_000].map((ms) => new Date(ms).toISOString().replace('.000', ''));
  return { startMs, at: `${start}/${end}` };
}

export async function startFaultCase(options: FaultCaseOptions): Promise<FaultCase> {
  const { test, redisPort, group = randomUUID(), computes, policies = sizedAt('1-2'), settings = '' } = options;
  const onEnd = (end: () => Promise<unknown>) => test.onTestFinished(() => end().then(() => {}));
  const fleet = { ...computes, ...FORBIDDEN };
  const platform = await startTestPlatform(fleet, { operationTimeMs: 200, seed: SEED, ...options.options });
  onEnd(() => platform.close());
  const [api, redis] = await Promise.all([startGate(Number(new URL(platform.origin).port)), startGate(redisPort)]);
  onEnd(() => Promise.all([api.close(), redis.close()]));
  const env = {
    EBB_API_URL: platform.url.replace(/:\d+\//, `:${api.port}/`),
    EBB_API_KEY: platform.apiKey,
    EBB_QUEUE_URL: `redis://127.0.0.1:${redis.port}`,
    EBB_GROUP: group,
    EBB_LISTEN: '127.0.0.1:0',
  };
  const folderWith = async (text: string) => {
    const folder = await makeFolder({ 'policy.yaml': text, 'ebb.yaml': settings });
    onEnd(() => folder.remove());
    return folder.path;
  };
  const folder = await folderWith(policies);
  const records = () => askRedis(`redis://127.0.0.1:${redisPort}`, (client) => recordsOf(client, `{ebb-${group}}`));
  return {
    ...{ platform, api, redis, records },
    async start(own, more) {
      const cwd = own === undefined ? folder : await folderWith(own);
      const args = ['run', '--mode', 'enforce', '--policies', 'policy.yaml'];
      for (let tries = 1; ; tries += 1) {
        const ebb = startEbb(args, { cwd, env: { ...env, ...more } });
        onEnd(() => ebb.kill());
        test.onTestFailed(
          () => void process.stdout.write(`${[test.task.name, ...ebb.lines, ebb.stderr()].join('\n')}\n`),
        );
        const hasStarted = () => expect(ebb.logs()).toContainEqual(expect.objectContaining({ event: 'ebb.start' }));
        const outcome = await Promise.race([eventually(hasStarted).then(() => 'started' as const), ebb.ended]);
        if (outcome === 'started') return ebb;
        // Redis has 3 s to answer a daemon that starts, which is little on a busy machine: it is started again, as systemd would.
        const startsAgain = tries < 3 && ebb.stderr().includes('no answer in time');
        if (!startsAgain) throw new Error(`the daemon ended with ${outcome}: ${ebb.stderr()}`);
      }
    },
    writePolicies: (text) => replaceFile(join(folder, 'policy.yaml'), text),
    appliedMaxima: () => appliedMaxima(platform),
    sizes: () => sizesOf(platform),
    async wake(project) {
      await platform.control(`computes/ep-${project}/connect`, { connections: 2, reconnect: true });
      await eventually(async () => expect(await stateOf(platform)).toMatchObject({ open_operations: 0 }));
    },
    record: async (project) => (await records()).get(`ep-${project}`),
    expectNothingForbidden: () => expectNothingForbidden(platform),
  };
}

async function recordsOf(client: Redis, prefix: string): Promise<Map<string, ComputeRecord>> {
  const found = new Map<string, ComputeRecord>();
  for (const projectId of await client.smembers(`${prefix}:store:projects`)) {
    const texts = Object.entries(await client.hgetall(`${prefix}:store:records:${projectId}`));
    for (const [id, text] of texts) found.set(id, (JSON.parse(text) as { record: ComputeRecord }).record);
  }
  return found;
}

async function appliedMaxima(platform: Platform): Promise<[string, number | undefined][]> {
  const done = (await platform.writes()).filter(({ status }) => status === 200);
  return done.map(({ path, body }) => {
    const { endpoint } = body as { endpoint: { autoscaling_limit_max_cu?: number } };
    return [path.split('/').at(-1) ?? '', endpoint.autoscaling_limit_max_cu];
  });
}

interface World {
  open_operations: number;
  computes: { compute_id: string; project_id: string; min_cu: number; max_cu: number }[];
}

async function stateOf({ origin }: Platform): Promise<World> {
  const answer = await request(`${origin}/_emulator/state`);
  return (await answer.body.json()) as World;
}

async function sizesOf(platform: Platform): Promise<Record<string, string>> {
  const { computes } = await stateOf(platform);
  const ours = computes.filter(({ project_id }) => !(project_id in FORBIDDEN));
  return Object.fromEntries(ours.map(({ compute_id, min_cu, max_cu }) => [compute_id, `${min_cu}-${max_cu}`]));
}

async function expectNothingForbidden(platform: Platform): Promise<void> {
  const writes = await platform.writes();
  const forbidden = Object.keys(FORBIDDEN).map((name) => `ep-${name}`);
  expect(writes.filter(({ path }) => forbidden.includes(path.split('/').at(-1) ?? ''))).toEqual([]);
  expect(writes.filter(({ method }) => method !== 'PATCH')).toEqual([]);
}
