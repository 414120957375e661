import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { confirmCount } from '../../src/cli/operator/confirm.ts';
import { openApplying } from '../../src/compose/applying.ts';
import { openStore } from '../../src/compose/store.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import { withRestore } from '../../src/domain/overrides/restore.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { loadPolicySet } from '../../src/policy/load.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { aRecord } from '../support/builders.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { eventually } from '../support/eventually.ts';
import { type Platform, startTestPlatform } from '../support/platform.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

/** Wants 1 CU for whatever is called web, so that both raises and lowerings are needed; at any time. */
const POLICIES = `version: 1
policies:
  - name: one
    kind: schedule
    select: { projects: ["web-*"], min_age: 1m }
    windows: [{ at: always, size: 1, suspend_after: 10m }]
    otherwise: leave
`;

const SMALL = { minCu: 0.25, maxCu: 0.5 };
const LARGE = { minCu: 2, maxCu: 8 };
const RIGHT = { minCu: 1, maxCu: 1, suspendTimeoutSeconds: 600 };
const FLEET = { 'web-small': SMALL, 'web-large': LARGE, 'web-right': RIGHT, other: {} };

type Env = Record<string, string>;

let folder: string;
let redis: RedisServer;
let platform: Platform;
let groups = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ebb-apply-'));
  writeFileSync(join(folder, 'policy.yaml'), POLICIES);
  writeFileSync(join(folder, 'other.yaml'), POLICIES.replace('name: one', 'name: other'));
});

afterEach(() => platform?.close());

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function onPlatform(queueUrl: string, fleet: Parameters<typeof startTestPlatform>[0] = FLEET): Promise<Env> {
  platform = await startTestPlatform(fleet, { operationTimeMs: 100 });
  groups += 1;
  return {
    ...{ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: queueUrl },
    ...{ EBB_GROUP: `test-${groups}`, EBB_POLICIES: join(folder, 'policy.yaml') },
  };
}

/** The command as a process. */
async function ebb(args: readonly string[], env: Env) {
  const run = startEbb(args, { cwd: folder, env });
  const status = await run.ended;
  return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
}

function settingsOf(env: Env) {
  const read = readSettings({ env, cwd: folder });
  if (!read.ok) throw new Error(read.problems.join());
  return read.settings;
}

/** What `ebb apply --yes` does, in this process: what became of each compute, by id. */
async function applied(env: Env, options: { meanwhile?: () => Promise<void>; signal?: AbortSignal } = {}) {
  const settings = settingsOf(env);
  const loaded = await loadPolicySet({ paths: settings.policies, settings });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const opened = await openApplying({ settings, policies: loaded.set });
  if (!opened.ok) throw new Error(opened.problem);
  try {
    const planned = await opened.value.plan();
    if (!planned.ok) throw new Error(planned.problem);
    await options.meanwhile?.();
    const { signal = new AbortController().signal } = options;
    const results = await opened.value.applyPlan(planned.value, { signal });
    const outcomes = [...results].map(([{ compute }, applied]) => [compute.computeId, applied] as const);
    return { outcomes: Object.fromEntries(outcomes), planning: planned.value };
  } finally {
    await opened.value.close();
  }
}

async function patches() {
  return (await platform.writes()).map(({ method, path, body }) => [`${method} ${path.split('/').at(-1)}`, body]);
}

const TO_ONE = { endpoint: { autoscaling_limit_min_cu: 1, autoscaling_limit_max_cu: 1, suspend_timeout_seconds: 600 } };

