import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { Store } from '../../src/ports/store.ts';
import { aRecord, REAL } from '../support/builders.ts';
import { embeddedTestEngine, type TestEngine } from '../support/engines.ts';
import { answerProblems } from './api-schema.ts';
import { emptyFleet } from './empty-fleet.ts';

const TOKEN = 'a-token-of-some-length';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const HOLD = { compute: 'ep-one', owner: 'ann', reason: 'import', for_seconds: 3600, size: { min_cu: 2, max_cu: 4 } };

const NOT_FOUND = { ok: false, error: { code: 'not_found', message: '' } } as const;

let engine: TestEngine;
let store: Store;
let url: string;
let looked: string[];
let close: () => Promise<void>;

beforeAll(async () => {
  engine = await embeddedTestEngine();
  store = await createStore({ engine: engine.engine, log: engine.log });
  const lease = await store.acquireLease('project-p-one', 'test', 10_000);
  if (!lease) throw new Error('no lease');
  await store.putRecord('p-one', 'ep-one', aRecord(), lease);
  await store.releaseLease(lease);
  const operator = createOperator({
    ...{ store, log: engine.log, holder: 'operator' },
    ...REAL,
    now: () => store.timeMs(),
    async requestReconciles(projectIds) {
      looked.push(...projectIds);
    },
    policies: async () => ({ set: { hash: '', policies: [], sources: new Map() }, areCurrent: true }),
  });
  const server = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0 },
    log: engine.log,
    tokens: createTokens({ log: engine.log, local: TOKEN }),
    operator: {
      ...operator,
      staleness: () => undefined,
      readiness: async () => ({ ready: true, checks: [] }),
      metricsText: async () => ({ contentType: 'text/plain', body: '' }),
      plan: async () => ({ computes: [] }),
      fleet: async () => emptyFleet(''),
      compute: async () => NOT_FOUND,
      teamsOf: async () => [],
      refused: async () => {},
      findCompute: async () => NOT_FOUND,
      findHold: async () => NOT_FOUND,
    },
  });
  if (!server.ok) throw new Error(server.error);
  url = server.url;
  looked = [];
  close = server.close;
});
afterAll(async () => {
  await close();
  await engine.close();
});

/** What the answers hold that these tests look at. */
interface Body {
  id: string;
  holds: { id: string }[];
  freezes: unknown[];
  in_flight?: unknown[];
  computes: unknown[];
  decisions: { kind: string; who: string }[];
  audit: { id: string }[];
  next: string | null;
}

async function tell(method: string, path: string, body?: unknown, headers: Record<string, string> = AUTHORIZED) {
  const answer = await fetch(`${url}/api/v1/${path}`, {
    ...{ method, headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const told = { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body };
  expect(answerProblems(method, path, told)).toEqual([]);
  return told;
}

/** `fetch` does not let a caller choose the name that it asks for. */
function askAs(host: string): Promise<number | undefined> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path: '/api/v1/holds', headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on('error', reject).end();
  });
}

