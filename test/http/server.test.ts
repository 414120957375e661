import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ASSETS } from '../../src/adapters/http/page/layout.tsx';
import { type HttpServerOptions, startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import type { Readiness } from '../../src/ports/documents.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import type { Log } from '../../src/ports/telemetry.ts';

const TOKEN = 'a-token-of-some-length';
const tokens = (shared?: string) => createTokens({ log: recordingLog(), local: 'known-to-this-machine', shared });
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Only what the pages outside /api ask. */
function operatorWith(overrides: Partial<DaemonOperator> = {}): DaemonOperator {
  const pages: Partial<DaemonOperator> = {
    readiness: async () => ({ ready: true, checks: [{ name: 'queue', ok: true, message: 'answers' }] }),
    metricsText: async () => ({
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      body: 'ebb_mode{mode="observe"} 1\n',
    }),
    ...overrides,
  };
  return pages as DaemonOperator;
}

function recordingLog(): Log & { lines: { level: string; fields: object; message: string }[] } {
  const lines: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

async function started(options: Partial<HttpServerOptions> = {}): Promise<string> {
  const server = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0 },
    operator: operatorWith(),
    log: recordingLog(),
    tokens: tokens(),
    ...options,
  });
  if (!server.ok) throw new Error(server.error);
  closers.push(server.close);
  return server.url;
}

describe('the HTTP server', () => {
  it('redirects /waste to /recommend, with what it was narrowed to', async () => {
    const answer = await fetch(`${await started()}/waste?owner=team-web&page=2`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([301, '/recommend?owner=team-web&page=2']);
  });

  it('serves metrics as the operator gives them', async () => {
    const answer = await fetch(`${await started()}/metrics`);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe('ebb_mode{mode="observe"} 1\n');
  });

  it('is alive while it is not ready, and says which part is missing', async () => {
    const notReady: Readiness = { ready: false, checks: [{ name: 'control API', ok: false, message: '401' }] };
    let readiness = notReady;
    const url = await started({ operator: operatorWith({ readiness: async () => readiness }) });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([503, notReady]);
    readiness = { ready: true, checks: [] };
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it('serves the section of each alert in the runbook', async () => {
    const answer = await fetch(`${await started()}/runbook`);
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.stringContaining('<h2 id="ebbdown">EbbDown</h2>'),
    ]);
  });

  it('answers an unknown path and another method with 404 as JSON', async () => {
    const url = await started();
    const answers = [await fetch(`${url}/nowhere`), await fetch(`${url}/metrics`, { method: 'POST' })];
    for (const answer of answers) {
      expect([answer.status, await answer.json()]).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
    }
  });

  it('sends headers that forbid framing, sniffing and scripts', async () => {
    const { headers } = await fetch(`${await started()}/healthz`);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
  });

  it('lets nobody keep an answer, a refusal neither; only files whose address is made of what is in them', async () => {
    const url = await started({ tokens: tokens(TOKEN) });
    const kept = async (path: string, token = TOKEN) => {
      const { status, headers } = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      return [status, headers.get('cache-control')];
    };
    expect(await kept('/readyz')).toEqual([200, 'no-store']);
    expect(await kept('/metrics')).toEqual([200, 'no-store']);
    expect(await kept('/metrics', `${TOKEN}x`)).toEqual([401, 'no-store']);
    expect(await kept('/computes/ep-one')).toEqual([500, 'no-store']);
    expect(await kept('/api/v1/openapi.json')).toEqual([200, 'no-store']);
    expect(await kept('/nowhere')).toEqual([404, 'no-store']);
    expect(await kept(ASSETS.style.path)).toEqual([200, expect.stringContaining('immutable')]);
  });

  it('logs what fails inside and tells the caller nothing of it', async () => {
    const log = recordingLog();
    const metricsText = () => Promise.reject(new Error('inner detail'));
    const answer = await fetch(`${await started({ log, operator: operatorWith({ metricsText }) })}/metrics`);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain('inner detail');
    expect(log.lines).toMatchObject([{ level: 'error', fields: { err: new Error('inner detail'), path: '/metrics' } }]);
  });
});

describe('a token', () => {
  it('guards everything but /healthz', async () => {
    const url = await started({ tokens: tokens(TOKEN) });
    const status = async (path: string, headers = {}) => (await fetch(`${url}${path}`, { headers })).status;
    expect(await status('/healthz')).toBe(200);
    for (const path of ['/', '/metrics', '/readyz', '/nowhere']) expect(await status(path)).toBe(401);
    expect(await status('/metrics', { authorization: `Bearer ${TOKEN}x` })).toBe(401);
    expect(await status('/metrics', { authorization: `Bearer ${TOKEN}` })).toBe(200);
    expect(await status('/metrics', { authorization: 'Bearer known-to-this-machine' })).toBe(200);
    expect(await status('/metrics', { authorization: `Basic ${btoa(`anyone:${TOKEN}`)}` })).toBe(200);
    expect(await status('/metrics', { authorization: `Basic ${btoa(`anyone:${TOKEN}x`)}` })).toBe(401);
    expect(await status('/nowhere', { authorization: `Bearer ${TOKEN}` })).toBe(404);
  });

  it('is checked once, also where reading and writing each need one; as a password it does not allow writing', async () => {
    const checked: string[] = [];
    const known = tokens(TOKEN);
    const holderOf = (token: string) => {
      checked.push(token);
      return known.holderOf(token);
    };
    const url = await started({ tokens: { ...known, holderOf } });
    const post = async (authorization: string) =>
      (await fetch(`${url}/api/v1/nowhere`, { method: 'POST', headers: { authorization }, body: '{}' })).status;
    expect(await post(`Bearer ${TOKEN}`)).toBe(415);
    expect(checked).toEqual([TOKEN]);
    expect(await post(`Basic ${btoa(`anyone:${TOKEN}`)}`)).toBe(400);
  });

  it('is asked for by a browser as a password, by a program as a bearer token', async () => {
    const url = await started({ tokens: tokens(TOKEN) });
    const challenge = async (accept: string) =>
      (await fetch(url, { headers: { accept } })).headers.get('www-authenticate');
    expect(await challenge('text/html,*/*')).toMatch(/^Basic realm=/);
    expect(await challenge('application/json')).toMatch(/^Bearer realm=/);
  });

  it('is needed beyond this machine, unless insecure is asked for', async () => {
    const base = {
      operator: operatorWith(),
      log: recordingLog(),
      tokens: tokens(),
      listen: { host: '0.0.0.0', port: 0 },
    };
    expect(await startHttpServer(base)).toEqual({
      ok: false,
      error:
        '0.0.0.0 can be reached from other machines: set EBB_TOKEN or EBB_TOKEN_FILE, listen on 127.0.0.1, or give --insecure',
    });
    await started({ ...base, tokens: tokens(TOKEN) });
    await started({ ...base, insecure: true });
  });
});

describe('an address that cannot be had', () => {
  it('is told in one line: a busy port', async () => {
    const busy = createServer();
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => busy.close(() => resolve())));
    const { port } = busy.address() as { port: number };
    expect(
      await startHttpServer({
        listen: { host: '127.0.0.1', port },
        operator: operatorWith(),
        log: recordingLog(),
        tokens: tokens(),
      }),
    ).toEqual({
      ok: false,
      error: `port ${port} on 127.0.0.1 is in use; stop what listens there or set EBB_LISTEN`,
    });
  });

  it('is told in one line: an address of another machine', async () => {
    // 192.0.2.0/24 is reserved for documentation: no machine has it.
    const listen = { host: '192.0.2.1', port: 0 };
    expect(
      await startHttpServer({ listen, operator: operatorWith(), log: recordingLog(), tokens: tokens(TOKEN) }),
    ).toEqual({
      ok: false,
      error: '192.0.2.1 is not an address of this machine; set EBB_LISTEN to one that is',
    });
  });
});

