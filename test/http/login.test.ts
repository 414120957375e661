/** Tokens of a real OpenID provider, against routes, roles and audit as a daemon has them. */
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withLogin } from '../../src/adapters/http/login.ts';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { createRefusals } from '../../src/app/operator/audit.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { DaemonView, OperatorParts } from '../../src/app/operator/parts.ts';
import { teamsOf } from '../../src/app/operator/teams-of.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import { parseGrants } from '../../src/ports/roles.ts';
import { aCompute, aSchedule, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import type { SteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { startLoginProvider, type TestLoginProvider } from './login-provider.ts';

const TEAMS = [
  { name: 'team-web', projects: ['web-*'] },
  { name: 'team-api', projects: ['api-*'] },
];
const computes = ['web', 'api'].map((team) =>
  aCompute({ projectId: `p-${team}`, projectName: `${team}-shop`, computeId: `ep-${team}` }),
);
const PEOPLE = {
  ann: ['web'],
  bob: ['api', 'everyone'],
  root: ['admins'],
  carl: ['everyone'],
  eve: ['guests'],
  nobody: [],
};
const GROUPS = { web: 'operate team-web', api: 'operate team-api', admins: 'operate, freeze', everyone: 'read' };

/** The parts of a daemon that knows two computes. */
function daemonParts(log: ReturnType<typeof memoryLog>) {
  const evaluated = (compute: Compute) => ({ compute, decision: {}, record: {} });
  const latestEvaluation = (id: string) => {
    const compute = computes.find(({ computeId }) => computeId === id);
    return compute && evaluated(compute);
  };
  const fleet = {
    latestEvaluation,
    evaluatedComputes: () => computes.map(evaluated),
    cachedProject: () => undefined,
    projectIds: () => [],
  };
  const policies = compiled({ ...aSchedule(), owner: 'shop' });
  const daemon = {
    fleet,
    teams: () => TEAMS,
    owners: () => [],
    staged: () => [],
    policies: () => policies,
    revision: () => 'commit-1',
  };
  return {
    ...{ log, store: createMemoryStore({ now: () => Date.now() } as SteppedClock), holder: 'test' },
    ...REAL,
    ...{ now: async () => Date.now(), requestReconciles: async () => {} },
    daemon: daemon as unknown as DaemonView,
  } satisfies OperatorParts;
}

describe('tokens of a login provider', () => {
  const undo: (() => Promise<unknown>)[] = [];
  const log = memoryLog();
  const parts = daemonParts(log);
  let provider: TestLoginProvider;
  let url = '';
  let aheadMs = 0;

  beforeAll(async () => {
    provider = await startLoginProvider(PEOPLE);
    undo.push(() => provider.close());
    const groups = new Map(Object.entries(GROUPS).map(([group, roles]) => [group, parseGrants(roles) ?? []]));
    const { issuer, jwksUrl } = provider;
    const known = { issuer, jwksUrl, audience: 'urn:ebb', nameClaim: 'sub', groupsClaim: 'groups', groups };
    const now = () => new Date(Date.now() + aheadMs);
    const tokens = withLogin(createTokens({ log, local: 'known-to-this-machine' }), { provider: known, log, now });
    const operator = {
      ...createOperator(parts),
      staleness: () => undefined,
      readiness: async () => ({ ready: true, checks: [] }),
      teamsOf: (kind, target) => teamsOf(parts, kind, target),
      refused: createRefusals(parts),
      findCompute: async (id: string) => ({ ok: true, value: { project_id: 'p', compute_id: id } }),
      compute: async () => ({ ok: false, error: { code: 'not_found', message: 'no page here' } }),
    } as Partial<DaemonOperator> as DaemonOperator;
    const server = await startHttpServer({ listen: { host: '127.0.0.1', port: 0 }, log, tokens, operator });
    if (!server.ok) throw new Error(server.error);
    url = server.url;
    undo.push(() => server.close());
  });
  afterAll(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  const ask = async (token: string, method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': 'asked-1' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json().catch(() => ({}))) as Record<string, unknown> };
  };
  const hold = (token: string, compute: string) =>
    ask(token, 'POST', '/api/v1/holds', {
      compute,
      owner: 'somebody-else',
      reason: 'import',
      for_seconds: 60,
      freeze: true,
    });
  const lines = async () =>
    (await parts.store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 99 })).entries;

  it('hold what is in the scope of their team, in the name of their person, whatever owner is given', async () => {
    const held = await hold(await provider.tokenFor('ann'), 'ep-web');
    expect(held).toMatchObject({ status: 201, body: { owner: 'ann' } });
    expect(await lines()).toMatchObject([
      { kind: 'hold', computeId: 'ep-web', who: 'ann', verified: true, requestId: 'asked-1', owner: 'shop' },
    ]);
  });

  it("of one team are refused on another's compute, with 403, and leave a line in the audit", async () => {
    const before = await lines();
    expect(await hold(await provider.tokenFor('bob'), 'ep-web')).toMatchObject({
      status: 403,
      body: { code: 'forbidden', message: 'bob may do this only in the scope of team-api, and ep-web is not in it' },
    });
    const [line, ...others] = await lines();
    expect(others).toEqual(before);
    expect(line).toMatchObject({
      ...{
        kind: 'refused',
        computeId: 'ep-web',
        who: 'bob',
        verified: true,
        requestId: 'asked-1',
        revision: 'commit-1',
      },
      reasons: [{ message: expect.stringMatching(/^POST \/api\/v1\/holds: bob may do this only in the scope/) }],
    });
    expect(await parts.store.holds(Date.now())).toHaveLength(1);
  });

  it.each([
    ['ann', '/api/v1/freezes', 'ann has no role "freeze"'],
    ['carl', '/api/v1/holds', 'carl has no role "operate"'],
    ['eve', '/api/v1/holds', 'eve is in no group that login of ebb.yaml gives a role'],
    ['nobody', '/api/v1/holds', 'nobody is in no group that login of ebb.yaml gives a role'],
  ])('of %s may not POST %s', async (person, path, message) => {
    const answer = await ask(await provider.tokenFor(person), 'POST', path, { compute: 'ep-web' });
    expect(answer).toMatchObject({ status: 403, body: { message } });
    expect((await lines())[0]).toMatchObject({ kind: 'refused', who: person });
  });

  it('leave a line in the audit when they retry or drop notifications', async () => {
    const waiting = { id: 'a>ops', receiver: 'ops', subject: 'fleet', atMs: 0, body: '{}' };
    await parts.store.appendOutbox([waiting]);
    const body = { action: 'drop', target: 'a>ops' };
    expect(await ask(await provider.tokenFor('root'), 'POST', '/api/v1/notifications', body)).toMatchObject({
      ...{ status: 200, body: { ids: ['a>ops'] } },
    });
    const line = { kind: 'notification', who: 'root', verified: true, requestId: 'asked-1' };
    expect((await lines())[0]).toMatchObject({ ...line, reasons: [{ message: 'dropped: a notification, a>ops' }] });
  });

  it('allow reading to all that have a role, and to nobody else', async () => {
    for (const person of ['ann', 'carl', 'root'])
      expect((await ask(await provider.tokenFor(person), 'GET', '/readyz')).status, person).toBe(200);
    for (const person of ['eve', 'nobody'])
      expect((await ask(await provider.tokenFor(person), 'GET', '/readyz')).status, person).toBe(403);
    expect((await fetch(`${url}/readyz`)).status).toBe(401);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it('that a login proxy adds count in the forms of the page, which come from the same host only', async () => {
    const send = async (person: string, origin: string, compute = 'ep-web') => {
      const answer = await fetch(`${url}/computes/${compute}/holds`, {
        ...{ method: 'POST', redirect: 'manual' },
        headers: { origin, authorization: `Bearer ${await provider.tokenFor(person)}` },
        body: new URLSearchParams({ reason: 'by the page', for_seconds: '60', freeze: 'on', token: '' }),
      });
      return answer.status;
    };
    expect(await send('ann', url)).toBe(303);
    expect((await lines())[0]).toMatchObject({ kind: 'hold', who: 'ann', verified: true });
    expect(await send('ann', 'https://evil.example')).toBe(403);
    expect(await send('bob', url)).not.toBe(303);
    expect((await lines())[0]).toMatchObject({ kind: 'refused', who: 'bob', computeId: 'ep-web' });
  });

  /** A token that the provider has not made. */
  const forged = (alg: string, key: Parameters<SignJWT['sign']>[0], kid = 'key-1') =>
    new SignJWT({ groups: ['admins'] })
      .setProtectedHeader({ alg, kid })
      .setIssuer(provider.issuer)
      .setAudience('urn:ebb')
      .setSubject('root')
      .setExpirationTime('1h')
      .sign(key);

  it('are refused with a wrong audience, issuer or key, and after their time', async () => {
    const others = await Promise.all([
      startLoginProvider(PEOPLE),
      startLoginProvider(PEOPLE, { issuer: provider.issuer }),
      startLoginProvider(PEOPLE, { issuer: provider.issuer, kid: 'key-2' }),
    ]);
    undo.push(...others.map((other) => () => other.close()));
    const [otherIssuer, sameKeyId, otherKeyId] = await Promise.all(others.map((other) => other.tokenFor('root')));
    const jwks = (await (await fetch(provider.jwksUrl)).json()) as { keys: JsonWebKey[] };
    const pem = createPublicKey({ key: jwks.keys[0] ?? {}, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const good = await provider.tokenFor('root');
    const [head = '', claims = '', signature = ''] = good.split('.');
    const none = `${btoa('{"alg":"none"}').replaceAll('=', '')}.${claims}.x`;
    const wrong = {
      audience: await provider.tokenFor('root', 'urn:other'),
      issuer: otherIssuer,
      key: sameKeyId,
      'id of the key': otherKeyId,
      'symmetric signature by the public key': await forged('HS256', new TextEncoder().encode(String(pem))),
      'no signature': none,
      'claims of another': `${head}.${(await provider.tokenFor('ann')).split('.')[1]}.${signature}`,
    };
    for (const [what, token = ''] of Object.entries(wrong)) {
      expect((await hold(token, 'ep-web')).status, what).toBe(401);
      expect((await ask(token, 'GET', '/readyz')).status, what).toBe(401);
    }
    expect((await hold(good, 'ep-api')).status).toBe(201);
    aheadMs = 3_600_000 + 10_000;
    expect((await hold(good, 'ep-api')).status, 'expired').toBe(401);
    aheadMs = 0;
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
    expect(JSON.stringify(log.lines)).not.toContain(signature);
  });

  it('that name no key of several are refused, and nobody can make the log say that the keys cannot be read', async () => {
    const rotating = await startLoginProvider(PEOPLE, { moreKeys: ['key-2'] });
    undo.push(() => rotating.close());
    const memory = memoryLog();
    const claims = { audience: 'urn:ebb', nameClaim: 'sub', groupsClaim: 'groups', groups: new Map() };
    const tokens = withLogin(createTokens({ log: memory, local: 'known-to-this-machine' }), {
      provider: { ...claims, issuer: rotating.issuer, jwksUrl: rotating.jwksUrl },
      log: memory,
    });
    const { privateKey } = await generateKeyPair('RS256');
    const nameless = await new SignJWT({}).setProtectedHeader({ alg: 'RS256' }).setSubject('root').sign(privateKey);
    expect(await tokens.holderOf(nameless)).toBeUndefined();
    expect(await tokens.holderOf(await rotating.tokenFor('root'))).toMatchObject({ name: 'root' });
    expect(memory.lines).toEqual([]);
  });

  it('are not accepted while the keys of the provider cannot be read, which is logged once', async () => {
    const token = await provider.tokenFor('root');
    const memory = memoryLog();
    const unreachable = { issuer: provider.issuer, audience: 'urn:ebb', nameClaim: 'sub', groupsClaim: 'groups' };
    const tokens = withLogin(createTokens({ log: memory, local: 'known-to-this-machine' }), {
      provider: { ...unreachable, groups: new Map(), jwksUrl: `${url}/no-keys-here` },
      log: memory,
    });
    expect([await tokens.holderOf(token), await tokens.holderOf(token)]).toEqual([undefined, undefined]);
    expect(memory.lines.map(({ level, fields }) => [level, Reflect.get(fields, 'event')])).toEqual([
      ['error', 'ebb.login_failed'],
    ]);
    expect(await tokens.holderOf('known-to-this-machine')).toBeDefined();
  });
});
