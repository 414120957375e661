import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type HttpServer, startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type GaugeDeps, updateGauges } from '../../src/app/operator/fleet-metrics.ts';
import { matching } from '../../src/app/operator/fleet-page.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { ownersOf } from '../../src/domain/policy/owners.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { StatusDocument } from '../../src/ports/documents.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import type { FleetQuery } from '../../src/ports/status-page.ts';
import { emptyFleet } from '../http/empty-fleet.ts';
import { aCompute, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');

interface AlertTest {
  tests: { alert_rule_test: { exp_alerts: { exp_labels: object; exp_annotations: { status_url: string } }[] }[] }[];
}

/** The links of alerts as promtool renders them (alerts.test.ts), with the labels of their alerts. */
const LINKS = ['alerts.test.yml', 'alerts-of-hours.test.yml'].flatMap((name) => {
  const { tests } = parse(readFileSync(`test/grafana/${name}`, 'utf8')) as AlertTest;
  const alerts = tests.flatMap(({ alert_rule_test }) => alert_rule_test.flatMap(({ exp_alerts }) => exp_alerts));
  return alerts.map(({ exp_labels, exp_annotations: { status_url: url } }) => ({ url, labels: { ...exp_labels } }));
});

const policies = compiled(
  aSchedule({ name: 'web', owner: 'team web', select: aSelector({ projects: ['web'] }) }),
  aSchedule({ name: 'dev', select: aSelector({ projects: ['dev'] }) }),
);

/** A compute whose change has failed three times. */
function degraded(projectId: string, computeId: string) {
  const compute = aCompute({ projectId, projectName: projectId, computeId, state: 'idle' });
  const situation = { policies, compute, nowMs: NOON, mode: 'enforce', projectBusy: false } as const;
  const { size } = evaluate({ ...situation, record: aRecord() }).decision.desired;
  const failures = { size: { count: 3, lastAtMs: NOON, desired: { ...size }, message: 'no' } };
  const record = aRecord({ failures });
  return { ...evaluate({ ...situation, record }), compute, record };
}
const fleet = createFleet({ clock: { now: () => NOON, monotonicMs: () => 0 } as Clock });
for (const one of [degraded('web', 'ep-a'), degraded('web', 'ep-b'), degraded('dev', 'ep-c')]) fleet.putEvaluated(one);

const asked: FleetQuery[] = [];
const pages: string[] = [];
let server: HttpServer;
beforeAll(async () => {
  const status: Partial<StatusDocument> = { at: '2026-03-02T12:00:00Z', source: 'daemon', mode: 'enforce' };
  const none = { computes: {}, waiting: [], holds: [], freezes: [], operations: [], stopped_fights: [], degraded: [] };
  const value = {
    ...none,
    ...status,
    set_hash: 'abc',
    revision: null,
    staged: null,
    readiness: null,
    ...{ budgets: [], staged_teams: [], policy_problems: [], unmet_headroom: [], costs: null, policies: [] },
    dead_notifications: [],
  } as StatusDocument;
  const operator: Partial<DaemonOperator> = {
    status: async () => ({ ok: true, value }),
    fleet: async (query) => {
      asked.push(query);
      return emptyFleet('2026-03-02T12:00:00Z');
    },
    decisions: async () => ({ ok: true, value: [] }),
    costs: async () => ({ ok: true, value: { costs: null } }),
    compute: async (id) => {
      pages.push(id);
      return { ok: false, error: { code: 'not_found', message: 'it is not there' } };
    },
    staleness: () => undefined,
  };
  const log = memoryLog();
  const options = { listen: { host: '127.0.0.1', port: 0 }, operator: operator as DaemonOperator, log };
  const started = await startHttpServer({ ...options, tokens: createTokens({ log, local: 'a-token-of-some-length' }) });
  if (!started.ok) throw new Error(started.error);
  server = started;
});
afterAll(() => server.close());

describe('the link of an alert', () => {
  it.each(LINKS.filter(({ url }) => url !== 'http://ebb.test/'))(
    '$url leads to the compute or the owner that the alert names',
    async ({ url, labels }) => {
      asked.splice(0);
      pages.splice(0);
      const { pathname, search, searchParams } = new URL(url);
      const answer = await fetch(`${server.url}${pathname}${search}`);
      const { compute, owner, reason } = labels as Partial<Record<'compute' | 'owner' | 'reason', string>>;
      if (compute !== undefined) {
        expect(pages).toEqual([compute]);
        return;
      }
      expect(answer.status).toBe(200);
      expect(asked).toMatchObject([
        { ...Object.fromEntries(searchParams), ...(owner && { owner }), ...(reason && { reason }) },
      ]);
    },
  );

  it('lists as many computes as the alert has counted', async () => {
    const counted = new Map<string, number>();
    const metrics = {
      ...{ increment() {}, observe() {}, clear() {} },
      set: (name: string, labels: object, value: number) =>
        void counted.set(`${name} ${JSON.stringify(labels)}`, value),
    };
    await updateGauges({
      ...{ fleet, mode: 'enforce', clock: { now: () => NOON }, leaderLease: { isHeld: () => true } },
      ...{ api: { accountStatus: () => [] }, queue: { counts: async () => Promise.reject(new Error('away')) } },
      rules: { current: { policies, costs: { owners: [] } } },
      store: { holds: async () => [], freezes: async () => [] },
      telemetry: { log: memoryLog(), metrics },
    } as unknown as GaugeDeps);
    const computes = [...fleet.evaluatedComputes()].map(({ compute }) => compute);
    const ownerOf = ownersOf({ rules: [], policies, computes });
    const all = [...fleet.evaluatedComputes()].map((evaluatedCompute) => ({
      evaluatedCompute,
      status: 'degraded' as const,
      owner: ownerOf(evaluatedCompute.compute),
    }));
    const listed = async (query: Partial<FleetQuery>) =>
      (await matching(all, { q: '', page: 1, reason: 'degraded', ...query }, REAL.clock)).length;
    expect([await listed({ owner: 'team web' }), await listed({})]).toEqual([2, 3]);
    expect(counted.get('ebb_computes_pending {"reason":"degraded","owner":"team web"}')).toBe(2);
    expect(counted.get('ebb_computes_pending {"reason":"degraded","owner":""}')).toBe(1);
  });
});