describe('holds over HTTP', () => {
  it('are set, listed, remembered, and ended; each time the project is looked at', async () => {
    const set = await tell('POST', 'holds', HOLD);
    expect(set).toMatchObject({
      status: 201,
      body: { project_id: 'p-one', compute_id: 'ep-one', owner: 'ann', size: { min_cu: 2, max_cu: 4 }, freeze: false },
    });
    const { in_flight, ...hold } = set.body;
    expect(in_flight).toEqual([]);
    expect(await tell('GET', 'holds', undefined, {})).toMatchObject({
      ...{ status: 200, body: { holds: [hold], next: null } },
    });
    expect(looked.splice(0)).toEqual(['p-one']);
    expect(await tell('DELETE', `holds/${set.body.id}?owner=bob`)).toMatchObject({ body: { holds: [set.body.id] } });
    expect(looked.splice(0)).toEqual(['p-one']);
    expect((await tell('GET', 'holds')).body).toEqual({ holds: [], next: null });
    const { decisions } = (await tell('GET', 'decisions?compute=ep-one')).body;
    expect(decisions.map(({ kind, who }) => [kind, who])).toEqual(
      expect.arrayContaining([
        ['hold', 'ann'],
        ['hold', 'bob'],
      ]),
    );
    expect((await tell('DELETE', `holds/${set.body.id}?owner=bob`)).status).toBe(404);
    expect((await tell('DELETE', 'holds/ep-one?owner=bob')).status).toBe(404);
  });

  it('name the change that was already on its way to their compute, until its answer is recorded', async () => {
    const intent = { fields: { minCu: 1, maxCu: 2 }, atMs: Date.parse('2026-03-02T08:00:00Z') };
    const lease = await store.acquireLease('project-p-one', 'a daemon', 60_000);
    if (!lease) throw new Error('the lease is held');
    await store.putRecord('p-one', 'ep-one', aRecord({ intent }), lease);
    const to = { min_cu: 1, max_cu: 2, suspend_timeout_seconds: null };
    const pending = { project_id: 'p-one', compute_id: 'ep-one', to, restart: false, since: '2026-03-02T08:00:00Z' };
    const ask = { owner: 'ann', reason: 'incident', for_seconds: 60 };
    const held = (await tell('POST', 'holds', HOLD)).body;
    const frozen = (await tell('POST', 'freezes', { ...ask, select: { computes: ['ep-one'] } })).body;
    expect([held, frozen].map(({ in_flight }) => in_flight)).toEqual([[pending], [pending]]);
    expect((await tell('DELETE', `holds/${held.id}?owner=bob`)).body).toMatchObject({ in_flight: [pending] });
    expect((await tell('DELETE', 'freezes?owner=bob')).body).toMatchObject({ in_flight: [pending] });
    await store.putRecord('p-one', 'ep-one', aRecord(), lease);
    await store.releaseLease(lease);
    const after = (await tell('POST', 'holds', HOLD)).body;
    expect(after.in_flight).toEqual([]);
    await tell('DELETE', `holds/${after.id}?owner=bob`);
  });

  it('leave lines in the audit: who as they say, why, and the id of the request', async () => {
    const headers = { ...AUTHORIZED, from: 'ann@laptop', 'x-request-id': 'request-7' };
    const since = new Date().toISOString();
    const { body } = await tell('POST', 'holds', { ...HOLD, reason: 'an audited import' }, headers);
    await tell('DELETE', `holds/${body.id}?owner=team-web`, undefined, headers);
    const { audit } = (await tell('GET', `audit?compute=ep-one&since=${encodeURIComponent(since)}`)).body;
    const usual = { compute_id: 'ep-one', kind: 'hold', who: 'ann@laptop', verified: false, request_id: 'request-7' };
    expect(audit).toMatchObject([
      { ...usual, reasons: [{ message: `released: hold ${body.id} of ann (in the name of team-web)` }] },
      { ...usual, reasons: [{ message: expect.stringMatching(/^held: size 2-4 CU, until .*: an audited import$/) }] },
    ]);
    expect((await tell('GET', 'audit?until=2000-01-01T00:00:00Z')).body).toMatchObject({ audit: [], next: null });
    const first = (await tell('GET', 'audit?limit=1')).body;
    const next = (await tell('GET', `audit?limit=1&after=${encodeURIComponent(first.next ?? '')}`)).body;
    expect([...first.audit, ...next.audit].map(({ id }) => id)).toEqual(audit.map(({ id }) => id));
    expect((await tell('GET', 'audit?since=yesterday')).status).toBe(400);
  });

  it('come in pages', async () => {
    const ids = [];
    for (let index = 0; index < 3; index += 1) ids.push((await tell('POST', 'holds', HOLD)).body.id);
    const first = (await tell('GET', 'holds?limit=2')).body;
    const second = (await tell('GET', `holds?limit=2&after=${encodeURIComponent(first.next ?? '')}`)).body;
    const listed = [...first.holds, ...second.holds].map(({ id }) => id);
    expect([listed.toSorted(), second.next]).toEqual([ids.toSorted(), null]);
    const { holds }: { holds: unknown[] } = (await tell('POST', 'release', { target: 'ep-one', owner: 'ann' })).body;
    expect(holds.toSorted()).toEqual(ids.toSorted());
  });

  it.each([
    ['a size that there is not', { ...HOLD, size: { min_cu: 3.3, max_cu: 4 } }, 400, 'invalid', /3 and 4/],
    ['nothing to hold', { ...HOLD, size: undefined }, 400, 'invalid', /needs a size/],
    ['size and freeze', { ...HOLD, freeze: true }, 400, 'invalid', /leave one out/],
    ['no reason', { ...HOLD, reason: '' }, 400, 'invalid', /^reason: /],
    ['a reason that steers a terminal', { ...HOLD, reason: 'a\u001b[2J' }, 400, 'invalid', /plain line/],
    ['no end', { ...HOLD, for_seconds: undefined }, 400, 'invalid', /^for_seconds: /],
    ['an end too far', { ...HOLD, for_seconds: 90 * 86_400 + 1 }, 400, 'invalid', /^for_seconds: /],
    ['a key that is not known', { ...HOLD, sise: 1 }, 400, 'invalid', /sise/],
    ['a compute that is not known', { ...HOLD, compute: 'ep-other' }, 404, 'not_found', /ep-other/],
    ['no id', { ...HOLD, compute: '../x' }, 404, 'not_found', /not the id/],
    ['no JSON', '{"compute":', 400, 'invalid', /not JSON/],
    ['more than anybody writes', { ...HOLD, reason: 'x'.repeat(70_000) }, 413, 'too_large', /KiB/],
  ])('are refused with %s', async (_what, body, status, code, message) => {
    const answer = await tell('POST', 'holds', body);
    expect(answer).toMatchObject({ status, body: { code, message: expect.stringMatching(message) } });
    expect((await tell('GET', 'holds')).body.holds).toEqual([]);
  });
});

