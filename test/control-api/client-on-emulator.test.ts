/** The client and the emulator know each other over HTTP alone; here every call and every error goes over that wire. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { createKeyClient } from '../../src/adapters/control-api/key-client.ts';
import { ACCOUNT_FACTS, FACT_NAMES } from '../../src/domain/compute/account-facts.ts';
import type { ApiResult, CallOptions, ControlApi, ControlApiErrorCode } from '../../src/ports/control-api.ts';
import { compute, startTestEmulator, type TestEmulator } from '../emulator/support.ts';
import { emulated, type Truth } from '../verify/service.ts';
import { clientOptions, UNLIMITED } from './samples.ts';
import { all, errorOf, unwrap } from './support.ts';

const SHOP = { account: 'main', projectId: 'shop', name: 'shop' };
const UPDATE = 'PATCH /projects/{project_id}/endpoints/{endpoint_id}';
const LIST = 'GET /projects/{project_id}/endpoints';

let platform: TestEmulator;
let api: ControlApi;
let keys: ReturnType<typeof createKeyClient>;

/** The first and the last value of each fact that accounts may differ in. */
const TRUTHS = [0, -1].map(
  (at) => Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact].at(at)])) as Truth,
);

async function start(truth: Truth): Promise<void> {
  const computes = [
    compute({ id: 'ep-awake', branchId: 'br-main', state: 'active', connections: 3, branch: { default: true } }),
    compute({
      id: 'ep-asleep',
      branchId: 'br-dev',
      suspendTimeoutSeconds: 0,
      branch: { name: 'dev', protected: true },
    }),
  ];
  const others = Array.from({ length: 402 }, (_, index) => `p-${String(index).padStart(3, '0')}`);
  const usual = { regionId: 'aws-eu-central-1', pgVersion: 17 };
  platform = await startTestEmulator({
    ...emulated(truth),
    fleet: {
      projects: [
        { ...usual, id: 'shop', name: 'shop', account: 'red', computes },
        { ...usual, id: 'free', name: 'free', plan: 'free', computes: [compute({ id: 'ep-free' })] },
        ...others.map((id) => ({ ...usual, id, name: id, computes: [] })),
      ],
    },
  });
  api = clientOf(platform.emulator.apiKey);
  keys = keyClientOf(platform.emulator.apiKey);
}

afterEach(async () => {
  await api.close();
  await keys.close();
  await platform.emulator.close();
});

function optionsOf(key: string, more: object = {}) {
  const accounts = [{ name: 'main', key: () => key, ...more }];
  return clientOptions(platform.emulator.url, { accounts, budget: UNLIMITED });
}

const clientOf = (key: string, more?: object) => createControlApi(optionsOf(key, more));
const keyClientOf = (key: string) => createKeyClient(optionsOf(key));

/** Lets the operations that run come to their end. */
function settle(): void {
  for (let second = 0; second < 10; second += 1) platform.pass(1_000);
}

