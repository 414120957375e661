/** Every route of the table × every role, over HTTP: what a token's roles lack is refused before the operator hears of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_ROUTES, type ApiRoute } from '../../src/adapters/http/api/route-table.ts';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import { parseGrants } from '../../src/ports/roles.ts';
import { memoryLog } from '../support/memory-log.ts';

/** Name, roles as the file has them, and what they allow: a route's kind, of anything or of a team. */
const PEOPLE: Record<string, { roles: string; may: string[] }> = {
  all: {
    roles: '',
    may: [
      'operate web',
      'operate api',
      'operate all',
      'freeze web',
      'freeze api',
      'freeze all',
      'approve web',
      'approve api',
    ],
  },
  reader: { roles: '[read]', may: [] },
  operator: { roles: '[operate]', may: ['operate web', 'operate api', 'operate all'] },
  web: { roles: '[read, operate web]', may: ['operate web'] },
  freezer: { roles: '[freeze]', may: ['freeze web', 'freeze api', 'freeze all'] },
  // What its freeze is limited to, the operator decides.
  webfreezer: { roles: '[freeze web]', may: ['freeze web', 'freeze all'] },
  approver: { roles: '[approve]', may: ['approve web', 'approve api'] },
  weblead: { roles: '[ operate web, approve web ]', may: ['operate web', 'approve web'] },
  oncall: {
    roles: '[operate, freeze]',
    may: ['operate web', 'operate api', 'operate all', 'freeze web', 'freeze api', 'freeze all'],
  },
};
const tokenOf = (name: string) => `token-of-${name}-0123456789`;

/** What each route is about, said here once more: the table must not mark its own work. */
const KINDS: Record<string, 'operate' | 'freeze' | 'approve'> = {
  ...{ hold: 'operate', endHold: 'operate', release: 'operate', restore: 'operate' },
  retryOrDropNotifications: 'operate',
  ...{ freeze: 'freeze', unfreeze: 'freeze', unfreezeAll: 'freeze', approve: 'approve' },
};
/** Every route may be asked about what is of team web, of team api, and, where that can be said, about everything. */
const SUBJECTS = ['web', 'api', 'all', 'web and api'] as const;
type Subject = (typeof SUBJECTS)[number];

const computes: Record<Subject, unknown> = {
  web: ['ep-web'],
  api: ['ep-api'],
  all: 'all',
  'web and api': ['ep-web', 'ep-api'],
};
const one: Partial<Record<Subject, string>> = { web: 'ep-web', api: 'ep-api' };
const holds: Partial<Record<Subject, string>> = { web: 'h-aaa', api: 'h-bbb' };
const freezes: Partial<Record<Subject, string>> = { web: 'f-aaa', api: 'f-bbb' };
const sets: Partial<Record<Subject, string>> = { web: 'a'.repeat(64), api: 'b'.repeat(64) };

const OUTSIDE = 'of what only the operator knows to be outside';
const log = memoryLog();
const folder = mkdtempSync(join(tmpdir(), 'ebb-roles-'));
const told: string[] = [];
type Refused = Parameters<DaemonOperator['refused']>;
const refused: Refused[] = [];
let url = '';
let close = async () => {};

