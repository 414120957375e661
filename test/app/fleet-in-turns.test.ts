import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { listComputes } from '../../src/app/operator/create-operator.ts';
import { type GaugeDeps, updateGauges } from '../../src/app/operator/fleet-metrics.ts';
import { fleetPage } from '../../src/app/operator/fleet-page.ts';
import { setFreeze } from '../../src/app/operator/freezes.ts';
import { status } from '../../src/app/operator/status.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import { aCompute, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';
import { bounded } from '../support/selectors.ts';

const COMPUTES = 1000;
const NOON = at('2026-03-02T12:00:00Z');
const policies = compiled(aSchedule());

/** How often a freeze was compared with a compute: freezes of people select by the region, and nothing else asks for it. */
let compared = 0;
const fleet = Array.from({ length: COMPUTES }, (_, index) => {
  const compute = aCompute({ computeId: `ep-${index}` });
  const record = aRecord({ baseline: compute });
  const situation = { policies, nowMs: NOON, mode: 'observe', projectBusy: false } as const;
  const evaluated = evaluate({ ...situation, compute, record });
  const counting = Object.defineProperty({ ...compute }, 'regionId', {
    get: () => {
      compared += 1;
      return 'eu';
    },
  });
  return { ...evaluated, compute: counting, record };
});
const common = { owner: 'ann', reason: 'release', createdAtMs: NOON, expiresAtMs: NOON + 60_000, allowRaise: false };
const select = bounded({ regions: ['us-*'] });
const freeze: Freeze = { id: 'f-1', select, ...common };
const store = {
  ...memoryDocumentStore(),
  holds: async () => [],
  freezes: async () => [freeze],
  putFreeze: async () => ({ ok: true }),
  pendingWrites: async () => [],
  outboxCounts: async () => ({ receivers: [], lost: 0 }),
  projectIds: async () => [],
};
const known = {
  ...{ evaluatedComputes: () => fleet, cachedProjects: () => [], projectIds: () => [], isListed: () => true },
  latestEvaluation: () => undefined,
};
const parts = {
  ...{ ...REAL, store, now: async () => NOON, requestReconciles: async () => {} },
  daemon: {
    ...{
      fleet: known,
      mode: 'observe',
      policies: () => policies,
      owners: () => [],
      revision: () => undefined,
      facts: () => [],
      apiLimits: () => [],
      refusedProjects: () => [],
      herds: () => [],
    },
    ...{ staged: () => [], policyProblems: () => [], readiness: async () => ({ ready: true, checks: [] }) },
    week: { of: async (subjects: readonly object[]) => subjects.map(() => ({ state: 'not_yet' })) },
  },
} as unknown as Parameters<typeof fleetPage>[0];
const gauges = {
  ...{ fleet: known, mode: 'observe', clock: { ...REAL.clock, now: () => NOON }, leaderLease: { isHeld: () => true } },
  ...{ api: { accountStatus: () => [] }, queue: { counts: async () => Promise.reject(new Error('away')) }, store },
  rules: { current: { policies, costs: { owners: [] } } },
  telemetry: { log: memoryLog(), metrics: { increment() {}, observe() {}, clear() {}, set() {} } },
} as unknown as GaugeDeps;

it.each<[string, () => Promise<unknown>]>([
  ['the metrics', () => updateGauges(gauges)],
  ['a page of the fleet', () => fleetPage(parts, { q: '', page: 1 })],
  ['the list of computes', () => listComputes(parts, { limit: 1000 })],
  ['the status', () => status(parts)],
  ['the status of what a selector matches', () => status(parts, { select })],
  ['a new freeze', () => setFreeze(parts, { select, owner: 'ann', reason: 'test', forSeconds: 60, allowRaise: false })],
])('%s compares freezes with a part of the fleet at a time', async (_, ask) => {
  compared = 0;
  let most = 0;
  let isDone = false;
  const asked = ask().finally(() => {
    isDone = true;
  });
  for (let before = 0; !isDone; before = compared) {
    await nextTurn();
    most = Math.max(most, compared - before);
  }
  await asked;
  expect(compared).toBeGreaterThanOrEqual(COMPUTES);
  expect(most).toBeLessThanOrEqual(COMPUTES / 5);
});
