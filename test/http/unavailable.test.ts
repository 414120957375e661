import { afterEach, describe, expect, it } from 'vitest';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type DaemonOperatorDeps, daemonOperator } from '../../src/app/operator/daemon-operator.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { EngineUnavailableError } from '../../src/ports/engine.ts';
import type { Store } from '../../src/ports/store.ts';
import { aSchedule, currentRules, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { answerProblems } from './api-schema.ts';

const TOKEN = 'a-token-of-some-length';
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const START_MS = Date.parse('2026-11-21T10:00:00Z');
const HOLD: Hold = {
  ...{ id: 'h-1', projectId: 'p-one', computeId: 'ep-one', owner: 'ann', reason: 'import', freeze: true },
  ...{ createdAtMs: START_MS, expiresAtMs: START_MS + 3_600_000 },
};

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A daemon's pages, on a store that can be taken away. */
async function pages() {
  const now = { ms: START_MS };
  const down: { error: Error | undefined } = { error: undefined };
  const known: Partial<Record<keyof Store, unknown>> = {
    overrides: { holds: { entries: [HOLD], endedIds: new Set() }, freezes: { entries: [], endedIds: new Set() } },
    ...{
      holds: [HOLD],
      freezes: [],
      history: [],
      projectIds: ['p-one'],
      records: new Map(),
      samples: [],
      usage: new Map(),
      document: undefined,
      outboxCounts: { receivers: [], lost: 0 },
    },
  };
  const store = new Proxy({} as Store, {
    ownKeys: () => Object.keys(known),
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    get: (_, name: keyof Store) => async () => {
      if (down.error) throw down.error;
      return known[name];
    },
  });
  const log = memoryLog();
  const telemetry = { log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const clock = { now: () => now.ms, monotonicMs: () => now.ms } as DaemonOperatorDeps['clock'];
  const deps = {
    ...{ store, clock, newId: REAL.newId, mode: 'enforce', rules: currentRules(aSchedule()) },
    ...{ telemetry, fleet: createFleet({ clock }), overrides: createOverrides({ telemetry }) },
    sets: createPolicySets({ stages: false, accepted: undefined }),
    storeClock: { excessiveOffsetMs: async () => undefined, lastExcessiveOffsetMs: () => undefined },
    readiness: async () => ({ ready: false, checks: [] }),
    api: { accountStatus: () => [] },
    outages: { refused: () => [] },
    metricsText: async () => ({ contentType: 'text/plain', body: '' }),
  } as unknown as DaemonOperatorDeps;
  const operator = daemonOperator(deps);
  const listen = { host: '127.0.0.1', port: 0 };
  const server = await startHttpServer({ listen, log, operator, tokens: createTokens({ log, local: TOKEN }) });
  if (!server.ok) throw new Error(server.error);
  cleanups.push(server.close);
  const ask = (path: string, init = {}) => fetch(`${server.url}${path}`, { headers: HEADERS, ...init });
  const away = new EngineUnavailableError('Redis is not reachable', { cause: new Error('ECONNREFUSED') });
  return { now, down, ask, log, away, deps };
}

const READS = ['status', 'computes', 'decisions', 'holds', 'freezes', 'fleet'];

describe('while the store is away', () => {
  it.each(READS)('GET /api/v1/%s gives what was last read, marked with its age', async (path) => {
    const { now, down, ask, away } = await pages();
    const before = (await (await ask(`/api/v1/${path}`)).json()) as { decisions?: unknown };
    expect(before).not.toHaveProperty('stale');
    down.error = away;
    now.ms += 90_000;
    const answer = await ask(`/api/v1/${path}`);
    const body = (await answer.json()) as { decisions?: unknown };
    expect(answerProblems('GET', path, { status: answer.status, body })).toEqual([]);
    expect([answer.status, answer.headers.get('age')]).toEqual([200, '90']);
    expect(body).toMatchObject({ stale: { since: '2026-11-21T10:00:00Z', seconds: 90 } });
    expect(body.decisions).toEqual(before.decisions);
    down.error = undefined;
    expect(await (await ask(`/api/v1/${path}`)).json()).not.toHaveProperty('stale');
  });

  it('holds are those that the daemon decides by', async () => {
    const { down, ask, away, deps } = await pages();
    await deps.overrides.refresh(deps.store, START_MS);
    down.error = away;
    expect(await (await ask('/api/v1/holds')).json()).toMatchObject({ holds: [{ id: 'h-1' }], stale: { seconds: 0 } });
  });

  it('the page of the fleet is shown, and says so', async () => {
    const { now, down, ask, away } = await pages();
    expect(await (await ask('/')).text()).not.toContain('The store is unavailable');
    down.error = away;
    now.ms += 90_000;
    const page = await ask('/');
    const text = await page.text();
    expect([page.status, text]).toEqual([200, expect.stringMatching(/The store is unavailable\..*90.{0,10} s/s)]);
  });

  it.each([
    ['POST', 'holds', { compute: 'p-one/ep-one', owner: 'ann', reason: 'x', for_seconds: 60, freeze: true }],
    ['POST', 'freezes', { select: 'all', owner: 'ann', reason: 'x', for_seconds: 60 }],
    ['POST', 'release', { target: 'ep-one', owner: 'ann' }],
    ['POST', 'restore', { computes: 'all', owner: 'ann' }],
    ['DELETE', 'freezes?owner=ann', undefined],
    ['GET', 'records', undefined],
  ])('%s /api/v1/%s is answered with 503, and not a word in the log', async (method, path, body) => {
    const { down, ask, away, log } = await pages();
    await ask('/api/v1/freezes');
    down.error = away;
    const answer = await ask(`/api/v1/${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    expect([answer.status, await answer.json()]).toEqual([
      503,
      {
        code: 'unavailable',
        message: expect.stringMatching(/^Redis is not reachable: nothing was changed, try again/),
      },
    ]);
    expect(log.lines).toEqual([]);
  });

  it('what fails for another reason is still an error of ebb, and logged', async () => {
    const { down, ask, log } = await pages();
    down.error = new TypeError('a bug');
    expect([(await ask('/api/v1/status')).status, log.lines.length]).toEqual([500, 1]);
  });
});
