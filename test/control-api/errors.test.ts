import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { memoryLog } from '../support/memory-log.ts';
import { clientOptions, KEY, recordingMetrics, wireCompute } from './samples.ts';
import { client, errorOf, serve, unwrap } from './support.ts';

const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };
const QUICK = { deadlineMs: 400 };
const CHANGED = { body: { endpoint: wireCompute('ep-1'), operations: [] } };

describe('each status has its code', () => {
  test.each([
    [400, 'invalid', false],
    [401, 'unauthorised', false],
    [402, 'forbidden', false],
    [403, 'forbidden', false],
    [404, 'not_found', false],
    [408, 'timeout', true],
    [409, 'conflict', false],
    [412, 'precondition', false],
    [418, 'invalid', false],
    [422, 'not_ready', false],
    [423, 'locked', false],
    [429, 'throttled', false],
    [500, 'unavailable', true],
    [502, 'unavailable', true],
    [503, 'unavailable', false],
    [524, 'unavailable', true],
    [302, 'malformed', true],
  ])('%i is %s', async (status, code, outcomeUnknown) => {
    const { url } = await serve(() => ({
      status,
      headers: { 'retry-after': '60', location: 'http://127.0.0.1:9/elsewhere' },
      body: { request_id: 'r-1', code: '', message: 'because' },
    }));
    const error = errorOf(await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, QUICK));
    expect(error).toMatchObject({ code, status, message: 'because', requestId: 'r-1', account: 'main' });
    expect(error.route).toBe('PATCH /projects/{project_id}/endpoints/{endpoint_id}');
    expect(error.outcomeUnknown ?? false).toBe(outcomeUnknown);
    expect(error.retryAfterMs).toBe(60_000);
  });

  test('nobody listening is unavailable, and nothing was sent', async () => {
    const { url } = await serve(() => ({}));
    const nobody = client(url.replace(/:\d+/, ':1'));
    const error = errorOf(await nobody.updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, QUICK));
    expect(error).toMatchObject({ code: 'unavailable' });
    expect(error).not.toHaveProperty('status');
    expect(error).not.toHaveProperty('outcomeUnknown');
  });

  test('a deadline holds also while there is no connection yet, and nothing is sent after it', async () => {
    const held: ServerResponse[] = [];
    const { url, requests } = await serve((_, response) => {
      held.push(response);
      return undefined;
    });
    const api = client(url);
    const busy = Array.from({ length: 128 }, () => api.listComputes(PROJECT, { deadlineMs: 5_000 }));
    await expect.poll(() => held.length).toBe(128);
    const error = errorOf(await api.updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, { deadlineMs: 50 }));
    expect(error.code).toBe('timeout');
    for (const response of held) response.end(JSON.stringify({ endpoints: [] }));
    expect((await Promise.all(busy)).every((result) => result.ok)).toBe(true);
    expect(requests.filter((request) => request.method === 'PATCH')).toEqual([]);
  });

  test('a body beyond the limit is malformed', async () => {
    const { url } = await serve(() => ({ body: { endpoints: [], padding: 'x'.repeat(5_000) } }));
    expect(errorOf(await client(url, { maxBodyBytes: 1_000 }).listComputes(PROJECT, QUICK)).code).toBe('malformed');
  });
});