describeWith('redis-server', 'ebb apply', () => {
  beforeAll(async () => {
    redis = await startRedisServer();
  });

  afterAll(() => redis.close());

  it('sends exactly what the plan file says, raises first, and refuses the same plan afterwards', async () => {
    const env = await onPlatform(redis.url);
    expect(await ebb(['plan', '--out', 'plan.json'], env)).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^note: no daemon has used redis:\S+ for the group \S+ yet: [^\n]*$/),
    });
    const done = await ebb(['apply', '--plan', 'plan.json'], env);
    expect(done).toMatchObject({ status: 0, stderr: '' });
    expect(done.stdout.split('\n').slice(-5)).toEqual([
      'changing ep-web-small',
      'done     web-small / ep-web-small',
      'changing ep-web-large',
      'done     web-large / ep-web-large',
      '2 done',
    ]);
    expect(await patches()).toEqual([
      ['PATCH ep-web-small', TO_ONE],
      ['PATCH ep-web-large', TO_ONE],
    ]);
    expect(await recordOf(env, 'web-small', 'ep-web-small')).toMatchObject({
      baseline: { minCu: 0.25, maxCu: 0.5, suspendTimeoutSeconds: 300 },
      lastApplied: { minCu: 1, maxCu: 1, suspendTimeoutSeconds: 600 },
      openOperations: [],
    });
    const was = 'the plan in the file is min_cu 1, max_cu 1, suspend_timeout_seconds 600, from';
    const desired = 'desired min_cu 1, max_cu 1, suspend_timeout_seconds 600';
    expect(await ebb(['apply', '--plan', 'plan.json'], env)).toEqual({
      status: 1,
      stdout: '',
      stderr: [
        `plan.json: ep-web-large: ${was} 2-8 CU, 300 s, ${desired}, project web-large; the present one is nothing`,
        `plan.json: ep-web-small: ${was} 0.25-0.5 CU, 300 s, ${desired}, project web-small; the present one is nothing`,
        'nothing was changed: make a new plan with ebb plan --out plan.json',
      ].join('\n'),
    });
    expect(await patches()).toHaveLength(2);
  });

  it('refuses a plan after a change behind its back, or under other policies, and sends nothing', async () => {
    const env = await onPlatform(redis.url, { 'web-small': SMALL });
    await ebb(['plan', '--out', 'stale.json'], env);
    const others = await ebb(['apply', '--plan', 'stale.json'], { ...env, EBB_POLICIES: 'other.yaml' });
    expect(others).toMatchObject({ status: 1, stderr: expect.stringMatching(/^stale\.json: the policies are not/) });
    await changeByHand('web-small', { autoscaling_limit_max_cu: 2 });
    const late = await ebb(['apply', '--plan', 'stale.json'], env);
    expect(late).toMatchObject({ status: 1, stderr: expect.stringContaining('from 0.25-0.5 CU, 300 s, desired') });
    expect(await patches()).toEqual([['PATCH ep-web-small', { endpoint: { autoscaling_limit_max_cu: 2 } }]]);
  });

  it('refuses a plan file that was edited and has kept its hash, and sends nothing', async () => {
    const env = await onPlatform(redis.url, { 'web-small': SMALL });
    await ebb(['plan', '--out', 'edited.json'], env);
    const path = join(folder, 'edited.json');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"max_cu": 1', '"max_cu": 2'));
    const { status, stderr } = await ebb(['apply', '--plan', 'edited.json'], env);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^edited\.json: ep-web-small: the plan in the file is min_cu 1, max_cu 2.*; the present one is min_cu 1, max_cu 1/,
    );
    expect(await patches()).toEqual([]);
  });

  it('prints results as JSON, changes what disconnects nobody, and leaves to a daemon what waits', async () => {
    const env = await onPlatform(redis.url, { 'web-one': { ...LARGE, state: 'active', connections: 3 } });
    const { status, stdout, stderr } = await ebb(['apply', '--yes', '--json'], env);
    expect(stderr).toContain('waits: ebb has just discovered this active compute');
    expect(JSON.parse(stdout)).toMatchObject({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      computes: [{ project_id: 'web-one', compute_id: 'ep-web-one', outcome: 'done' }],
    });
    expect(status).toBe(0);
    expect(await patches()).toEqual([['PATCH ep-web-one', { endpoint: { suspend_timeout_seconds: 600 } }]]);
  });

  it('follows operations to their end and says which failed', async () => {
    const awake = { ...SMALL, state: 'active', connections: 2 } as const;
    const env = await onPlatform(redis.url, { 'web-good': awake, 'web-bad': awake, 'web-idle': LARGE });
    for (const name of ['web-good', 'web-bad']) await changedBefore(env, name);
    await platform.control('faults', { kind: 'operation', compute: 'ep-web-bad', outcome: 'fail' });
    const { outcomes } = await applied(env);
    expect(outcomes).toEqual({
      'ep-web-good': { outcome: 'done' },
      'ep-web-bad': { outcome: 'failed', message: expect.stringContaining('failed') },
      'ep-web-idle': { outcome: 'done' },
    });
    expect((await recordOf(env, 'web-good', 'ep-web-good'))?.openOperations).toEqual([]);
    expect((await recordOf(env, 'web-bad', 'ep-web-bad'))?.failures?.size?.count).toBe(1);
    expect(await patches()).toHaveLength(3);
  });

  it('plans again before each write: what has changed meanwhile is left as it is', async () => {
    const env = await onPlatform(redis.url);
    const meanwhile = () => changeByHand('web-small', { suspend_timeout_seconds: 900 });
    const { outcomes } = await applied(env, { meanwhile });
    expect(outcomes).toEqual({
      'ep-web-small': { outcome: 'skipped', message: 'somebody has changed it since it was planned' },
      'ep-web-large': { outcome: 'done' },
    });
    expect((await patches()).slice(1)).toEqual([['PATCH ep-web-large', TO_ONE]]);
  });

  it('does not write past a freeze, also one that comes after the plan', async () => {
    const env = await onPlatform(redis.url);
    const { outcomes } = await applied(env, { meanwhile: () => freezeAll(env) });
    const message = expect.stringContaining('frozen by anna until');
    expect(outcomes).toEqual({
      'ep-web-small': { outcome: 'skipped', message },
      'ep-web-large': { outcome: 'skipped', message },
    });
    const { planning } = await applied(env);
    expect(planning.plan.computes.filter(({ plan }) => plan.verdict === 'act')).toEqual([]);
    expect(await patches()).toEqual([]);
  });

  it('does not write past a freeze that a daemon kept here, though the store came back empty', async () => {
    const kept = mkdtempSync(join(folder, 'kept-'));
    const env: Env = { ...(await onPlatform(redis.url)), EBB_STATE_DIR: kept };
    const nowMs = Date.now();
    const freeze: Freeze = {
      ...{ id: 'f-kept', owner: 'anna', reason: 'release', select: 'all', allowRaise: false },
      ...{ createdAtMs: nowMs - 1000, expiresAtMs: nowMs + 3_600_000 },
    };
    writeFileSync(join(kept, `${env.EBB_GROUP}.json`), JSON.stringify({ holds: [], freezes: [freeze] }));
    const { planning } = await applied(env);
    const gates = planning.plan.computes.flatMap(({ plan }) => plan.waiting.map(({ gate }) => gate.code));
    expect(new Set(gates)).toEqual(new Set(['frozen']));
    expect(await patches()).toEqual([]);
  });

  it('drops the requests to go back that its policies stand against, also of computes that it does not change', async () => {
    const env = await onPlatform(redis.url, { 'web-right': RIGHT });
    await storeRecord(env, 'web-right', withRestore(aRecord(), { owner: 'ann', nowMs: Date.now(), now: true }));
    await applied(env);
    expect(await recordOf(env, 'web-right', 'ep-web-right')).not.toHaveProperty('restore');
    expect(await patches()).toEqual([]);
  });

  it('begins nothing more once it is interrupted', async () => {
    const env = await onPlatform(redis.url);
    const { outcomes } = await applied(env, { signal: AbortSignal.abort() });
    expect(Object.values(outcomes).map(({ outcome }) => outcome)).toEqual(['skipped', 'skipped']);
    expect(await patches()).toEqual([]);
  });

  it('tells what the control API refused, and has nothing more to do once all is applied', async () => {
    const env = await onPlatform(redis.url);
    await platform.control('faults', {
      kind: 'status',
      status: 412,
      message: 'not on this plan',
      method: 'PATCH',
      count: 1,
    });
    expect((await applied(env)).outcomes).toMatchObject({
      'ep-web-small': { outcome: 'failed', message: '412: not on this plan' },
      'ep-web-large': { outcome: 'done' },
    });
    await applied(env);
    const { planning } = await applied(env);
    expect(planning.plan.computes.map(({ compute, plan }) => [compute.computeId, plan.verdict])).toContainEqual([
      'ep-web-large',
      'none',
    ]);
  });
});

