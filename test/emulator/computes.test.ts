import { afterEach, describe, expect, it } from 'vitest';
import type { Fleet } from '../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../src/emulator/server.ts';
import { compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

const WEB = '/projects/shop/endpoints/ep-web';
const OPERATIONS = '/projects/shop/operations';

let running: TestEmulator[] = [];
afterEach(async () => {
  await Promise.all(running.map(({ emulator }) => emulator.close()));
  running = [];
});

async function start(fleet: Fleet, options: Partial<EmulatorOptions> = {}): Promise<TestEmulator> {
  const test = await startTestEmulator({ fleet, ...options });
  running.push(test);
  return test;
}

function active(changes: object = {}): Fleet {
  return fleetOf(compute({ id: 'ep-web', state: 'active', ...changes }));
}

async function endpoint(test: TestEmulator) {
  return (await test.call('GET', WEB)).body.endpoint;
}

async function operations(test: TestEmulator): Promise<string[]> {
  const { body } = await test.call('GET', OPERATIONS);
  return body.operations.map((one: { action: string; status: string }) => `${one.action} ${one.status}`);
}

async function reported(test: TestEmulator) {
  return (await test.control('GET', '/state')).body.computes[0];
}

describe('an active compute', () => {
  it('suspends at the instant when its timeout is over, whenever somebody looks', async () => {
    const test = await start(active());
    test.pass(299_999);
    expect(await endpoint(test)).toMatchObject({ current_state: 'active' });
    test.pass(3_600_000);
    expect(await endpoint(test)).toMatchObject({
      current_state: 'idle',
      suspended_at: '2026-11-23T09:05:01Z',
      updated_at: '2026-11-23T09:05:01Z',
    });
    expect(await operations(test)).toEqual(['suspend_compute finished']);
  });

  it.each([
    { suspendTimeoutSeconds: 0, seconds: 300, state: 'idle' },
    { suspendTimeoutSeconds: 60, seconds: 60, state: 'idle' },
    { suspendTimeoutSeconds: -1, seconds: 604_800, state: 'active' },
  ])(
    'is $state with a timeout of $suspendTimeoutSeconds after $seconds s',
    async ({ suspendTimeoutSeconds, seconds, state }) => {
      const test = await start(active({ suspendTimeoutSeconds }));
      test.pass(seconds * 1000 - 1);
      expect(await endpoint(test)).toMatchObject({ current_state: 'active' });
      test.pass(2001);
      expect(await endpoint(test)).toMatchObject({
        current_state: state,
        suspend_timeout_seconds: suspendTimeoutSeconds,
      });
    },
  );

  it('stays awake while clients are connected, and for its timeout after they leave', async () => {
    const test = await start(active());
    await test.control('POST', '/computes/ep-web/connect', { connections: 5, for_seconds: 3600 });
    test.pass(1_800_000);
    expect(await endpoint(test)).toMatchObject({ last_active: '2026-11-23T09:30:00Z' });
    expect((await test.call('GET', '/projects')).body.projects[0].compute_last_active_at).toBe('2026-11-23T09:30:00Z');
    test.pass(1_800_000 + 299_000);
    expect(await reported(test)).toMatchObject({ state: 'active', connections: 0, connections_dropped: 0 });
    test.pass(3_000);
    expect(await reported(test)).toMatchObject({ state: 'idle', connections_dropped: 0 });
  });

  it('takes a new size by apply_config, suspend_compute and start_compute, and drops its connections once', async () => {
    const test = await start(active({ connections: 12 }));
    const answer = await test.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 4 } });
    expect(answer.status).toBe(200);
    expect(answer.body.endpoint).toMatchObject({
      autoscaling_limit_max_cu: 4,
      current_state: 'active',
      pending_state: 'active',
    });
    expect(answer.body.operations.map((one: { action: string; status: string }) => [one.action, one.status])).toEqual([
      ['apply_config', 'running'],
      ['suspend_compute', 'scheduling'],
      ['start_compute', 'scheduling'],
    ]);
    test.pass(1_000);
    expect(await operations(test)).toEqual([
      'start_compute scheduling',
      'suspend_compute running',
      'apply_config finished',
    ]);
    expect(await reported(test)).toMatchObject({ state: 'active', connections: 12, connections_dropped: 0 });
    test.pass(1_000);
    expect(await reported(test)).toMatchObject({ state: 'idle', connections: 0, connections_dropped: 12, restarts: 1 });
    test.pass(1_000);
    expect(await operations(test)).toEqual([
      'start_compute finished',
      'suspend_compute finished',
      'apply_config finished',
    ]);
    expect(await endpoint(test)).toMatchObject({ current_state: 'active', started_at: '2026-11-23T09:00:03Z' });
    expect(await endpoint(test)).not.toHaveProperty('pending_state');
  });

  it('takes a new timeout without operations, and holds to it', async () => {
    const test = await start(active({ connections: 3 }));
    const answer = await test.call('PATCH', WEB, { endpoint: { suspend_timeout_seconds: 60 } });
    expect(answer.body).toMatchObject({
      operations: [],
      endpoint: { suspend_timeout_seconds: 60, current_state: 'active' },
    });
    await test.control('POST', '/computes/ep-web/disconnect', {});
    test.pass(62_000);
    expect(await reported(test)).toMatchObject({ state: 'idle', connections_dropped: 0, restarts: 0 });
  });

  it('restarts on request, and its clients come back if they reconnect', async () => {
    const test = await start(active());
    await test.control('POST', '/computes/ep-web/connect', { connections: 4, reconnect: true });
    const answer = await test.call('POST', `${WEB}/restart`);
    expect(answer.body.operations.map((one: { action: string }) => one.action)).toEqual([
      'suspend_compute',
      'start_compute',
    ]);
    test.pass(1_000);
    expect(await reported(test)).toMatchObject({ state: 'idle', connections: 0, waiting: 4, connections_dropped: 4 });
    test.pass(1_000);
    expect(await reported(test)).toMatchObject({ state: 'active', connections: 4, waiting: 0, restarts: 1 });
  });

  it('uses CU-seconds between its sizes while it is active, and none while it sleeps', async () => {
    const test = await start(active({ minCu: 0.25, maxCu: 4 }));
    test.pass(7_200_000);
    // 300 s until its timeout, 50 ms in scheduling, 1 s of suspending.
    expect(await reported(test)).toMatchObject({
      active_seconds: 301.05,
      cu_seconds_low: 301.05 / 4,
      cu_seconds_high: 301.05 * 4,
    });
    const { totals } = (await test.control('GET', '/state')).body;
    expect(totals).toMatchObject({ active_seconds: 301.05, restarts: 0 });
  });

  it('is suspended when it is disabled, and no connection wakes it', async () => {
    const test = await start(active({ connections: 2 }));
    const answer = await test.call('PATCH', WEB, { endpoint: { disabled: true } });
    expect(answer.body.operations).toMatchObject([{ action: 'suspend_compute' }]);
    test.pass(1_000);
    expect(await reported(test)).toMatchObject({ state: 'idle', connections_dropped: 2 });
    expect((await test.control('POST', '/computes/ep-web/connect')).status).toBe(412);
    expect((await test.call('POST', `${WEB}/start`)).status).toBe(412);
  });
});