describe('what is sent again', () => {
  /** Answers with `status` as often as told, then as if nothing had been. */
  async function failing(times: number, status: number, headers: Record<string, string> = {}) {
    let left = times;
    return serve(({ method }) => {
      left -= 1;
      if (left >= 0) return { status, headers, body: { message: 'not now' } };
      return method === 'GET' ? { body: { endpoints: [] } } : CHANGED;
    });
  }

  test.each([429, 500, 502, 503, 504, 524])('a GET comes again after %i', async (status) => {
    const { url, requests } = await failing(2, status);
    expect((await client(url).listComputes(PROJECT)).ok).toBe(true);
    expect(requests).toHaveLength(3);
  });

  test.each([429, 503])('a PATCH is sent again after %i, which had no effect', async (status) => {
    const { url, requests } = await failing(2, status);
    expect((await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 })).ok).toBe(true);
    expect(requests).toHaveLength(3);
  });

  test.each([400, 401, 403, 404, 409, 412, 422, 423, 500, 502, 504, 524])(
    'a PATCH does not come again after %i',
    async (status) => {
      const { url, requests } = await failing(1, status);
      expect((await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 })).ok).toBe(false);
      expect(requests).toHaveLength(1);
    },
  );

  test('a PATCH waits out a 423 if the caller asks for it', async () => {
    const { url, requests } = await failing(2, 423);
    const result = await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, { repeatLocked: true });
    expect(result.ok).toBe(true);
    expect(requests).toHaveLength(3);
  });

  test('a PATCH without an answer is a timeout with an unknown outcome, and is not sent again', async () => {
    const { url, requests } = await serve(() => undefined);
    const timeouts = { headersMs: 50 };
    const error = errorOf(
      await client(url, { timeouts }).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, { deadlineMs: 10_000 }),
    );
    expect(error).toMatchObject({ code: 'timeout', outcomeUnknown: true });
    expect(requests).toHaveLength(1);
  });

  test('a GET whose body breaks off comes again; a PATCH does not', async () => {
    let broken = 0;
    const { url } = await serve(({ method }, response) => {
      if (method === 'GET' && broken > 0) return { body: { endpoints: [] } };
      broken += 1;
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"endp', () => response.destroy());
      return undefined;
    });
    expect((await client(url).listComputes(PROJECT)).ok).toBe(true);
    const error = errorOf(await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }));
    expect(error).toMatchObject({ code: 'unavailable', outcomeUnknown: true });
    expect(broken).toBe(2);
  });

  test('a Retry-After beyond the deadline is not waited for, and one within it is not shortened', async () => {
    const { url, requests } = await failing(1, 429, { 'retry-after': '30' });
    expect(errorOf(await client(url).listComputes(PROJECT, { deadlineMs: 5_000 })).code).toBe('throttled');
    expect(requests).toHaveLength(1);

    const second = await failing(1, 429, { 'retry-after': '0.2' });
    const metrics = recordingMetrics();
    expect((await client(second.url, { metrics }).listComputes(PROJECT, { deadlineMs: 5_000 })).ok).toBe(true);
    expect(metrics.values.get('ebb_api_throttled_seconds_total{}')).toBeGreaterThanOrEqual(0.2);
  });

  test('a Retry-After of a day is logged once, with how long nothing is sent, and so is its end', async () => {
    const { url } = await failing(3, 429, { 'retry-after': '86400' });
    const log = memoryLog();
    const api = client(url, { log });
    for (let asked = 0; asked < 4; asked += 1) await api.listComputes(PROJECT, QUICK);
    expect(log.lines.map(({ fields }) => fields)).toEqual([
      { event: 'ebb.api_paused', account: 'main', asked_seconds: 86_400, seconds: 300 },
      { event: 'ebb.api_resumed', account: 'main' },
    ]);
  });

  test('a connection that breaks is no end of a pause', async () => {
    let mode: 'refuses' | 'breaks' | 'answers' = 'refuses';
    const { url } = await serve((_request, response) => {
      if (mode === 'refuses') return { status: 429, headers: { 'retry-after': '86400' } };
      if (mode === 'answers') return { body: { endpoints: [] } };
      response.destroy();
      return undefined;
    });
    const log = memoryLog();
    const api = client(url, { log });
    const events = () => log.lines.map(({ fields }) => (fields as { event?: string }).event);
    await api.listComputes(PROJECT, QUICK);
    mode = 'breaks';
    await api.listComputes(PROJECT, QUICK);
    expect(events()).toEqual(['ebb.api_paused']);
    mode = 'answers';
    await api.listComputes(PROJECT, QUICK);
    expect(events()).toEqual(['ebb.api_paused', 'ebb.api_resumed']);
  });

  test('an abort ends a wait at once, and a closed client sends nothing', async () => {
    const { url, requests } = await serve(() => ({ status: 503, headers: { 'retry-after': '20' } }));
    const api = client(url);
    const controller = new AbortController();
    const waiting = api.listComputes(PROJECT, { signal: controller.signal });
    await expect.poll(() => requests.length).toBe(1);
    controller.abort();
    expect(errorOf(await waiting).code).toBe('unavailable');
    await api.close();
    expect((await api.listComputes(PROJECT)).ok).toBe(false);
    expect(requests).toHaveLength(1);
  });
});

