import { afterEach, expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/server.ts';
import { compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

const FLEET = fleetOf(
  compute({ id: 'ep-web', branchId: 'br-main', branch: { name: 'main', default: true, protected: true } }),
  compute({ id: 'ep-web-ro', branchId: 'br-main', type: 'read_only' }),
  compute({ id: 'ep-pr', branchId: 'br-pr', branch: { name: 'preview/1', default: false, protected: false } }),
);

let test: TestEmulator | undefined;
afterEach(async () => {
  await test?.emulator.close();
  test = undefined;
});

it('answers 401 in the shape of the vendor without the right key, whatever the route', async () => {
  test = await startTestEmulator({ fleet: FLEET, apiKey: 'right' });
  for (const authorization of ['', 'Bearer wrong', 'Basic right']) {
    const answer = await test.call('GET', '/projects/shop', undefined, { authorization });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({
      request_id: expect.any(String),
      code: '',
      message: 'supplied credentials do not pass authentication',
    });
  }
});

it('answers 404 for what does not exist, and 400 for a body that is not JSON', async () => {
  test = await startTestEmulator({ fleet: FLEET });
  for (const path of [
    '/projects/nothing',
    '/projects/nothing/endpoints',
    '/projects/shop/endpoints/ep-nothing',
    '/projects/shop/operations/00000000-0000-4000-8000-000000000000',
    '/nothing',
  ]) {
    expect((await test.call('GET', path)).status, path).toBe(404);
  }
  expect((await test.call('PATCH', '/projects/shop/endpoints/ep-web', '{')).status).toBe(400);
});

it('lists branches with their names, the default one and the protected one', async () => {
  test = await startTestEmulator({ fleet: FLEET });
  const { body } = await test.call('GET', '/projects/shop/branches');
  expect(body.branches).toMatchObject([
    { id: 'br-main', name: 'main', default: true, protected: true },
    { id: 'br-pr', name: 'preview/1', default: false, protected: false },
  ]);
});

it('records every request of the API with its time, route, body and status, and never the key', async () => {
  test = await startTestEmulator({ fleet: FLEET, apiKey: 'top-secret' });
  await test.call('GET', '/projects?limit=5', undefined, { 'x-request-id': 'mine' });
  test.pass(90_000);
  await test.call('PATCH', '/projects/shop/endpoints/ep-web', { endpoint: { suspend_timeout_seconds: 1 } });
  const { body } = await test.control('GET', '/requests');
  expect(body).toEqual({
    forgotten: 0,
    requests: [
      {
        at: '2026-11-23T09:00:00.000Z',
        method: 'GET',
        path: '/api/v2/projects?limit=5',
        route: '/projects',
        status: 200,
        request_id: 'mine',
      },
      {
        at: '2026-11-23T09:01:30.000Z',
        method: 'PATCH',
        path: '/api/v2/projects/shop/endpoints/ep-web',
        route: '/projects/{project_id}/endpoints/{endpoint_id}',
        status: 400,
        body: { endpoint: { suspend_timeout_seconds: 1 } },
        request_id: expect.any(String),
      },
    ],
  });
  expect(JSON.stringify(body)).not.toContain('top-secret');
});

it('tells hour by hour how much of its past it has lived through', async () => {
  const told: number[][] = [];
  const hours = (ms: number) => ms / 3_600_000;
  const emulator = await startEmulator({
    ...{ listen: { host: '127.0.0.1', port: 0 }, fleet: { ...FLEET, historyMs: 3 * 3_600_000 } },
    onHistory: ({ doneMs, allMs }) => told.push([hours(doneMs), hours(allMs)]),
  });
  await emulator.close();
  expect(told).toEqual([
    [1, 3],
    [2, 3],
  ]);
});

it('has a clock that can be set forwards and sped up, but not back', async () => {
  const emulator = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet: FLEET });
  const setClock = async (change: object) => {
    const response = await fetch(`${emulator.origin}/_emulator/clock`, {
      method: 'POST',
      body: JSON.stringify(change),
    });
    return { status: response.status, body: (await response.json()) as { now: string; speed: number } };
  };
  try {
    expect(await setClock({ now: '2031-01-01T00:00:00Z', speed: 0 })).toEqual({
      status: 200,
      body: { now: '2031-01-01T00:00:00.000Z', speed: 0 },
    });
    expect(await setClock({})).toMatchObject({ body: { now: '2031-01-01T00:00:00.000Z' } });
    expect((await setClock({ now: '2030-01-01T00:00:00Z' })).status).toBe(400);
    expect((await setClock({ speed: 1_000_000 })).body.speed).toBe(1_000_000);
    await expect.poll(async () => (await setClock({})).body.now).not.toBe('2031-01-01T00:00:00.000Z');
  } finally {
    await emulator.close();
  }
});

it('leaves the clock alone that its starter shares with it', async () => {
  test = await startTestEmulator({ fleet: FLEET });
  expect((await test.control('POST', '/clock', { speed: 2 })).status).toBe(409);
});