describe('ebb apply, before it writes', () => {
  it('asks for the number of computes to be typed', async () => {
    const typed = async (text: string) => {
      const [input, output] = [new PassThrough(), new PassThrough()];
      const answer = confirmCount(3, { input, output });
      await eventually(() => String(output.read() ?? '')).toBe('Type 3 to change 3 computes now: ');
      input.end(text);
      return answer;
    };
    expect([await typed('3\n'), await typed('yes\n'), await typed('')]).toEqual([true, false, false]);
  });

  it('needs a terminal or a word, a key that may write, and a plan that is one', async () => {
    const env = await onPlatform('embedded:none');
    const { EBB_API_KEY: key = '', ...keyless } = env;
    writeFileSync(join(folder, 'no-plan.json'), '{"at": 1}');
    const failures = [
      await ebb(['apply'], env),
      await ebb(['apply', '--yes'], { ...keyless, NEON_API_KEY: key }),
      await ebb(['apply', '--plan', 'no-plan.json'], env),
    ];
    expect(failures).toEqual([
      {
        status: 1,
        stdout: '',
        stderr: 'ebb: there is no terminal to ask on: use --yes, or --plan FILE (ebb plan --out FILE)',
      },
      {
        status: 1,
        stdout: '',
        stderr: expect.stringMatching(/^ebb: NEON_API_KEY is used for reading only, and this would/),
      },
      {
        status: 1,
        stdout: '',
        stderr: 'ebb: --plan: no-plan.json is not a plan (at): make one with ebb plan --out no-plan.json',
      },
    ]);
    expect(await patches()).toEqual([]);
  });

  it('needs an embedded store for itself', async () => {
    const queue = mkdtempSync(join(folder, 'queue-'));
    await copyDatabase(queue);
    const env = await onPlatform(`embedded:${queue}`);
    const { close } = await storeOf(env);
    try {
      expect((await ebb(['apply', '--yes'], env)).stderr).toMatch(
        /^ebb: the embedded queue in .* is in use by another ebb: stop that one, or use redis:\/\/ for several daemons$/,
      );
      expect((await ebb(['plan'], env)).stderr).toMatch(/^note: the embedded queue in .* is in use by another ebb/);
    } finally {
      await close();
    }
    expect(await patches()).toEqual([]);
  });
});