describe('a selector over HTTP', () => {
  const globs = (length: number, text: string) => Array.from({ length }, (_, index) => `${text}${index}`);
  it.each([
    ['more globs than a list has', globs(1001, 'web-'), 'a list has at most 1000 globs'],
    ['a glob that is too long', ['a'.repeat(257)], 'a glob has at most 256 characters'],
    ['many wildcards', globs(1000, '*a*a*a'), 'its globs take too long to match'],
    ['a class of characters', ['api-000[12]*'], 'only * and ? are wildcards'],
    ['characters that go back', [`*${'?a*'.repeat(60)}`], 'its globs take too long to match'],
  ])('is refused with %s, in a freeze and in a query', async (_, projects, message) => {
    const ask = { owner: 'ann', reason: 'release', for_seconds: 60, select: { projects } };
    const refused = { status: 400, body: { code: 'invalid', message: expect.stringContaining(message) } };
    expect(await tell('POST', 'freezes', ask)).toMatchObject(refused);
    const select = encodeURIComponent(JSON.stringify({ projects }));
    if (select.length < 8000) expect(await tell('GET', `status?select=${select}`)).toMatchObject(refused);
    expect((await tell('GET', 'freezes')).body.freezes).toEqual([]);
  });
});

describe('freezes over HTTP', () => {
  it('are set, listed and ended, one or all', async () => {
    const one = {
      owner: 'ann',
      reason: 'incident',
      for_seconds: 60,
      select: { projects: ['web-*'] },
      allow_raise: true,
    };
    const set = await tell('POST', 'freezes', one);
    expect(set).toMatchObject({
      status: 201,
      body: { select: { projects: ['web-*'], minAgeMs: 0 }, allow_raise: true },
    });
    await tell('POST', 'freezes', { ...one, select: 'all' });
    expect((await tell('GET', 'status')).body.freezes).toHaveLength(2);
    expect((await tell('DELETE', 'freezes?owner=bob&preview=true')).body.freezes).toHaveLength(2);
    expect((await tell('DELETE', `freezes/${set.body.id}?owner=bob`)).body).toEqual({
      ...{ freezes: [set.body.id], in_flight: [] },
    });
    expect((await tell('DELETE', 'freezes?owner=bob')).body.freezes).toHaveLength(1);
    expect((await tell('GET', 'freezes')).body).toEqual({ freezes: [], next: null });
    expect((await tell('POST', 'freezes', { ...one, select: {} })).status).toBe(400);
    expect((await tell('DELETE', 'freezes')).body).toMatchObject({ code: 'invalid', message: 'the owner is missing' });
    expect((await tell('DELETE', 'freezes/..%2f..%2fx')).status).toBe(400);
  });
});

