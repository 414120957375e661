import { describe, expect, it } from 'vitest';
import { Overview } from '../../src/adapters/http/page/overview.tsx';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import {
  type ComputeSeriesDeps,
  computeSeries,
  type GaugeDeps,
  updateGauges,
} from '../../src/app/operator/fleet-metrics.ts';
import { fleetPage } from '../../src/app/operator/fleet-page.ts';
import { summaryOfOwner } from '../../src/app/usage/cost-summary.ts';
import { filtered } from '../../src/cli/filter.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { CostsDocument } from '../../src/ports/cost-documents.ts';
import type { StatusDocument } from '../../src/ports/documents.ts';
import { emptyFleet } from '../http/empty-fleet.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
/** The settings give `shop` to another than its policy does; `lab` has a policy of nobody, `misc` has none. */
const owners = [['shop', 'team-shop']] as const;
const policies = compiled(
  aSchedule({ name: 'all', owner: 'team-platform', select: aSelector({ projects: ['shop', 'web'] }) }),
  aSchedule({ name: 'lab', select: aSelector({ projects: ['lab'] }) }),
);
const fleet = createFleet({ clock: { monotonicMs: () => 0 } as Parameters<typeof createFleet>[0]['clock'] });
for (const projectId of ['shop', 'web', 'lab', 'misc']) {
  const compute = aCompute({ projectId, projectName: projectId, computeId: `ep-${projectId}`, state: 'idle' });
  const record = aRecord({ baseline: compute });
  const situation = { policies, nowMs: NOON, mode: 'observe', projectBusy: false } as const;
  fleet.putEvaluated({ ...evaluate({ ...situation, compute, record }), compute, record });
}
const store = { holds: async () => [], freezes: async () => [] };
const parts = {
  ...{ store, now: async () => NOON },
  daemon: {
    ...{ fleet, mode: 'observe', policies: () => policies, owners: () => owners },
    week: { of: async (subjects: readonly object[]) => subjects.map(() => ({ state: 'not_yet' })) },
  },
} as unknown as Parameters<typeof fleetPage>[0];

describe('owners on the status page', () => {
  it.each([
    ['team-shop', ['ep-shop']],
    ['team-platform', ['ep-web']],
    ['unowned', ['ep-lab', 'ep-misc']],
  ])('%s has the computes that commands give it', async (owner, ids) => {
    const page = await fleetPage(parts, { q: '', page: 1, owner, sort: 'compute' });
    expect(page.computes.map((one) => [one.compute_id, one.owner])).toEqual(ids.map((id) => [id, owner]));
    expect(page.owners).toEqual(['team-platform', 'team-shop', 'unowned']);
    const ofCommand = filtered([...fleet.evaluatedComputes()], { owner }, { settings: { owners }, policies });
    expect(ofCommand.map(({ compute }) => compute.computeId).sort()).toEqual(ids);
  });

  it('are those of the totals and of the labels that alerts link by', async () => {
    const { groups } = await fleetPage(parts, { q: '', page: 1, group: 'owner' });
    expect(Object.fromEntries(groups.map(({ name, computes }) => [name, computes]))).toEqual({
      ...{ 'team-platform': 1, 'team-shop': 1, unowned: 2 },
    });
    const labels: object[] = [];
    const set = (name: string, label: object) => void (name === 'ebb_computes_pending' && labels.push(label));
    await updateGauges({
      ...{ fleet, store, mode: 'observe', clock: { now: () => NOON }, leaderLease: { isHeld: () => true } },
      ...{ api: { accountStatus: () => [] }, queue: { counts: async () => Promise.reject(new Error('away')) } },
      rules: { current: { policies, costs: { owners } } },
      telemetry: { log: memoryLog(), metrics: { increment() {}, observe() {}, clear() {}, set } },
    } as unknown as GaugeDeps);
    expect(labels).toContainEqual({ reason: 'observe', owner: 'team-shop' });
    expect(labels).toContainEqual({ reason: 'observe', owner: '' });
  });

  it('are those of the series of each compute', () => {
    const series = computeSeries({
      ...{ fleet, clock: { now: () => NOON }, leaderLease: { isHeld: () => true } },
      ...{ rules: { current: { policies, costs: { owners } } }, samples: { historyOf: () => new Map() } },
    } as unknown as ComputeSeriesDeps);
    expect(Object.fromEntries([...series].map(({ compute, owner }) => [compute.computeId, owner]))).toEqual({
      ...{ 'ep-shop': 'team-shop', 'ep-web': 'team-platform', 'ep-lab': '', 'ep-misc': '' },
    });
  });

  it('follow other rules at once', async () => {
    const moved = { ...parts, daemon: { ...parts.daemon, owners: () => [['web', 'team-new']] as const } };
    const page = await fleetPage(moved, { q: '', page: 1, owner: 'team-new' });
    expect(page.computes.map((one) => one.compute_id)).toEqual(['ep-web']);
    expect((await fleetPage(parts, { q: '', page: 1, owner: 'team-shop' })).matched).toBe(1);
  });

  it('have the month to themselves where one is asked for', () => {
    const one = (owner: string, usd: number) => ({
      ...{ account: 'main', owner, cu_hours: usd, usd, unknown_hours: 0, projected_usd: null },
      ...{ projected_cu_hours: null, anomaly: { day: '2026-03-01', cu_hours: 9, ordinary_cu_hours: 1 } },
    });
    const costs: CostsDocument = {
      ...{ at: '', from: '', to: '', known_until: '2026-03-02T12:00:00Z', would_have_saved: null },
      owners: [one('team-shop', 1273.34), one('team-web', 20)],
      total: { cu_hours: 1, usd: 1293.34, unknown_hours: 0, projected_usd: null },
    };
    const lists = { freezes: [], degraded: [], stopped_fights: [], computes: {}, budgets: [], waiting: [] };
    const none = { staged: null, staged_teams: [], dead_notifications: [], readiness: null };
    const status = {
      ...lists,
      ...none,
      mode: 'observe',
      set_hash: null,
      revision: null,
      policies: null,
      costs,
    } as unknown as StatusDocument;
    const fleet = emptyFleet('2026-03-02T12:00:00Z');
    const shown = (of: CostsDocument, owner?: string) =>
      String(Overview({ status: { ...status, costs: of }, fleet, costs: null, query: { q: '', page: 1, owner } }));
    const text = shown(summaryOfOwner(costs, 'team-shop'), 'team-shop');
    expect(text).toMatch(/\$1,273<.strong> this month of team-shop/);
    expect(text).not.toMatch(/1,293|team-web/);
    expect(shown(costs)).toMatch(/team-web used 9 CU-hours.*\$1,293<.strong> this month/s);
  });
});
