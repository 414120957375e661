import { afterEach, describe, expect, it } from 'vitest';
import { createRateLimits } from '../../src/emulator/rate-limits.ts';
import { compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

const WEB = '/projects/shop/endpoints/ep-web';
const FLEET = fleetOf(compute({ id: 'ep-web' }));
let test: TestEmulator | undefined;
afterEach(() => test?.emulator.close());

async function start(): Promise<TestEmulator> {
  test = await startTestEmulator({ fleet: FLEET });
  return test;
}

/** The raw answer, for what isn't JSON. */
function raw({ emulator }: TestEmulator, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${emulator.url}${path}`, { ...init, headers: { authorization: `Bearer ${emulator.apiKey}` } });
}

describe('a fault', () => {
  it('answers with a status on its route only, as often as it is set to, and nothing takes effect', async () => {
    const emulator = await start();
    await emulator.control('POST', '/faults', {
      kind: 'status',
      status: 429,
      retry_after_seconds: 7,
      route: 'PATCH /projects/{project_id}/endpoints/{endpoint_id}',
      count: 2,
    });
    const change = { endpoint: { autoscaling_limit_max_cu: 4 } };
    expect((await emulator.call('GET', WEB)).status).toBe(200);
    const hit = await emulator.call('PATCH', WEB, change);
    expect([hit.status, hit.headers.get('retry-after')]).toEqual([429, '7']);
    expect((await emulator.call('PATCH', WEB, change)).status).toBe(429);
    expect((await emulator.call('GET', WEB)).body.endpoint.autoscaling_limit_max_cu).toBe(2);
    expect((await emulator.call('PATCH', WEB, change)).status).toBe(200);
    const { body } = await emulator.control('GET', '/requests');
    expect(body.requests.map(({ status }: { status: number }) => status)).toEqual([200, 429, 429, 200, 200]);
  });

  it('hits a share of the requests, the same ones for the same seed', async () => {
    const sequence = async (seed: number): Promise<number[]> => {
      const emulator = await start();
      await emulator.control('POST', '/faults', { kind: 'status', status: 503, share: 0.4, seed });
      const statuses: number[] = [];
      for (let index = 0; index < 30; index += 1) statuses.push((await emulator.call('GET', WEB)).status);
      await emulator.emulator.close();
      return statuses;
    };
    const first = await sequence(5);
    expect(new Set(first)).toEqual(new Set([200, 503]));
    expect(await sequence(5)).toEqual(first);
    expect(await sequence(6)).not.toEqual(first);
  });

  it('hangs up in the middle of a body whose request took effect', async () => {
    const emulator = await start();
    await emulator.control('POST', '/faults', { kind: 'hang_up', method: 'PATCH', count: 1 });
    const body = JSON.stringify({ endpoint: { autoscaling_limit_max_cu: 4 } });
    await expect(raw(emulator, WEB, { method: 'PATCH', body }).then((response) => response.text())).rejects.toThrow();
    expect((await emulator.call('GET', WEB)).body.endpoint.autoscaling_limit_max_cu).toBe(4);
  });

  it('sends a body that says it is JSON and is not', async () => {
    const emulator = await start();
    await emulator.control('POST', '/faults', { kind: 'wrong_json', count: 1 });
    const response = await raw(emulator, WEB);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    await expect(response.json()).rejects.toThrow(SyntaxError);
  });

  it('delays an answer, after the request took effect', async () => {
    const emulator = await start();
    await emulator.control('POST', '/faults', { kind: 'latency', ms: 60_000, method: 'PATCH' });
    const given = AbortSignal.timeout(200);
    const body = JSON.stringify({ endpoint: { autoscaling_limit_max_cu: 4 } });
    await expect(raw(emulator, WEB, { method: 'PATCH', body, signal: given })).rejects.toThrow();
    expect((await emulator.call('GET', WEB)).body.endpoint.autoscaling_limit_max_cu).toBe(4);
  });

  it('is listed with its hits, and can be taken away', async () => {
    const emulator = await start();
    const added = await emulator.control('POST', '/faults', { kind: 'status', status: 500 });
    await emulator.control('POST', '/faults', { kind: 'operation', outcome: 'fail', share: 0.5 });
    expect((await emulator.call('GET', WEB)).status).toBe(500);
    expect((await emulator.control('GET', '/faults')).body.faults).toMatchObject([
      { kind: 'status', status: 500, hits: 1 },
      { kind: 'operation', outcome: 'fail', share: 0.5 },
    ]);
    await emulator.control('DELETE', `/faults/${added.body.id}`);
    expect((await emulator.call('GET', WEB)).status).toBe(200);
    expect((await emulator.control('DELETE', '/faults')).body).toEqual({ faults: [] });
    expect((await emulator.control('POST', '/faults', { kind: 'gremlins' })).status).toBe(400);
  });
});

describe('the limits', () => {
  it('let exactly so many requests through in any second on one route, and say when to come back', () => {
    const limits = createRateLimits({ perSecond: 40 });
    const admitted = (account: string, route: string, realMs: number) => limits.admit(account, route, realMs).ok;
    for (let index = 0; index < 40; index += 1) expect(admitted('a', 'GET /x', 500 + index)).toBe(true);
    expect(limits.admit('a', 'GET /x', 999)).toMatchObject({ ok: false, retryAfterSeconds: 1 });
    expect(admitted('a', 'GET /y', 999)).toBe(true);
    expect(admitted('b', 'GET /x', 999)).toBe(true);
    expect(admitted('a', 'GET /x', 1499)).toBe(false);
    expect(admitted('a', 'GET /x', 1500)).toBe(true);
    expect(admitted('a', 'GET /x', 1500)).toBe(false);
  });

  it('are one bucket over all routes where they are stricter than documented', () => {
    const limits = createRateLimits({ kind: 'bucket', perMinute: 600, perSecond: 5 });
    const admitted = (route: string, realMs: number) => limits.admit('a', route, realMs).ok;
    for (const route of ['GET /x', 'GET /y', 'GET /x', 'PATCH /x', 'GET /x']) expect(admitted(route, 1000)).toBe(true);
    expect(limits.admit('a', 'GET /z', 1000)).toMatchObject({ ok: false, retryAfterSeconds: 1 });
    expect([admitted('GET /x', 1099), admitted('GET /x', 1100), admitted('GET /y', 1100)]).toEqual([
      false,
      true,
      false,
    ]);
    expect(limits.admit('b', 'GET /x', 1100).ok).toBe(true);
  });

  it('answer 429 over HTTP with Retry-After, to every key of the account', async () => {
    test = await startTestEmulator({ fleet: FLEET, rateLimitPerMinute: 3 });
    const other = (await test.control('POST', '/keys', { kind: 'personal' })).body.key;
    for (let index = 0; index < 3; index += 1) expect((await test.call('GET', WEB)).status).toBe(200);
    const refused = await test.call('GET', '/projects', undefined, { authorization: `Bearer ${other}` });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('reads that are not as things are', () => {
  it('show a compute as it was before a PATCH for a while', async () => {
    const emulator = await start();
    await emulator.control('POST', '/faults', { kind: 'stale_reads', ms: 5_000 });
    const patched = await emulator.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 4 } });
    const shown = async () => {
      const { endpoint } = (await emulator.call('GET', WEB)).body;
      const { endpoints } = (await emulator.call('GET', '/projects/shop/endpoints')).body;
      expect(endpoints).toEqual([endpoint]);
      return [endpoint.autoscaling_limit_max_cu, endpoint.updated_at];
    };
    const { updated_at: updatedAt } = patched.body.endpoint;
    const before = await shown();
    expect(before[0]).toBe(2);
    expect(before[1]).not.toBe(updatedAt);
    const refused = await emulator.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 1000 } });
    expect([refused.status, await shown()]).toEqual([400, before]);
    emulator.pass(5_000);
    expect(await shown()).toEqual([4, updatedAt]);
  });

  it('show the first entry of a list twice, a compute as it was before', async () => {
    const emulator = await start();
    await emulator.call('PATCH', WEB, { endpoint: { autoscaling_limit_max_cu: 4 } });
    await emulator.control('POST', '/faults', { kind: 'duplicates', route: 'GET /projects/{project_id}/endpoints' });
    const { endpoints } = (await emulator.call('GET', '/projects/shop/endpoints')).body;
    expect(
      endpoints.map((endpoint: Record<string, unknown>) => [endpoint.id, endpoint.autoscaling_limit_max_cu]),
    ).toEqual([
      ['ep-web', 4],
      ['ep-web', 2],
    ]);
    expect((await emulator.call('GET', '/projects')).body.projects).toHaveLength(1);
  });
});