describe('an idle compute', () => {
  it('takes a new size without operations and stays idle', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web' })));
    const answer = await test.call('PATCH', WEB, {
      endpoint: { autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 4 },
    });
    expect(answer).toMatchObject({ status: 200, body: { operations: [], endpoint: { current_state: 'idle' } } });
    expect(answer.body.endpoint).not.toHaveProperty('pending_state');
    expect(await endpoint(test)).toMatchObject({ autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 4 });
  });

  it('is woken by a connection, which waits until the compute has started', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web' })));
    const arrival = await test.control('POST', '/computes/ep-web/connect', { connections: 2, for_seconds: 10 });
    expect(arrival.body).toMatchObject({ state: 'idle', connections: 0, waiting: 2 });
    expect(await operations(test)).toEqual(['start_compute scheduling']);
    test.pass(1_049);
    expect(await operations(test)).toEqual(['start_compute running']);
    expect(await endpoint(test)).toMatchObject({ current_state: 'idle', pending_state: 'active' });
    test.pass(1);
    expect(await reported(test)).toMatchObject({ state: 'active', connections: 2, waiting: 0 });
    test.pass(10_000);
    expect(await reported(test)).toMatchObject({ state: 'active', connections: 0 });
  });

  it('refuses a restart', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web' })));
    expect((await test.call('POST', `${WEB}/restart`)).status).toBe(409);
  });

  it('starts and is suspended on request', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web' })));
    const started = await test.call('POST', `${WEB}/start`, undefined, {
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(started.body.operations).toMatchObject([
      { action: 'start_compute', status: 'running', endpoint_id: 'ep-web' },
    ]);
    test.pass(1_000);
    expect((await test.call('POST', `${WEB}/start`)).body).toMatchObject({
      operations: [],
      endpoint: { current_state: 'active' },
    });
    expect((await test.call('POST', `${WEB}/suspend`)).body.operations).toMatchObject([{ action: 'suspend_compute' }]);
  });
});