describe('the freezes of a store', () => {
  const set = (projects: string[]) =>
    tell('POST', 'freezes', { owner: 'ann', reason: 'release', for_seconds: 60, select: { projects } });

  it.each([
    ['take too long to match together', 10, Array.from({ length: 25 }, (_, index) => `*a*${index}`)],
    ['have too many globs together', 4, Array.from({ length: 1000 }, (_, index) => `${index}-`.padEnd(60, 'x'))],
  ])('leave no room for one more that would %s', async (_, most, projects) => {
    for (let count = 0; count < most; count += 1) expect((await set(projects)).status).toBe(201);
    const full = { code: 'full', message: expect.stringContaining('the globs of all active freezes') };
    expect(await set(projects)).toMatchObject({ status: 409, body: full });
    expect((await tell('GET', 'freezes')).body.freezes).toHaveLength(most);
    expect((await set(['web-a'])).status).toBe(201);
    expect((await tell('DELETE', 'freezes?owner=bob')).body.freezes).toHaveLength(most + 1);
    expect((await set(projects)).status).toBe(201);
    await tell('DELETE', 'freezes?owner=bob');
  });
});

describe('the other routes', () => {
  it('restore, approve and release say what they did', async () => {
    const restored = await tell('POST', 'restore', { computes: ['ep-one'], owner: 'ann' });
    expect(restored.body.computes).toMatchObject([{ compute_id: 'ep-one', outcome: 'nothing_to_do' }]);
    const refused = await tell('POST', 'restore', { computes: 'all', owner: 'ann', confirm: 2 });
    expect(refused).toMatchObject({ status: 409, body: { code: 'unconfirmed' } });
    const foreseen = await tell('POST', 'restore', { computes: 'all', owner: 'ann', preview: true });
    expect(foreseen).toMatchObject({ status: 200, body: { count: 0 } });
    expect((await tell('POST', 'restore', { computes: 'all', owner: 'ann', cancel: true })).body).toMatchObject({
      count: 0,
    });
    const hash = 'ab'.repeat(32);
    expect(await tell('POST', 'approve', { hash, owner: 'ann' })).toMatchObject({ status: 200, body: { hash } });
    expect(await store.approvals()).toMatchObject([{ hash, who: 'ann' }]);
    expect((await tell('POST', 'approve', { hash: 'not-a-hash', owner: 'ann' })).status).toBe(400);
  });

  it('give records to plan with, and 503 for what only a daemon knows', async () => {
    expect((await tell('GET', 'records')).body).toEqual({
      records: [{ project_id: 'p-one', records: { 'ep-one': aRecord() }, samples: {} }],
      next: null,
    });
    expect((await tell('GET', 'records?compute=ep-one')).body).toMatchObject({ records: [{ project_id: 'p-one' }] });
    expect(await tell('GET', 'records?compute=ep-other')).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await tell('GET', 'computes')).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  });

  it.each(['holds?limit=0', 'holds?limit=1001', 'decisions?limit=x', 'holds?unknown=1'])('refuse %s', async (path) => {
    expect((await tell('GET', path)).status).toBe(400);
  });
});

describe('who may tell', () => {
  const STRANGERS: [string, Record<string, string>, number][] = [
    ['nobody without the token', { 'content-type': 'application/json' }, 401],
    ['nobody with another token', { ...AUTHORIZED, authorization: `Bearer ${TOKEN}x` }, 401],
    ['no form of a web page', { ...AUTHORIZED, 'content-type': 'text/plain' }, 415],
    ['no web page of another origin', { ...AUTHORIZED, origin: 'https://evil.example' }, 403],
    ['no web page without an origin', { ...AUTHORIZED, origin: 'null' }, 403],
  ];

  it.each(STRANGERS)('is %s', async (_who, headers, status) => {
    for (const path of ['holds', 'freezes', 'release', 'approve', 'restore']) {
      expect((await tell('POST', path, HOLD, headers)).status, path).toBe(status);
    }
    expect((await tell('GET', 'holds')).body.holds).toEqual([]);
  });

  it('also where something is ended', async () => {
    expect((await tell('DELETE', 'freezes', undefined, {})).status).toBe(401);
  });

  it('is nobody who was led here under another name, not even to read', async () => {
    const { port } = new URL(url);
    expect(await askAs(`localhost:${port}`)).toBe(200);
    expect(await askAs(`evil.example:${port}`)).toBe(403);
  });

  it('never gets an answer that may be kept, or that holds the token', async () => {
    const answers = [
      await tell('GET', 'status'),
      await tell('POST', 'holds', HOLD, { 'content-type': 'application/json' }),
    ];
    for (const { headers, body } of answers) {
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(JSON.stringify(body)).not.toContain(TOKEN);
    }
  });
});