describe.each(TRUTHS)('every call, where sleeping computes at a new size: $idle_resize', (truth) => {
  beforeEach(() => start(truth));

  test('projects come in pages, all of them, each once', async () => {
    const pages = (await all(api.listProjects())).map(unwrap);
    expect(pages.map((page) => page.length)).toEqual([400, 4]);
    expect(new Set(pages.flat().map((project) => project.projectId)).size).toBe(404);
    expect(pages.flat().find(({ projectId }) => projectId === 'shop')).toMatchObject({ name: 'shop', account: 'main' });
  });

  test('computes are listed, with a stored timeout of 0 shown as 300', async () => {
    const { computes } = unwrap(await api.listComputes(SHOP));
    expect(computes).toHaveLength(2);
    expect(computes.find(({ computeId }) => computeId === 'ep-asleep')).toMatchObject({
      state: 'idle',
      suspendTimeoutSeconds: 300,
      branchId: 'br-dev',
      type: 'read_write',
    });
  });

  test('a project tells its billing period, what was used in it, and the plan', async () => {
    const { plan, fromMs, toMs, cuHours } = unwrap(await api.projectPeriod(SHOP));
    expect(plan).toBe('scale');
    expect((toMs - fromMs) / 86_400_000).toBeGreaterThanOrEqual(28);
    expect(cuHours).toBeGreaterThanOrEqual(0);
  });

  test('branches have names and roles', async () => {
    const branches = (await all(api.listBranches('shop'))).flatMap(unwrap);
    expect(branches.find(({ branchId }) => branchId === 'br-main')).toMatchObject({ isDefault: true });
    expect(branches.find(({ branchId }) => branchId === 'br-dev')).toMatchObject({ name: 'dev', isProtected: true });
  });

  test('an active compute is changed, and its operations are listed and end', async () => {
    const changed = unwrap(await api.updateCompute('shop', 'ep-awake', { minCu: 0.25, maxCu: 4 }));
    expect(changed.settings).toEqual({ minCu: 0.25, maxCu: 4, suspendTimeoutSeconds: 300 });
    expect(changed.operations.map(({ action }) => action)).toContain('apply_config');
    settle();
    const [newest] = (await all(api.listOperations('shop'))).map(unwrap);
    for (const started of changed.operations) {
      const listed = newest?.find(({ operationId }) => operationId === started.operationId);
      expect(listed).toMatchObject({ outcome: 'succeeded', computeId: 'ep-awake', projectId: 'shop' });
      expect(listed?.totalDurationMs).toBeGreaterThan(0);
    }
  });

  test('a sleeping compute is changed, and its operations are those that wake it', async () => {
    const changed = unwrap(
      await api.updateCompute('shop', 'ep-asleep', { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 }),
    );
    const { operations, pendingState, ...others } = changed;
    expect(others).toEqual({
      settings: { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 },
      state: 'idle',
      updatedAtMs: expect.any(Number),
    });
    const isWoken = truth.idle_resize === 'wakes';
    expect(operations.map(({ action }) => action)).toEqual(isWoken ? ['start_compute', 'suspend_compute'] : []);
    expect(pendingState).toBe(isWoken ? 'idle' : undefined);
  });

  test('restart answers its operations', async () => {
    const { operations } = unwrap(await api.restartCompute('shop', 'ep-awake'));
    expect(operations.map(({ action }) => action)).toEqual(['suspend_compute', 'start_compute']);
  });

  test('a project-scoped key is made, opens its project alone, and makes a folder of keys work', async () => {
    const made = unwrap(await keys.createProjectKey({ ...SHOP, organizationId: 'org-red', name: 'ebb' }));
    expect(made).toMatchObject({ name: 'ebb', projectId: 'shop', key: expect.stringMatching(/^napi_/) });
    const scoped = clientOf(made.key, { projectIds: async () => ['shop'] });
    const projects = (await all(scoped.listProjects())).flatMap(unwrap);
    expect(projects.map(({ projectId }) => projectId)).toEqual(['shop']);
    unwrap(await scoped.listComputes(SHOP));
    expect(errorOf(await scoped.listComputes({ ...SHOP, projectId: 'free' })).code).toMatch(/not_found|forbidden/);
    await scoped.close();
  });

  test('an account shows the projects of its organization alone', async () => {
    const red = clientOf(platform.emulator.apiKey, { organization: 'org-red' });
    expect((await all(red.listProjects())).flatMap(unwrap).map(({ projectId }) => projectId)).toEqual(['shop']);
    await red.close();
  });

  test('the daemon asks for nothing but what its guard lets through', async () => {
    const daemon = createControlApi({
      ...clientOptions(platform.emulator.url),
      accounts: [{ name: 'main', key: () => platform.emulator.apiKey }],
    });
    await all(daemon.listProjects());
    unwrap(await daemon.listComputes(SHOP));
    await all(daemon.listBranches('shop'));
    await all(daemon.listOperations('shop'));
    unwrap(await daemon.updateCompute('shop', 'ep-asleep', { suspendTimeoutSeconds: 600 }));
    unwrap(await daemon.restartCompute('shop', 'ep-awake'));
    await daemon.close();
  });
});

async function expectCode(call: Promise<ApiResult<unknown>>, code: ControlApiErrorCode) {
  const error = errorOf(await call);
  expect(error).toMatchObject({ code });
  return error;
}

const fault = (body: object) => platform.control('POST', '/faults', body);

function update(options: CallOptions = {}) {
  return api.updateCompute('shop', 'ep-asleep', { minCu: 2 }, { deadlineMs: 400, ...options });
}

function newKey() {
  return keys.createProjectKey({ ...SHOP, organizationId: 'org-red', name: 'x' });
}