describe('a project in which an operation runs', () => {
  it('refuses changes with 423 until the last operation has ended', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web', state: 'active' }), compute({ id: 'ep-other' })));
    await test.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 4 } });
    for (const [method, path, body] of [
      ['PATCH', '/projects/shop/endpoints/ep-other', { endpoint: { suspend_timeout_seconds: 60 } }],
      ['POST', `${WEB}/restart`, undefined],
    ] as const) {
      const answer = await test.call(method, path, body);
      expect(answer.status).toBe(423);
      expect(answer.body).toEqual({
        request_id: expect.any(String),
        code: '',
        message: 'project already has running conflicting operations, scheduling of new ones is prohibited',
      });
    }
    test.pass(3_000);
    expect((await test.call('POST', `${WEB}/restart`)).status).toBe(200);
  });

  it('takes settings back when apply_config fails, and cancels what waited for it', async () => {
    const test = await start(active({ connections: 3 }));
    await test.control('POST', '/faults', { kind: 'operation', action: 'apply_config', outcome: 'fail', count: 1 });
    const change = { endpoint: { autoscaling_limit_max_cu: 4, suspend_timeout_seconds: 60 } };
    expect((await test.call('PATCH', WEB, change)).body.endpoint.autoscaling_limit_max_cu).toBe(4);
    test.pass(1_000);
    expect(await operations(test)).toEqual([
      'start_compute cancelled',
      'suspend_compute cancelled',
      'apply_config failed',
    ]);
    const { body } = await test.call('GET', OPERATIONS);
    expect(body.operations[2]).toMatchObject({ failures_count: 1, error: expect.any(String), total_duration_ms: 1000 });
    expect(await endpoint(test)).toMatchObject({ autoscaling_limit_max_cu: 2, suspend_timeout_seconds: 300 });
    expect(await reported(test)).toMatchObject({ connections: 3, connections_dropped: 0 });
    expect((await test.call('PATCH', WEB, change)).status).toBe(200);
    test.pass(3_000);
    expect(await endpoint(test)).toMatchObject({ autoscaling_limit_max_cu: 4, suspend_timeout_seconds: 60 });
  });

  it.each([
    { outcome: 'error', seen: 'error', maxCu: 2, dropped: 0 },
    { outcome: 'cancel', seen: 'cancelled', maxCu: 2, dropped: 0 },
    { outcome: 'skip', seen: 'skipped', maxCu: 4, dropped: 3 },
  ])('shows how an operation ends that a fault lets $outcome', async ({ outcome, seen, maxCu, dropped }) => {
    const test = await start(active({ connections: 3 }));
    await test.control('POST', '/faults', { kind: 'operation', action: 'apply_config', outcome, count: 1 });
    await test.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 4 } });
    test.pass(1_000);
    if (outcome === 'cancel') expect(await operations(test)).toContain('apply_config cancelling');
    test.pass(3_000);
    expect(await operations(test)).toContain(`apply_config ${seen}`);
    expect(await reported(test)).toMatchObject({ state: 'active', max_cu: maxCu, connections_dropped: dropped });
  });

  it('stays locked by an operation that never ends until the fault is taken away', async () => {
    const test = await start(active());
    await test.control('POST', '/faults', { kind: 'operation', action: 'suspend_compute', outcome: 'hang' });
    await test.call('POST', `${WEB}/restart`);
    test.pass(86_400_000);
    expect(await operations(test)).toEqual(['start_compute scheduling', 'suspend_compute running']);
    expect((await test.call('POST', `${WEB}/restart`)).status).toBe(423);
    await test.control('DELETE', '/faults');
    test.pass(1_000);
    expect(await operations(test)).toEqual(['start_compute finished', 'suspend_compute finished']);
  });

  it('sends clients away that waited for a start that failed', async () => {
    const test = await start(fleetOf(compute({ id: 'ep-web' })));
    await test.control('POST', '/faults', { kind: 'operation', outcome: 'fail' });
    await test.control('POST', '/computes/ep-web/connect', {});
    test.pass(60_000);
    expect(await operations(test)).toEqual(['start_compute failed']);
    expect(await reported(test)).toMatchObject({ state: 'idle', waiting: 0 });
  });
});

describe('a change that the platform does not accept', () => {
  it.each([
    { case: 'a size that does not exist', endpoint: { autoscaling_limit_min_cu: 0.3 } },
    { case: 'a minimum above the maximum', endpoint: { autoscaling_limit_min_cu: 4 } },
    { case: 'a range above 16 CU', endpoint: { autoscaling_limit_min_cu: 12, autoscaling_limit_max_cu: 18 } },
    { case: 'a range that spans more than 8 CU', endpoint: { autoscaling_limit_max_cu: 10 } },
    { case: 'a timeout that is too short', endpoint: { suspend_timeout_seconds: 59 } },
    { case: 'a timeout that is too long', endpoint: { suspend_timeout_seconds: 604_801 } },
    { case: 'a size that is not a number', endpoint: { autoscaling_limit_min_cu: '1' } },
    { case: 'no endpoint', endpoint: undefined },
  ])('is refused with 400 and changes nothing: $case', async ({ endpoint: changes }) => {
    const test = await start(active({ connections: 1 }));
    const before = await endpoint(test);
    const answer = await test.call('PATCH', WEB, { endpoint: changes });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toEqual(expect.any(String));
    expect(await endpoint(test)).toEqual(before);
    expect(await operations(test)).toEqual([]);
  });
});
