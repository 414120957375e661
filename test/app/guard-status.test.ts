/** The status shows what guards say, hold back, watch and keep; trials list what was taken back. */
import { expect, it } from 'vitest';
import { ANSWERS, WATCHES } from '../../src/app/guards/stored-states.ts';
import { guardStatus } from '../../src/app/operator/guard-status.ts';
import { undosBetween } from '../../src/app/situation/stored-source.ts';
import { describeStatus } from '../../src/cli/status.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { guardKey } from '../../src/domain/guards/state.ts';
import { termsDigest } from '../../src/domain/policy/policy-set.ts';
import { aCompute, aGuard, aRecord, aSchedule, at, compiled, NO_COSTS } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const NOW_MS = at('2026-03-02T20:00:00Z');
const LARGE = { minCu: 4, maxCu: 8 };
const guard = aGuard({ remedy: 'undo_with_restart' });
const schedule = aSchedule({ disruption: { lower: { when: 'any', atDeadline: 'apply' } } });

async function statusNow(nowMs = NOW_MS) {
  const policies = compiled(schedule, guard, aGuard({ name: 'observing', mode: 'observe' }));
  const floor = { guard: 'latency', sinceMs: NOW_MS - 3_600_000, fields: LARGE, lowered: { minCu: 0.25, maxCu: 1 } };
  const kept = aRecord({ floors: { size: { ...floor, policy: schedule.name, terms: termsDigest(schedule) } } });
  const key = guardKey(guard);
  const verdict = { state: 'bad', value: 0.5, limit: 0.4, message: '0.5, bad above 0.4' } as const;
  const fleet = planFleet({
    ...{ policies, mode: 'enforce', profiles: new Map(), nowMs: NOW_MS },
    ...{ disruption: undefined, manualChanges: undefined },
    computes: [
      aCompute({ computeId: 'ep-held', ...LARGE }),
      aCompute({ computeId: 'ep-kept', ...LARGE, suspendTimeoutSeconds: 300 }),
    ],
    records: new Map([
      ['ep-held', aRecord({ lastApplied: {} })],
      ['ep-kept', kept],
    ]),
    guardStates: new Map([['ep-held', [{ guard: 'latency', key, atMs: NOW_MS, verdict }]]]),
  });
  const store = { ...memoryDocumentStore(), usage: async () => new Map(), usageUnits: async () => [] };
  await ANSWERS.keep(store, { latency: { key, atMs: NOW_MS, verdicts: { 'ep-held': verdict } } });
  const watch = { loweredAtMs: NOW_MS - 600_000, sampledMs: 240_000, blindMs: 0 };
  const memory = { computes: { 'ep-kept': { lastMs: NOW_MS, watch } }, harms: [] };
  await WATCHES.put(store, 'latency', { terms: '', memory });
  const daemon = {
    fleet: { evaluatedComputes: () => fleet.computes, cachedProject: () => undefined },
    policies: () => policies,
    costs: () => NO_COSTS,
  };
  return guardStatus(store as never, daemon as never, nowMs);
}

it('tells of each guard, of what it watches, and of floors', async () => {
  const status = await statusNow();
  expect(status.guards).toEqual([
    {
      ...{ guard: 'latency', asked_at: '2026-03-02T20:00:00Z', healthy: 0, bad: 1, unknown: 0 },
      ...{ watched: 1, held_back: 1 },
    },
  ]);
  expect(status.guard_watches).toMatchObject([{ compute_id: 'ep-kept', guard: 'latency', sampled_seconds: 240 }]);
  expect(status.guard_floors).toMatchObject([{ compute_id: 'ep-kept', cost_month: null }]);
  const cost = { cu_hours: { low: 8, mid: 12, high: 20 }, usd: { low: 1.28, mid: 1.92, high: 3.2 } };
  const shown = {
    ...status,
    guard_floors: status.guard_floors?.map((one) => ({ ...one, cost_month: cost })),
    ...{ holds: [], freezes: [], degraded: [], stopped_fights: [], staged: null, waiting: [], computes: {} },
    ...{ source: 'daemon', mode: 'enforce', set_hash: null, revision: null, policies: [], readiness: null },
  };
  const lines = describeStatus(shown as never);
  expect(lines).toContain(
    'guard latency: 0 healthy, 1 bad, 0 unknown at 2026-03-02T20:00:00Z; watches 1, holds 1 back',
  );
  expect(lines).toContain('watched: ep-kept by latency since 2026-03-02T19:50:00Z, 4 min of 30 min sampled');
  expect(lines.find((line) => line.startsWith('taken back'))).toContain(
    'it costs $1.92 ($1.28 to $3.20), 12 (8 to 20) CU-hours, a month; ebb release ep-kept --guard',
  );
});

it('counts an old answer as unknown, as decisions do', async () => {
  const status = await statusNow(NOW_MS + 600_000);
  expect(status.guards).toMatchObject([{ asked_at: '2026-03-02T20:00:00Z', bad: 0, unknown: 1 }]);
});

it('trials list what guards took back, and not what they only told of', async () => {
  const entry = { projectId: 'p', setHash: '', policy: 'latency', from: LARGE, to: { minCu: 1, maxCu: 1 } };
  const harm = { code: 'guard_harm', message: 'bad' };
  const entries = [
    { ...entry, computeId: 'ep-two', kind: 'guard', atMs: 2, reasons: [harm, { code: 'guard_floor', message: '' }] },
    { ...entry, computeId: 'ep-told', kind: 'guard', atMs: 2, reasons: [harm] },
    { ...entry, computeId: 'ep-one', kind: 'guard', atMs: 1, reasons: [harm, { code: 'guard_floor', message: '' }] },
    { ...entry, computeId: 'ep-one', kind: 'write', atMs: 1, reasons: [] },
  ];
  const store = { audit: async () => ({ entries, next: undefined }) };
  const undos = await undosBetween(0, 10).readFromStore(store as never, 10);
  expect(undos.map(({ compute_id: id }) => id)).toEqual(['ep-one', 'ep-two']);
});