/** The type makes this complete: a code without its scenario doesn't compile. */
const EVERY_ERROR: Record<ControlApiErrorCode, () => Promise<void>> = {
  /** A key that was never valid, and one that was revoked. */
  async unauthorised() {
    const stranger = clientOf('napi_never');
    const error = await expectCode(stranger.listComputes(SHOP), 'unauthorised');
    expect(error).toMatchObject({ status: 401, message: 'supplied credentials do not pass authentication' });
    await stranger.close();
    const { key, keyId } = unwrap(await newKey());
    await platform.call('DELETE', `/organizations/org-red/api_keys/${keyId}`);
    const revoked = clientOf(key);
    await expectCode(revoked.listComputes(SHOP), 'unauthorised');
    await revoked.close();
  },
  async forbidden() {
    const scoped = keyClientOf(unwrap(await newKey()).key);
    const wanted = { ...SHOP, organizationId: 'org-red', name: 'y' };
    await expectCode(scoped.createProjectKey(wanted), 'forbidden');
    await scoped.close();
  },
  async not_found() {
    await expectCode(api.updateCompute('shop', 'ep-nowhere', { minCu: 1 }), 'not_found');
  },
  async conflict() {
    await fault({ kind: 'status', status: 409, count: 1 });
    await expectCode(update(), 'conflict');
  },
  async invalid() {
    const error = await expectCode(api.updateCompute('shop', 'ep-asleep', { minCu: 17, maxCu: 17 }), 'invalid');
    expect(error.status).toBe(400);
  },
  /** Nothing was done, and nothing is sent again by itself. */
  async not_ready() {
    await fault({ kind: 'status', status: 422, count: 1 });
    const error = await expectCode(update(), 'not_ready');
    expect(error.outcomeUnknown).toBeUndefined();
  },
  /** The plan forbids another timeout. */
  async precondition() {
    const change = api.updateCompute('free', 'ep-free', { suspendTimeoutSeconds: 600 });
    expect((await expectCode(change, 'precondition')).status).toBe(412);
  },
  /** An operation runs; who waits for it gets through. */
  async locked() {
    unwrap(await api.restartCompute('shop', 'ep-awake'));
    expect((await expectCode(update(), 'locked')).outcomeUnknown).toBeUndefined();
    const patient = update({ deadlineMs: 10_000, repeatLocked: true });
    settle();
    unwrap(await patient);
  },
  /** A Retry-After that is too long is not waited for; one that fits is. */
  async throttled() {
    await fault({ kind: 'status', status: 429, retry_after_seconds: 60, count: 1 });
    expect((await expectCode(update(), 'throttled')).retryAfterMs).toBe(60_000);
    await fault({ kind: 'status', status: 429, retry_after_seconds: 0, count: 3 });
    unwrap(await update({ deadlineMs: 5_000 }));
  },
  /** Reads get over it; a write that may have been made is not made again. */
  async unavailable() {
    await fault({ kind: 'status', status: 502, count: 2 });
    unwrap(await api.listComputes(SHOP));
    await fault({ kind: 'status', status: 502, count: 1 });
    expect((await expectCode(update(), 'unavailable')).outcomeUnknown).toBe(true);
    await fault({ kind: 'status', status: 503, count: 2 });
    unwrap(await update({ deadlineMs: 5_000 }));
    await fault({ kind: 'hang_up', route: UPDATE, count: 1 });
    expect((await expectCode(update(), 'unavailable')).outcomeUnknown).toBe(true);
    await fault({ kind: 'hang_up', route: LIST, count: 2 });
    unwrap(await api.listComputes(SHOP));
  },
  /** The write is not sent again, and reading shows that it was made. */
  async timeout() {
    await fault({ kind: 'latency', ms: 60_000, route: UPDATE, count: 1 });
    const call = api.updateCompute('shop', 'ep-asleep', { minCu: 0.5 }, { deadlineMs: 300 });
    const { outcomeUnknown, requestId } = await expectCode(call, 'timeout');
    expect(outcomeUnknown).toBe(true);
    const { computes } = unwrap(await api.listComputes(SHOP));
    expect(computes.find(({ computeId }) => computeId === 'ep-asleep')?.minCu).toBe(0.5);
    const { body } = await platform.control('GET', '/requests');
    const patches = body.requests.filter((request: { method: string }) => request.method === 'PATCH');
    expect(patches.map((request: { request_id: string }) => request.request_id)).toEqual([requestId]);
  },
  /** What is no JSON is not taken for an answer. */
  async malformed() {
    await fault({ kind: 'wrong_json', count: 1 });
    await expectCode(api.listComputes(SHOP), 'malformed');
  },
};

describe.each(TRUTHS)('every error, where sleeping computes at a new size: $idle_resize', (truth) => {
  beforeEach(() => start(truth));

  test.each(Object.entries(EVERY_ERROR))('%s', (_, happens) => happens());
});