beforeAll(async () => {
  const file = join(folder, 'tokens');
  writeFileSync(
    file,
    Object.entries(PEOPLE)
      .map(([name, { roles }]) => `${name} ${roles}: ${tokenOf(name)}\n`)
      .join(''),
  );
  const owners = new Map([
    ...Object.entries({
      'ep-web': 'web',
      'h-aaa': 'web',
      'ep-api': 'api',
      'h-bbb': 'api',
      'f-aaa': 'web',
      'f-bbb': 'api',
    }),
  ]);
  const operator = new Proxy({} as DaemonOperator, {
    get: (_, name: keyof DaemonOperator) => {
      if (name === 'staleness') return () => undefined;
      if (name === 'findCompute')
        return async (id: string) => ({ ok: true, value: { project_id: 'p', compute_id: id } });
      if (name === 'findHold')
        return async (id: string) => ({ ok: true, value: { id, compute_id: `ep-${owners.get(id)}` } });
      if (name === 'teamsOf')
        return async (kind: string, target: string) => {
          if (target === 'ep-unread') return undefined;
          if (kind === 'set') return [target.startsWith('a') ? 'web' : 'api'];
          return [owners.get(target)].flatMap((team) => team ?? []);
        };
      if (name === 'refused') return async (...given: Refused) => void refused.push(given);
      return async (request: { reason?: string } = {}) => {
        told.push(name);
        if (request.reason === OUTSIDE) return { ok: false, error: { code: 'forbidden', message: 'not in the scope' } };
        return { ok: false, error: { code: 'busy', message: 'told' } };
      };
    },
  });
  const tokens = createTokens({ log, local: 'known-to-this-machine', file });
  expect(tokens.problem()).toBeUndefined();
  const server = await startHttpServer({ listen: { host: '127.0.0.1', port: 0 }, log, tokens, operator });
  if (!server.ok) throw new Error(server.error);
  ({ url, close } = server);
});
afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true });
});

/** What can be said of everything only: a receiver may be that of several teams. */
const OF_ALL: Record<string, { body: object }> = {
  retryOrDropNotifications: { body: { action: 'drop', target: 'ops' } },
};

/** Routes about a thing of one team, and what names it. */
const NAMED: Record<string, { of: Partial<Record<Subject, string>>; body?: (of: string) => object }> = {
  endHold: { of: holds },
  unfreeze: { of: freezes },
  hold: { of: one, body: (compute) => ({ ...COMMON, compute, freeze: true }) },
  release: { of: one, body: (target) => ({ target }) },
  approve: { of: sets, body: (hash) => ({ hash }) },
};
const COMMON = { reason: 'test', for_seconds: 60, owner: 'somebody-else' };

/** A request to a route about a subject; undefined where the route can't be about it. */
function requestTo({ name, path }: ApiRoute, subject: Subject): { path: string; body?: object } | undefined {
  const named = NAMED[name];
  const of = named?.of[subject];
  if (named)
    return of === undefined
      ? undefined
      : { path: path.replace('{id}', of), ...(named.body && { body: named.body(of) }) };
  if (name === 'restore') return { path, body: { computes: computes[subject] } };
  if (KINDS[name] === 'freeze' && subject !== 'all') return undefined;
  if (name === 'freeze') return { path, body: { ...COMMON, select: { computes: ['ep-web'] } } };
  return { path, ...OF_ALL[name] };
}

function isAllowed(person: string, route: ApiRoute, subject: Subject): boolean {
  const kind = KINDS[route.name];
  const may = PEOPLE[person]?.may ?? [];
  if (route.method === 'get') return true;
  return may.includes(`${kind} ${subject}`) || (subject === 'web and api' && may.includes(`${kind} api`));
}

