/** What is owed after the store failed in the middle of something: the audit of a write, the slot of a restart, the end of a hold. */
import { expect, it } from 'vitest';
import { applyAction } from '../../src/app/apply/apply.ts';
import { evaluateCompute } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type DaemonOperatorDeps, daemonOperator } from '../../src/app/operator/daemon-operator.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import { currentRecords, knownRecord } from '../../src/app/reconcile/records.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { EngineUnavailableError } from '../../src/ports/engine.ts';
import type { Store } from '../../src/ports/store.ts';
import { aCompute, aRecord, aSchedule, at, currentRules, FREE_SLOTS, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const MINUTE_MS = 60_000;
const NOON = at('2026-03-02T12:00:00Z');
const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
/** Dependencies for reading a project's records at noon, except the store. */
const NOON_DEPS = {
  mode: 'enforce',
  generation: () => 1,
  clock: { now: () => NOON },
  overrides: { holds: [] },
  telemetry,
  reportEvent() {},
};

const AWAY = new EngineUnavailableError('the store is away', { cause: new Error('gone') });

it.each([
  ['because the store is away', () => Promise.reject(AWAY)],
  ['because the lease was lost meanwhile', async () => false],
])('a write whose result could not be stored %s is still pending, as in the store', async (_, putRecord) => {
  const compute = aCompute();
  let nowMs = NOON;
  // The answer comes later than the request.
  const clock = { ...REAL.clock, now: () => (nowMs += 1) };
  const fleet = createFleet({ clock });
  const record = aRecord();
  const wanted = { minCu: 8, maxCu: 8 };
  const stored: ComputeRecord[] = [];
  const rules = currentRules(aSchedule({ windows: [], otherwise: { size: wanted } }));
  const deps = {
    ...{ clock, newId: REAL.newId, fleet, telemetry, rules, mode: 'enforce', reportEvent() {} },
    ...{ overrides: { holds: [], freezes: [] }, samples: { historyOf: () => [] }, outages: { projectAnswers() {} } },
    slots: FREE_SLOTS,
    mayWrite: async () => ({ ok: true }),
    api: { updateCompute: async () => ({ ok: true, value: { operations: [], settings: { ...compute, ...wanted } } }) },
    store: {
      async putIntent(_project: string, _compute: string, intended: ComputeRecord) {
        stored.push(intended);
        return 'stored';
      },
      putRecord,
      appendHistory: async () => {},
    },
  };
  const evaluated = evaluateCompute(deps as never, { compute, record, projectBusy: false });
  const lease = { name: compute.projectId, holder: 'd', token: 1 };
  const decidedBy = { overrides: '', generation: 1 };
  await applyAction(deps as never, lease, evaluated, { decidedBy }).catch((error) =>
    expect(error).toMatchObject({ message: expect.stringContaining('storing what became of it') }),
  );
  const [intended = record] = stored;
  const knownBeside = (inStore: ComputeRecord) =>
    knownRecord({ fleet, clock }, new Map([[compute.computeId, inStore]]), compute.computeId);
  expect(knownBeside(intended)).toMatchObject({ intent: { fields: wanted } });
  // Another daemon has confirmed it since.
  const { intent: _confirmed, ...confirmed } = intended;
  expect(knownBeside(confirmed)).toBe(confirmed);
});

it('the slot of a restart that was never made is given back', async () => {
  const compute = aCompute();
  const intent = { fields: { minCu: 8, maxCu: 8 }, atMs: NOON - 5 * MINUTE_MS, policy: 'office', requestId: 'r-1' };
  const stored = aRecord({ intent, lastSentAtMs: intent.atMs });
  const released: string[][] = [];
  const deps = {
    ...NOON_DEPS,
    ...{ rules: currentRules(aSchedule()), slots: { release: async (...slot: string[]) => void released.push(slot) } },
    fleet: { ownEvaluation: () => undefined, cachedProject: () => undefined, latestEvaluation: () => undefined },
    store: { brokenRecords: async () => new Map(), putRecord: async () => true },
  };
  const cached = { project: { projectId: compute.projectId }, computes: [compute], unreadable: [], readAtMs: NOON };
  const lease = { name: compute.projectId, holder: 'd', token: 1 };
  const known = new Map([[compute.computeId, stored]]);
  const records = await currentRecords(deps as never, lease, cached as never, known, new AbortController().signal);
  expect(records.get(compute.computeId)).not.toHaveProperty('intent');
  expect(released).toEqual([[compute.computeId, 'office']]);
});

it('operations of a pending write are followed once it is confirmed, not again and again while the reading may be old', async () => {
  const [fields, before] = [
    { minCu: 8, maxCu: 8 },
    { minCu: 1, maxCu: 2 },
  ];
  // Set back within a minute of the change: a reading may be from before both.
  const atMs = NOON - 20_000;
  const intent = { fields, before, atMs, policy: 'office', requestId: 'r-1' };
  const lastChanges = { size: { before: fields, to: before, answeredAtMs: NOON - 30_000 } };
  const stored = aRecord({ intent, lastSentAtMs: atMs, lastApplied: before, lastChanges });
  const operation = { operationId: 'op-1', computeId: 'ep-one', action: 'apply_config', createdAtMs: atMs };
  const puts: unknown[] = [];
  const deps = {
    ...NOON_DEPS,
    ...{ rules: currentRules(aSchedule()), slots: FREE_SLOTS, outages: { projectAnswers() {} } },
    fleet: { ownEvaluation: () => undefined, cachedProject: () => undefined, latestEvaluation: () => undefined },
    store: { brokenRecords: async () => new Map(), putRecord: async (...put: unknown[]) => puts.push(put) > 0 },
    api: {
      async *listOperations() {
        yield { ok: true, value: [operation] };
      },
    },
  };
  const lease = { name: 'prj-one', holder: 'd', token: 1 };
  const read = async (readAtMs: number) => {
    const compute = aCompute(fields);
    const cached = { project: { projectId: compute.projectId }, computes: [compute], unreadable: [], readAtMs };
    const known = new Map([[compute.computeId, stored]]);
    const records = await currentRecords(deps as never, lease, cached as never, known, new AbortController().signal);
    return records.get(compute.computeId);
  };
  expect(await read(NOON)).toMatchObject({ intent, openOperations: [] });
  const confirmed = await read(NOON + MINUTE_MS);
  expect(confirmed).not.toHaveProperty('intent');
  expect(confirmed?.openOperations).toMatchObject([{ operationId: 'op-1' }]);
});

it('a hold and a freeze that the store has lost are ended by who ends them', async () => {
  const clock = { now: () => NOON, monotonicMs: () => NOON } as DaemonOperatorDeps['clock'];
  const empty = () => createMemoryStore(clock as never);
  let current = empty();
  const delegate =
    (name: string) =>
    (...args: never[]) =>
      (current as never as Record<string, (...own: never[]) => unknown>)[name]?.(...args);
  const store = Object.fromEntries(Object.keys(current).map((name) => [name, delegate(name)])) as never as Store;
  const overrides = createOverrides({ telemetry });
  const { holds, freezes, release, unfreeze } = daemonOperator({
    ...{ store, clock, newId: REAL.newId, mode: 'enforce', rules: currentRules(aSchedule()), telemetry, overrides },
    ...{ fleet: createFleet({ clock }), sets: createPolicySets({ stages: false, accepted: undefined }) },
    storeClock: { excessiveOffsetMs: async () => undefined, lastExcessiveOffsetMs: () => undefined },
    queue: { addAll: async () => {}, add: async () => {} },
  } as unknown as DaemonOperatorDeps);
  const common = { owner: 'ann', reason: 'import', createdAtMs: NOON - 1, expiresAtMs: NOON + MINUTE_MS };
  await current.putHold({ ...common, id: 'h-1', projectId: 'p', computeId: 'ep-one', freeze: true });
  await current.putFreeze({ ...common, id: 'f-1', select: 'all', allowRaise: false });
  await overrides.refresh(store, NOON);
  current = empty();
  expect(await release({ target: 'h-1', owner: 'ann' })).toMatchObject({ ok: true, value: { holds: ['h-1'] } });
  expect(await unfreeze({ id: 'f-1', owner: 'ann' })).toMatchObject({ ok: true, value: { freezes: ['f-1'] } });
  await overrides.refresh(store, NOON);
  const query = { limit: 10, after: undefined };
  expect([await holds(query), await freezes(query)]).toMatchObject([
    { value: { items: [] } },
    { value: { items: [] } },
  ]);
});

it('a daemon whose clock is ahead ends a hold that has not expired', async () => {
  const AHEAD_MS = 400 * 86_400_000;
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const clock = { now: () => NOON + AHEAD_MS, monotonicMs: () => NOON } as DaemonOperatorDeps['clock'];
  const store = createMemoryStore({ now: () => NOON, monotonicMs: () => NOON } as never);
  await store.putHold({
    ...{ id: 'h-1', projectId: 'p', computeId: 'ep-one', freeze: true, owner: 'ann', reason: 'import' },
    ...{ createdAtMs: NOON - 1, expiresAtMs: NOON + MINUTE_MS },
  });
  const { release } = daemonOperator({
    ...{ store, clock, newId: REAL.newId, mode: 'enforce', rules: currentRules(), telemetry },
    ...{ fleet: createFleet({ clock }), sets: createPolicySets({ stages: false, accepted: undefined }) },
    overrides: { refresh: async () => {} },
    storeClock: { excessiveOffsetMs: async () => AHEAD_MS, lastExcessiveOffsetMs: () => AHEAD_MS },
    queue: { addAll: async () => {}, add: async () => {} },
  } as unknown as DaemonOperatorDeps);
  expect(await release({ target: 'h-1', owner: 'ann' })).toMatchObject({ ok: true, value: { holds: ['h-1'] } });
  expect(await store.holds(NOON)).toEqual([]);
});
