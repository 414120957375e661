import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpServer, startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import type { DecisionDocument, HoldDocument } from '../../src/ports/documents.ts';
import type { DaemonOperator, HoldRequest } from '../../src/ports/operator.ts';
import type { ComputeDetailDocument } from '../../src/ports/status-page.ts';
import { memoryLog } from '../support/memory-log.ts';
import { emptyFleet } from './empty-fleet.ts';

const TOKEN = 'a-token-of-some-length';
const FORM = { for_seconds: '3600', reason: 'import', owner: 'bob', min_cu: '2', max_cu: '', token: TOKEN };

const NOW = '2026-03-02T12:00:00Z';
const NONE = { min_cu: null, max_cu: null, suspend_timeout_seconds: null };
const COMPUTE: ComputeDetailDocument = {
  ...{
    at: NOW,
    project_id: 'p-one',
    project_name: 'one',
    compute_id: 'ep-one',
    branch_id: 'br-one',
    branch_name: null,
    owner: 'unowned',
    refused: [],
  },
  ...{ type: 'read_write', status: 'enforced', current: { ...NONE, state: 'idle' }, desired: NONE, baseline: NONE },
  ...{
    verdict: 'none',
    reasons: [],
    until: null,
    next_boundary: null,
    next_change: null,
    week: { state: 'not_yet' },
    region_id: 'r',
    read_at: null,
    overdue_since: null,
  },
  ...{
    disabled: false,
    trace: [],
    holds: [],
    freezes: [],
    freezing_policies: [],
    operations: [],
    decisions: [],
    cost: null,
  },
};

const HOLD: HoldDocument = {
  ...{ id: 'h-1', project_id: 'p-one', compute_id: 'ep-one', owner: 'ann', reason: 'import' },
  ...{ created_at: NOW, expires_at: NOW, size: null, suspend_timeout_seconds: null, freeze: true, limited: null },
};
const NOT_FOUND = { ok: false, error: { code: 'not_found', message: 'is <nowhere>' } } as const;

let server: HttpServer;
const held: HoldRequest[] = [];
const released: object[] = [];
const audited: object[] = [];
const LINE: DecisionDocument = {
  ...{ at: NOW, project_id: 'p-one', compute_id: 'ep-one', kind: 'write', policy: 'team-web/hours', set_hash: '' },
  ...{ revision: null, from: null, to: null, who: null, verified: false, request_id: 'r-1', owner: 'team-web' },
  ...{ reasons: [{ code: 'window_open', message: '<b> ran' }], id: 'a-1' },
};
/** Computes whose pages were made, with the week ahead and all. */
const pages: string[] = [];

const fake: Partial<DaemonOperator> = {
  findCompute: async (id) => (id === 'ep-one' ? { ok: true, value: COMPUTE } : NOT_FOUND),
  compute: async () => {
    pages.push('ep-one');
    return { ok: true, value: COMPUTE };
  },
  hold: async (request) => {
    held.push(request);
    return { ok: true, value: HOLD };
  },
  findHold: async (id) => (id === HOLD.id ? { ok: true, value: HOLD } : NOT_FOUND),
  release: async (request) => {
    released.push(request);
    return { ok: true, value: { holds: [HOLD.id], computes: [], budgets: [] } };
  },
  readiness: async () => ({ ready: false, checks: [{ name: 'store', ok: false, message: 'is <away>' }] }),
  status: () => Promise.reject(new Error('inner detail')),
  fleet: async () => emptyFleet(NOW),
  costs: async () => ({ ok: true, value: { costs: null } }),
  decisions: async () => ({ ok: true, value: [] }),
  audit: async (query) => {
    audited.push(query);
    return { ok: true, value: { items: [LINE], next: 'more' } };
  },
  teamsOf: async () => [],
  staleness: () => undefined,
};
const operator = fake as DaemonOperator;

