import { afterEach, beforeEach, expect, it } from 'vitest';
import { problemsWith } from './openapi.ts';
import { type Call, compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

const COMPUTES = '/projects/shop/endpoints';
let test: TestEmulator;

beforeEach(async () => {
  test = await startTestEmulator({
    fleet: fleetOf(
      compute({ id: 'ep-web', branchId: 'br-main', state: 'active', connections: 3 }),
      compute({ id: 'ep-ro', branchId: 'br-main', type: 'read_only' }),
      compute({ id: 'ep-pr', branchId: 'br-pr', type: 'read_only', state: 'active', suspendTimeoutSeconds: -1 }),
    ),
  });
});
afterEach(() => test.emulator.close());

function actions(answer: Call): string[] {
  return answer.body.operations.map((one: { action: string; status: string }) => `${one.action} ${one.status}`);
}

it('validates answers for real: a body with a wrong or a missing field does not pass', async () => {
  const { body } = await test.call('GET', `${COMPUTES}/ep-web`);
  const { host: _, ...withoutHost } = body.endpoint;
  expect(problemsWith('GET', `${COMPUTES}/ep-web`, 200, { endpoint: withoutHost })).not.toEqual([]);
  const wrongState = { endpoint: { ...body.endpoint, current_state: 'asleep' } };
  expect(problemsWith('GET', `${COMPUTES}/ep-web`, 200, wrongState)).not.toEqual([]);
  expect(problemsWith('GET', `${COMPUTES}/ep-web`, 404, { message: 'no code' })).not.toEqual([]);
});

it('creates a compute that is init until it has started', async () => {
  const answer = await test.call('POST', COMPUTES, { endpoint: { branch_id: 'br-pr', type: 'read_write' } });
  expect(answer.status).toBe(201);
  expect(answer.body.endpoint).toMatchObject({
    current_state: 'init',
    pending_state: 'active',
    suspend_timeout_seconds: 0,
  });
  expect(answer.body.endpoint.id).toMatch(/^ep-/);
  expect(actions(answer)).toEqual(['start_compute running']);
  expect((await test.call('GET', `${COMPUTES}/${answer.body.endpoint.id}`)).body.endpoint.last_active).toBe(
    '2000-01-01T00:00:00Z',
  );
  test.pass(1000);
  const { endpoint } = (await test.call('GET', `${COMPUTES}/${answer.body.endpoint.id}`)).body;
  expect(endpoint).toMatchObject({ current_state: 'active', last_active: '2026-11-23T09:00:01Z' });
});

it('holds a branch to one read-write compute, and to as many replicas as one likes', async () => {
  const primary = { endpoint: { branch_id: 'br-main', type: 'read_write' } };
  expect((await test.call('POST', COMPUTES, primary)).status).toBe(409);
  for (let replica = 0; replica < 3; replica += 1) {
    expect((await test.call('POST', COMPUTES, { endpoint: { branch_id: 'br-main', type: 'read_only' } })).status).toBe(
      201,
    );
    test.pass(1000);
  }
});

it('moves a compute to another branch by apply_config and suspend_compute', async () => {
  const answer = await test.call('PATCH', `${COMPUTES}/ep-web`, { endpoint: { branch_id: 'br-pr' } });
  expect(answer.body.endpoint).toMatchObject({ branch_id: 'br-pr', pending_state: 'idle' });
  expect(actions(answer)).toEqual(['apply_config running', 'suspend_compute scheduling']);
  test.pass(2000);
  expect((await test.call('GET', `${COMPUTES}/ep-web`)).body.endpoint).toMatchObject({ current_state: 'idle' });
  await test.call('POST', COMPUTES, { endpoint: { branch_id: 'br-main', type: 'read_write' } });
  test.pass(1000);
  expect((await test.call('PATCH', `${COMPUTES}/ep-web`, { endpoint: { branch_id: 'br-main' } })).status).toBe(409);
  expect((await test.call('PATCH', `${COMPUTES}/ep-web`, { endpoint: { branch_id: 'br-none' } })).status).toBe(404);
});

it('deletes a compute at once and drops its connections; a second time answers 204', async () => {
  const gone = await test.call('DELETE', `${COMPUTES}/ep-web`);
  expect(gone).toMatchObject({ status: 200, body: { endpoint: { id: 'ep-web' }, operations: [] } });
  expect((await test.call('DELETE', `${COMPUTES}/ep-web`)).status).toBe(204);
  expect((await test.call('GET', `${COMPUTES}/ep-web`)).status).toBe(404);
  expect((await test.call('POST', COMPUTES, { endpoint: { branch_id: 'br-main', type: 'read_write' } })).status).toBe(
    201,
  );
});

it('keeps what a deleted compute had used in the sums of its project', async () => {
  test.pass(60_000);
  const used = async () => (await test.call('GET', '/projects/shop')).body.project.compute_time_seconds;
  const before = await used();
  expect(before).toBeGreaterThan(0);
  await test.call('DELETE', `${COMPUTES}/ep-web`);
  expect(await used()).toBe(before);
});

it('answers 422 for a compute whose first start failed, until it has been started', async () => {
  await test.control('POST', '/faults', { kind: 'operation', action: 'start_compute', outcome: 'fail', count: 1 });
  const { id } = (await test.call('POST', COMPUTES, { endpoint: { branch_id: 'br-pr', type: 'read_only' } })).body
    .endpoint;
  test.pass(1000);
  expect((await test.call('GET', `${COMPUTES}/${id}`)).body.endpoint.current_state).toBe('init');
  expect((await test.call('POST', `${COMPUTES}/${id}/restart`)).status).toBe(422);
  expect((await test.call('POST', `${COMPUTES}/${id}/start`)).status).toBe(200);
  test.pass(1000);
  expect((await test.call('POST', `${COMPUTES}/${id}/restart`)).status).toBe(200);
});

it('never suspends a compute of more than 16 CU', async () => {
  const size = { autoscaling_limit_min_cu: 18, autoscaling_limit_max_cu: 18, suspend_timeout_seconds: 60 };
  await test.call('PATCH', `${COMPUTES}/ep-ro`, { endpoint: size });
  await test.call('POST', `${COMPUTES}/ep-ro/start`);
  test.pass(86_400_000);
  expect((await test.call('GET', `${COMPUTES}/ep-ro`)).body.endpoint.current_state).toBe('active');
});

it('creates a branch, then starts its computes', async () => {
  const body = {
    branch: { name: 'dev' },
    endpoints: [{ type: 'read_write', autoscaling_limit_max_cu: 2 }, { type: 'read_only' }],
  };
  const answer = await test.call('POST', '/projects/shop/branches', body);
  expect(answer.body).toMatchObject({
    branch: { name: 'dev', parent_id: 'br-main', default: false },
    endpoints: [{ type: 'read_write', autoscaling_limit_max_cu: 2 }, { type: 'read_only' }],
  });
  expect(actions(answer)).toEqual(['create_branch running', 'start_compute scheduling', 'start_compute running']);
  test.pass(2000);
  const branchId = answer.body.branch.id;
  const { endpoints } = (await test.call('GET', `/projects/shop/branches/${branchId}/endpoints`)).body;
  expect(endpoints).toMatchObject([{ current_state: 'active' }, { current_state: 'active' }]);
  expect((await test.call('GET', `/projects/shop/branches/${branchId}`)).body.branch.name).toBe('dev');
  expect((await test.call('POST', '/projects/shop/branches', { branch: { name: 'dev' } })).status).toBe(409);
  const rename = (id: string, name: string) =>
    test.call('PATCH', `/projects/shop/branches/${id}`, { branch: { name } });
  expect((await rename(branchId, 'preview')).body).toMatchObject({
    branch: { id: branchId, name: 'preview' },
    operations: [],
  });
  expect((await test.call('GET', `/projects/shop/branches/${branchId}`)).body.branch.name).toBe('preview');
  expect([
    (await rename(branchId, 'main')).status,
    (await rename('br-none', 'x')).status,
    (await rename(branchId, '')).status,
  ]).toEqual([409, 404, 400]);
  await rename(branchId, 'dev');
  expect(actions(await test.call('POST', '/projects/shop/branches'))).toEqual(['create_branch running']);
});

it('creates a project with a branch and a compute, and deletes it', async () => {
  const body = { project: { name: 'new', pg_version: 18, default_endpoint_settings: { autoscaling_limit_max_cu: 1 } } };
  const answer = await test.call('POST', '/projects', body);
  expect(answer.status).toBe(201);
  expect(answer.body).toMatchObject({
    project: { name: 'new', pg_version: 18 },
    branch: { name: 'main', default: true },
    endpoints: [{ autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 1, current_state: 'init' }],
  });
  expect(actions(answer)).toEqual(['create_timeline running', 'start_compute scheduling']);
  const path = `/projects/${answer.body.project.id}`;
  expect((await test.call('DELETE', path)).status).toBe(423);
  test.pass(2000);
  expect((await test.call('GET', '/projects')).body.projects).toHaveLength(2);
  expect((await test.call('DELETE', path)).status).toBe(200);
  expect((await test.call('GET', path)).status).toBe(404);
  expect((await test.call('GET', '/projects')).body.projects).toHaveLength(1);
});

it('refuses what the plan of a project does not have', async () => {
  const plan = async (name: 'free' | 'launch', endpoint: object): Promise<Call> => {
    const fleet = fleetOf(compute({ id: 'ep-web' }));
    const other = await startTestEmulator({
      fleet: { projects: fleet.projects.map((one) => ({ ...one, plan: name })) },
    });
    try {
      return await other.call('PATCH', `${COMPUTES}/ep-web`, { endpoint });
    } finally {
      await other.emulator.close();
    }
  };
  const gated = await plan('free', { suspend_timeout_seconds: 300 });
  expect(gated).toMatchObject({
    status: 412,
    body: { message: 'modifying the suspend interval is not permitted on this account' },
  });
  expect((await plan('free', { autoscaling_limit_max_cu: 4 })).status).toBe(403);
  expect((await plan('launch', { suspend_timeout_seconds: 60 })).status).toBe(412);
  expect((await plan('launch', { suspend_timeout_seconds: -1 })).status).toBe(200);
});

it('checks the availability of each compute now and then, which changes nothing', async () => {
  const fleet = fleetOf(compute({ id: 'ep-web', lastActiveAtMs: 0 }));
  const other = await startTestEmulator({ fleet, availabilityCheckMs: 3_600_000 });
  try {
    other.pass(5 * 3_600_000);
    const { operations } = (await other.call('GET', '/projects/shop/operations')).body;
    const names = operations.map((one: { action: string; status: string }) => `${one.action} ${one.status}`);
    expect(new Set(names)).toEqual(new Set(['check_availability finished']));
    expect(names.length).toBeGreaterThanOrEqual(3);
    expect((await other.call('GET', `${COMPUTES}/ep-web`)).body.endpoint).toMatchObject({
      current_state: 'idle',
      last_active: '1970-01-01T00:00:00Z',
    });
  } finally {
    await other.emulator.close();
  }
});