const send = (name: string, method: string, path: string, body?: object) =>
  fetch(`${url}/api/v1${path}`, {
    method: method.toUpperCase(),
    headers: { authorization: `Bearer ${tokenOf(name)}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });

describe.each(Object.keys(PEOPLE))('a token of %s', (person) => {
  it.each(API_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', async (_what, route) => {
    for (const subject of route.name in OF_ALL ? (['all'] as const) : SUBJECTS) {
      const request = requestTo(route, subject);
      if (!request) continue;
      const [before, logged, noted] = [told.length, log.lines.length, refused.length];
      const answer = await send(person, route.method, request.path, request.body);
      const allowed = isAllowed(person, route, subject);
      const what = `${person}, ${route.name}, ${subject}`;
      expect(answer.status === 403, what).toBe(!allowed);
      if (allowed) continue;
      expect(told.length, `${what}: nothing is done`).toBe(before);
      expect(log.lines.slice(logged).map(({ fields }) => fields)).toEqual([
        expect.objectContaining({ event: 'ebb.request_forbidden', who: person }),
      ]);
      expect(refused.slice(noted), `${what}: it leaves a line in the audit`).toMatchObject([
        [{ what: `${route.method.toUpperCase()} /api/v1${request.path}` }, { who: person, verified: true }],
      ]);
    }
  });
});

describe('a preview of a restore', () => {
  it.each(Object.keys(PEOPLE))('is a read, which a token of %s may do', async (person) => {
    for (const subject of SUBJECTS) {
      const [before, noted] = [told.length, refused.length];
      const answer = await send(person, 'post', '/restore', { computes: computes[subject], preview: true });
      expect([answer.status, told.slice(before), refused.length], subject).toEqual([409, ['restore'], noted]);
    }
  });

  it.each([{ preview: false }, { preview: 'true' }, { preview: [true] }, { preview: 1 }])('is not %j', async (body) => {
    const before = told.length;
    const answers = ['reader', 'web'].map((name) => send(name, 'post', '/restore', { computes: 'all', ...body }));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([403, 403]);
    expect(told.length).toBe(before);
  });
});

describe('a token of one team', () => {
  it('is told what it lacks, and the log has who tried what', async () => {
    const answer = await send('web', 'post', '/holds', {
      compute: 'ep-api',
      reason: 'x',
      for_seconds: 60,
      freeze: true,
    });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toEqual({
      code: 'forbidden',
      message: 'web may do this only in the scope of web, and ep-api is not in it',
    });
    expect(log.lines.at(-1)?.message).toBe(
      'POST /api/v1/holds was refused: web may do this only in the scope of web, and ep-api is not in it',
    );
  });

  it('is not told that a compute is outside of its scope while the daemon does not know that', async () => {
    const body = { compute: 'ep-unread', reason: 'x', for_seconds: 60, freeze: true };
    const answer = await send('web', 'post', '/holds', body);
    expect(await answer.json()).toMatchObject({
      message: expect.stringMatching(/^web may do this only .*, and whether ep-unread is in it is not known yet: /),
    });
  });

  it('leaves the same lines where only the operator knows what is outside of its scope', async () => {
    const body = { reason: OUTSIDE, for_seconds: 60, select: { projects: ['shop-*'] } };
    expect((await send('webfreezer', 'post', '/freezes', body)).status).toBe(403);
    expect(log.lines.at(-1)?.message).toBe('POST /api/v1/freezes was refused: not in the scope');
    expect(refused.at(-1)).toMatchObject([{ what: 'POST /api/v1/freezes' }, { who: 'webfreezer', verified: true }]);
  });

  it.each([{}, { compute: 7 }, { compute: ['ep-web'] }, { compute: 'ep-unknown' }])(
    'cannot get past its scope with %j',
    async (body) => {
      const before = told.length;
      const answer = await send('web', 'post', '/holds', { reason: 'x', for_seconds: 60, freeze: true, ...body });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(told.length).toBe(before);
    },
  );

  it.each([
    ['/computes/ep-web/holds', false],
    ['/computes/ep-api/holds', true],
    ['/holds/h-aaa/release', false],
    ['/holds/h-bbb/release', true],
  ])('in the form of a page, %s', async (path, isRefused) => {
    const before = told.filter((name) => name === 'hold' || name === 'release').length;
    const fields = path.endsWith('release') ? {} : { reason: 'x', for_seconds: '60', freeze: 'on' };
    await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { origin: url, authorization: `Basic ${btoa(`x:${tokenOf('web')}`)}` },
      body: new URLSearchParams({ ...fields, token: tokenOf('web') }),
    });
    expect(told.filter((name) => name === 'hold' || name === 'release').length - before).toBe(isRefused ? 0 : 1);
  });
});

describe('roles of a token file', () => {
  it.each(['', 'admin', 'operate web api', 'read web', 'operate,', 'Operate'])('are refused: [%s]', (text) => {
    expect(parseGrants(text)).toBeUndefined();
  });
});