describe('closing', () => {
  it('lets a running request end and refuses new ones', async () => {
    let answerNow = () => {};
    const held = new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    let asked = false;
    const metricsText = async () => {
      asked = true;
      await held;
      return { contentType: 'text/plain', body: 'last words' };
    };
    const server = await startHttpServer({
      listen: { host: '127.0.0.1', port: 0 },
      operator: operatorWith({ metricsText }),
      log: recordingLog(),
      tokens: tokens(),
    });
    if (!server.ok) throw new Error(server.error);
    const running = fetch(`${server.url}/metrics`);
    await expect.poll(() => asked).toBe(true);
    const closing = server.close();
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
    answerNow();
    expect(await (await running).text()).toBe('last words');
    await closing;
  });

  it('cuts a request that does not end', async () => {
    const server = await startHttpServer({
      listen: { host: '127.0.0.1', port: 0 },
      operator: operatorWith({ metricsText: () => new Promise(() => {}) }),
      log: recordingLog(),
      tokens: tokens(),
    });
    if (!server.ok) throw new Error(server.error);
    const running = fetch(`${server.url}/metrics`).catch((error: unknown) => error);
    await expect.poll(async () => (await fetch(`${server.url}/healthz`)).status).toBe(200);
    await server.close();
    expect(await running).toBeInstanceOf(Error);
  });
});
