import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Notices } from '../../src/adapters/http/page/notices.tsx';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { fleetPage } from '../../src/app/operator/fleet-page.ts';
import type { DaemonView, OperatorParts } from '../../src/app/operator/parts.ts';
import { describeStatus } from '../../src/cli/status.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import {
  aCompute,
  aHeadroom,
  aRecord,
  at,
  compiled,
  countsUntil,
  currentRules,
  NO_COSTS,
  REAL,
} from '../support/builders.ts';
import { embeddedTestEngine, type TestEngine } from '../support/engines.ts';

const NOON = at('2026-03-02T12:00:00Z');
const SAYS = 'headroom headroom (peak 9000 connections, 11250 needed, 3604 usable)';

let engine: TestEngine;
let parts: OperatorParts & { daemon: DaemonView };

beforeAll(async () => {
  engine = await embeddedTestEngine();
  const store = await createStore({ engine: engine.engine, log: engine.log });
  const fleet = createFleet({ clock: { monotonicMs: () => 0 } as Parameters<typeof createFleet>[0]['clock'] });
  const policies = compiled(aHeadroom());
  const situation = { policies, nowMs: NOON, mode: 'enforce', projectBusy: false } as const;
  for (const [computeId, count] of [
    ['ep-fine', 5],
    ['ep-short', 9000],
  ] as const) {
    const compute = aCompute({ computeId, minCu: 1, maxCu: 8 });
    const record = aRecord({ baseline: compute, lastApplied: compute });
    const connections = countsUntil(NOON, ...Array.from({ length: 31 }, () => count));
    fleet.adopt({ ...evaluate({ ...situation, compute, record, connections }), compute, record });
  }
  parts = {
    ...{ store, log: engine.log, holder: 'test' },
    ...REAL,
    now: async () => NOON,
    requestReconciles: async () => undefined,
    daemon: {
      ...{ fleet, mode: 'enforce' },
      teams: () => [],
      policies: () => policies,
      revision: () => undefined,
      facts: () => [],
      herds: () => [],
      apiLimits: () => [],
      refusedProjects: () => [],
      rules: () => currentRules().current,
      staged: () => [],
      owners: () => [],
      costs: () => NO_COSTS,
      week: { of: async (subjects) => subjects.map(() => ({ state: 'not_yet' })) } as DaemonView['week'],
      policyProblems: () => [],
      readiness: async () => ({ ready: true, checks: [] }),
    },
  };
});
afterAll(() => engine.close());

describe('a compute that lacks connections, and no size gives them', () => {
  it('comes first in `ebb status` and on the status page', async () => {
    const status = await createOperator(parts).status();
    if (!status.ok) throw new Error(status.error.message);
    expect(status.value.unmet_headroom).toEqual([{ project_id: 'p-one', compute_id: 'ep-short', message: SAYS }]);
    expect(describeStatus(status.value)[0]).toBe(`not enough connections: ep-short: ${SAYS}`);
    const notices = String(Notices({ status: { ...status.value, policy_problems: ['broken'] }, now: status.value.at }));
    expect(notices.indexOf('Not enough connections')).toBeGreaterThan(0);
    expect(notices.indexOf('Not enough connections')).toBeLessThan(notices.indexOf('broken'));
    const { computes } = await fleetPage(parts, { q: '', page: 1 });
    expect(computes.map(({ compute_id }) => compute_id)).toEqual(['ep-short', 'ep-fine']);
    const found = await fleetPage(parts, { q: 'headroom_unmet', page: 1 });
    expect(found.computes.map(({ compute_id }) => compute_id)).toEqual(['ep-short']);
  });

  it('is not known where no daemon is asked', async () => {
    const { daemon: _none, ...stored } = parts;
    const status = await createOperator(stored).status();
    expect(status).toMatchObject({ ok: true, value: { source: 'store', unmet_headroom: null } });
  });
});