beforeAll(async () => {
  const log = memoryLog();
  const started = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, operator, log },
    tokens: createTokens({ log, local: TOKEN }),
  });
  if (!started.ok) throw new Error(started.error);
  server = started;
});
afterAll(() => server.close());

async function send(fields: Record<string, string>, headers: Record<string, string>, path = '/computes/ep-one/holds') {
  const answer = await fetch(`${server.url}${path}`, {
    ...{ method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(fields) },
  });
  return { status: answer.status, text: await answer.text(), location: answer.headers.get('location') };
}

describe('the form that sets a hold', () => {
  it('does so with a token, from a page of this daemon, and makes no page for it', async () => {
    pages.splice(0);
    const sent = await send(FORM, { origin: server.url });
    expect(sent).toMatchObject({ status: 303, location: '/computes/ep-one?done=held' });
    const wanted = {
      compute: 'ep-one',
      owner: 'bob',
      reason: 'import',
      forSeconds: 3600,
      size: { minCu: 2, maxCu: 2 },
    };
    expect(held.splice(0)).toEqual([wanted]);
    expect(pages).toEqual([]);
  });

  it('finds no compute that is not there, however it is written, and then holds none', async () => {
    for (const id of ['ep-other', 'p-one%2Fep-one', '-']) {
      const sent = await send(FORM, { origin: server.url }, `/computes/${id}/holds`);
      expect(sent).toMatchObject({ status: 404, location: null, text: expect.stringContaining('is &lt;nowhere&gt;') });
    }
    expect(held).toEqual([]);
  });

  const FOREIGN: [string, Record<string, string>][] = [
    ['another page', { origin: 'https://evil.example' }],
    ['a page without an origin', { origin: 'null' }],
    ['a page of another port', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
    ['nowhere that a browser names', {}],
  ];

  it.each(FOREIGN)('is refused from %s, even with the token', async (_from, headers) => {
    expect((await send(FORM, headers)).status).toBe(403);
    expect(held).toEqual([]);
  });

  it.each([
    ['without the token', { token: '' }, 401],
    ['with a field that it does not have', { compute: 'ep-other' }, 400],
    ['with more than anybody writes', { reason: 'x'.repeat(20_000) }, 413],
  ])('is refused %s', async (_how, fields, status) => {
    const sent = await send({ ...FORM, ...fields }, { origin: server.url });
    expect(sent.status).toBe(status);
    expect(sent.text).not.toContain(TOKEN);
    expect(held).toEqual([]);
  });

  it('shows what was written again as text, never as markup', async () => {
    const { text } = await send({ ...FORM, token: 'x', reason: '"><script>alert(1)</script>' }, { origin: server.url });
    expect(text).not.toContain('<script>alert');
    expect(text).toContain('&lt;script&gt;alert(1)');
  });
});

describe('the form that ends a hold', () => {
  const RELEASE = { owner: 'bob', token: TOKEN };

  it('does so with a token, and leads to the compute that was held', async () => {
    const sent = await send(RELEASE, { origin: server.url }, '/holds/h-1/release');
    expect(sent).toMatchObject({ status: 303, location: '/computes/ep-one?done=released' });
    expect(released.splice(0)).toEqual([{ target: 'h-1', owner: 'bob' }]);
  });

  it('ends nothing without the token, or from another page', async () => {
    const again = await send({ ...RELEASE, token: 'x' }, { origin: server.url }, '/holds/h-1/release');
    expect(again).toMatchObject({ status: 401, location: null, text: expect.stringContaining('value="bob"') });
    expect((await send(RELEASE, { origin: 'https://evil.example' }, '/holds/h-1/release')).status).toBe(403);
    expect(released).toEqual([]);
  });

  it('never releases a compute in whole, whose id is that of no hold', async () => {
    const sent = await send(RELEASE, { origin: server.url }, '/holds/ep-one/release');
    expect(sent).toMatchObject({ status: 404, location: null });
    expect(released).toEqual([]);
  });
});

describe('the forms of who is logged in', () => {
  const AS_ANN = {
    'by the password of a browser': `Basic ${btoa(`anything:${TOKEN}`)}`,
    'by a proxy': `Bearer ${TOKEN}`,
  };
  let guarded: HttpServer;
  beforeAll(async () => {
    const log = memoryLog();
    const holderOf = (token: string) => (token === TOKEN ? { name: 'ann' } : undefined);
    const started = await startHttpServer({
      ...{ listen: { host: '127.0.0.1', port: 0 }, operator, log },
      tokens: { readingNeedsToken: true, holderOf, problem: () => undefined },
    });
    if (!started.ok) throw new Error(started.error);
    guarded = started;
  });
  afterAll(() => guarded.close());

  it.each(Object.entries(AS_ANN))('%s ask for no token and no name, and are theirs', async (_how, authorization) => {
    const page = await (await fetch(`${guarded.url}/computes/ep-one`, { headers: { authorization } })).text();
    expect(page).toContain('<p>As ann</p>');
    expect(page).not.toMatch(/name="owner"|name="token"[^>]*required/);
    const { token: _, owner: _bob, ...form } = FORM;
    const submit = (origin: string) =>
      fetch(`${guarded.url}/computes/ep-one/holds`, {
        ...{ method: 'POST', redirect: 'manual', headers: { authorization, origin } },
        body: new URLSearchParams(form),
      });
    expect((await submit('https://evil.example')).status).toBe(403);
    expect(held).toEqual([]);
    expect((await submit(guarded.url)).status).toBe(303);
    expect(held.splice(0)).toMatchObject([{ compute: 'ep-one', owner: 'ann' }]);
  });

  it('are refused where another token is written that is none', async () => {
    const headers = { authorization: `Bearer ${TOKEN}`, origin: guarded.url };
    const body = new URLSearchParams({ ...FORM, token: 'none' });
    const sent = await fetch(`${guarded.url}/computes/ep-one/holds`, { method: 'POST', headers, body });
    expect(sent.status).toBe(401);
    expect(held).toEqual([]);
  });
});

describe('the page of the history', () => {
  it('asks for what it is narrowed to, whole days at a time, and links to the parts of each line as text', async () => {
    audited.splice(0);
    const query = 'owner=team-web&kind=write&since=2026-03-01&until=2026-03-02&who=ann&after=7&nonsense=1';
    const text = await (await fetch(`${server.url}/history?${query}`)).text();
    const [sinceMs, untilMs] = [Date.parse('2026-03-01T00:00:00Z'), Date.parse('2026-03-03T00:00:00Z') - 1];
    expect(audited).toMatchObject([{ owner: 'team-web', kind: 'write', who: 'ann', after: '7', sinceMs, untilMs }]);
    expect(text).toContain('<a href="/computes/ep-one">ep-one</a>');
    expect(text).toContain('href="/?policy=team-web%2Fhours"');
    expect(text).toMatch(/href="\/history\?owner=team-web&amp;[^"]*kind=write&amp;[^"]*request=r-1"/);
    expect(text).toMatch(/href="\/history\?[^"]*after=more"[^>]*>Older</);
    expect(text).toContain('&lt;b&gt; ran');
    expect(text).not.toContain('<b> ran');
    expect(text).toContain('id="a-1"');
  });

  it('shows all decisions of late as well', async () => {
    const text = await (await fetch(`${server.url}/history?show=decisions&kind=held`)).text();
    expect(text).toContain('Nothing is found.');
    expect(text).toContain('held back or observed');
  });
});

describe('a page that fails', () => {
  it('says what is not ready, and nothing of the inside', async () => {
    const answer = await fetch(server.url);
    const text = await answer.text();
    expect(answer.status).toBe(500);
    expect(text).toContain('store: is &lt;away&gt;');
    expect(text).not.toContain('inner detail');
  });
});