async function storeOf(env: Env) {
  const opened = await openStore(settingsOf(env));
  if (!opened.ok) throw new Error(opened.problem);
  return opened.value;
}

async function recordOf(env: Env, projectId: string, computeId: string) {
  const { store, close } = await storeOf(env);
  try {
    return (await store.records(projectId)).get(computeId);
  } finally {
    await close();
  }
}

/** ebb has changed the only compute of a project before: then a raise does not wait. */
async function changedBefore(env: Env, projectId: string): Promise<void> {
  const settings = { ...SMALL, suspendTimeoutSeconds: 300 };
  await storeRecord(env, projectId, aRecord({ baseline: settings, lastApplied: settings }));
}

/** Of the only compute of a project. */
async function storeRecord(env: Env, projectId: string, record: ComputeRecord): Promise<void> {
  const { store, close } = await storeOf(env);
  const lease = await store.acquireLease(`project-${projectId}`, 'test', 10_000);
  if (!lease) throw new Error('no lease');
  await store.putRecord(projectId, `ep-${projectId}`, record, lease);
  await store.releaseLease(lease);
  await close();
}

async function freezeAll(env: Env): Promise<void> {
  const { store, close } = await storeOf(env);
  const nowMs = Date.now();
  await store.putFreeze({
    ...{ id: 'f-1', owner: 'anna', reason: 'release', select: 'all', allowRaise: false },
    ...{ createdAtMs: nowMs - 1000, expiresAtMs: nowMs + 3_600_000 },
  });
  await close();
}

async function changeByHand(projectId: string, endpoint: object): Promise<void> {
  const answer = await request(`${platform.url}/projects/${projectId}/endpoints/ep-${projectId}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${platform.apiKey}` },
    body: JSON.stringify({ endpoint }),
  });
  expect(answer.statusCode, await answer.body.text()).toBe(200);
}