describe('the key', () => {
  test('is in no error, however the service echoes it', async () => {
    const odd = 'secret/with"quotes"';
    const echoes = [odd, encodeURIComponent(odd), JSON.stringify(odd), Buffer.from(odd).toString('base64')];
    const { url } = await serve(() => ({
      status: 403,
      body: { message: `${'x'.repeat(480)} ${KEY} Bearer ${odd}\u001b[31m\n ${echoes.join(' ')}`, request_id: odd },
    }));
    const error = errorOf(
      await client(url, { accounts: [{ name: 'main', key: () => `${odd}\n` }] }).listComputes(PROJECT),
    );
    const text = JSON.stringify(error);
    for (const secret of [...echoes, KEY, KEY.slice(0, 20), 'secret']) expect(text).not.toContain(secret);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not reach a terminal.
    expect(error.message).not.toMatch(/[\u0000-\u001f]/);
  });

  test('that cannot be read is unauthorised, and nothing is sent', async () => {
    const { url, requests } = await serve(() => ({}));
    const key = () => {
      throw new Error(`no such file, but ${KEY}`);
    };
    const error = errorOf(await client(url, { accounts: [{ name: 'main', key }] }).listComputes(PROJECT));
    expect(error.code).toBe('unauthorised');
    expect(JSON.stringify(error)).not.toContain(KEY);
    expect(requests).toEqual([]);
  });

  test.each(['', ' ', 'two words', 'line\nbreak'])('that no key can be (%j) is not sent', async (key) => {
    const { url, requests } = await serve(() => ({}));
    const error = errorOf(await client(url, { accounts: [{ name: 'main', key: () => key }] }).listComputes(PROJECT));
    expect(error.code).toBe('unauthorised');
    expect(requests).toEqual([]);
  });

  test('is asked for before every request, and its validity is shown', async () => {
    let key = 'old';
    const { url } = await serve(({ headers }) =>
      headers.authorization === 'Bearer new' ? { body: { endpoints: [] } } : { status: 401 },
    );
    const metrics = recordingMetrics();
    const api = client(url, { metrics, accounts: [{ name: 'main', key: () => key }] });
    expect(errorOf(await api.listComputes(PROJECT)).code).toBe('unauthorised');
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(0);
    key = 'new';
    expect(unwrap(await api.listComputes(PROJECT)).computes).toEqual([]);
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(1);
  });
});

describe('where it connects', () => {
  test.each([
    ['http://example.com/api/v2', /plain http/],
    ['http://127.0.0.1.example.com/', /plain http/],
    ['ftp://127.0.0.1/', /https/],
    ['https://user:pw@example.com/', /user or password/],
    ['https://example.com/?a=b', /end with its path/],
    ['not a url', /not a URL/],
  ])('%s is refused', (url, reason) => {
    expect(() => createControlApi(clientOptions(url))).toThrow(reason);
  });

  test.each(['http://127.0.0.1:1/', 'http://localhost:1', 'http://[::1]:1/api/v2/', 'https://example.com/api/v2'])(
    '%s is accepted',
    async (url) => {
      await client(url).close();
    },
  );

  test('a redirect is not followed', async () => {
    const target = await serve(() => ({ body: { endpoints: [] } }));
    const { url } = await serve(() => ({ status: 307, headers: { location: `${target.url}/projects/x/endpoints` } }));
    expect(errorOf(await client(url).listComputes(PROJECT)).code).toBe('malformed');
    expect(target.requests).toEqual([]);
  });
});
