import { expect, it } from 'vitest';
import { type BoundaryReconcileDeps, createBoundaryReconciles } from '../../src/app/boundaries/boundary-reconciles.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createReconcile, reconcile } from '../../src/app/reconcile/reconcile.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import type { ListOptions } from '../../src/ports/control-api.ts';
import {
  aCompute,
  aHold,
  aRecord,
  aSchedule,
  currentRules,
  FREE_SLOTS,
  MAY_DECIDE,
  REAL,
} from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const EIGHT = Date.parse('2026-11-23T08:00:00Z');
const READ_MS = EIGHT - 120_000;
const NEVER = new AbortController().signal;

/** What is asked of the control API, in its order, to take a project over a boundary where the permit comes so long after it. */
async function asked({
  waitMs,
  listMs = 0,
  changedMs = READ_MS - 60_000,
  times = 1,
  isReconciled = false,
  isKnown = true,
}: {
  waitMs: number;
  /** How long the first list that is read while the project waits takes after the project's page. */
  listMs?: number;
  changedMs?: number;
  /** The job comes so often. */
  times?: number;
  /** Something else requests a reconcile of the project while it waits. */
  isReconciled?: boolean;
  /** False: the daemon has not read the project yet. */
  isKnown?: boolean;
}) {
  const time = { ms: EIGHT - 5_000 };
  const clock = {
    ...{ now: () => time.ms, monotonicMs: () => time.ms, realDelayMs: (ms: number) => ms - time.ms },
    ...{ wait: REAL.clock.wait, timeout: REAL.clock.timeout },
    async sleepUntil(ms: number) {
      time.ms = Math.max(time.ms, ms);
    },
  };
  const fleet = createFleet({ clock } as never);
  fleet.listShowsChanges.set('default', true);
  const compute = aCompute({ state: 'idle', minCu: 0.25, maxCu: 1 });
  const { projectId, computeId } = compute;
  const project = { account: 'default', projectId, name: 'p', regionId: 'r', updatedAtMs: READ_MS - 60_000 };
  fleet.list(project);
  const reading = { project, computes: [compute], unreadable: [], readAtMs: READ_MS, readAtMonotonicMs: READ_MS };
  if (isKnown) fleet.cache(reading);
  else time.ms = EIGHT + 1_000;
  const calls: string[] = [];
  const api = {
    async *listProjects({ onPage }: ListOptions) {
      calls.push('list');
      const page = [{ ...project, updatedAtMs: time.ms > EIGHT ? changedMs : project.updatedAtMs }];
      onPage?.(page, time.ms);
      if (time.ms > EIGHT && calls.filter((call) => call === 'list').length === 2) time.ms += listMs;
      yield { ok: true, value: page };
    },
    async permit(call: string, { priority }: { priority: string }) {
      calls.push(isKnown ? call : `${call} as ${priority}`);
      if (!isKnown) throw new Error('no permit');
      if (isReconciled) await createReconcile(deps)({ queue: 'reconcile', id: 'r', data: { projectId } }, NEVER);
      time.ms = Math.max(time.ms, EIGHT + waitMs);
      return { isUsed: () => false, take: () => ({ waitedMs: 0 }), giveBack: () => calls.push('given back') };
    },
    accountStatus: () => [{ account: 'default', key: 'valid' }],
  };
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const records = new Map([[computeId, aRecord()]]);
  const deps = {
    ...{ api, clock, fleet, telemetry, outages: createOutages(telemetry, clock), rules: currentRules(aSchedule()) },
    ...{ mode: 'enforce', overrides: { holds: [], freezes: [] }, holder: 'me' },
    ...{ samples: { historyOf: () => [] }, slots: FREE_SLOTS },
    ...MAY_DECIDE,
    // Nothing is locked, so it ends where it would begin to write.
    store: {
      ...{ records: async () => records, brokenRecords: async () => new Map() },
      ...{ acquireLease: async () => (isKnown ? undefined : {}), releaseLease: async () => {} },
    },
    queue: { add: async () => calls.push('begun') },
  } as unknown as BoundaryReconcileDeps;
  const handle = createBoundaryReconciles(deps);
  const job = { queue: 'crossings', id: 'c', data: { projectId, instantMs: EIGHT } } as const;
  const handling = Promise.all(Array.from({ length: times }, () => handle(job, NEVER)));
  await (isKnown ? handling : expect(handling).rejects.toThrow());
  return { calls, left: fleet.boundaryReconciles.size };
}

it('a project that the list has confirmed is written to when there is a permit', async () => {
  const { calls, left } = await asked({ waitMs: 2_000 });
  expect(calls.slice(0, 3)).toEqual(['list', 'updateCompute', 'begun']);
  expect(left).toBe(0);
});

it('what has waited for so long that it is no longer confirmed waits for the list, and keeps no permit meanwhile', async () => {
  const { calls } = await asked({ waitMs: 60_000 });
  expect(calls.slice(0, 6)).toEqual(['list', 'updateCompute', 'list', 'given back', 'updateCompute', 'begun']);
});

it('a list that takes longer than it confirms for comes again, and nothing is read', async () => {
  const { calls } = await asked({ waitMs: 60_000, listMs: 30_000 });
  expect(calls.slice(0, 7)).toEqual(['list', 'updateCompute', 'list', 'given back', 'list', 'updateCompute', 'begun']);
});

it('what the list then shows changed is left to be read', async () => {
  const { calls } = await asked({ waitMs: 60_000, changedMs: EIGHT + 30_000 });
  expect(calls.slice(0, 5)).toEqual(['list', 'updateCompute', 'list', 'given back', 'begun']);
});

it('what this daemon has not read yet is read before what is not due', async () => {
  const { calls } = await asked({ waitMs: 0, isKnown: false });
  expect(calls.at(-1)).toBe('listComputes as lowering');
});

it('another reconcile of a project that waits has nothing to do', async () => {
  expect(await asked({ waitMs: 2_000, isReconciled: true })).toEqual(await asked({ waitMs: 2_000 }));
});

it.each([
  ['a raise that a person wants goes before the lowering that waits', 2, 1],
  ['a value that a person wants and that is no raise is left to the lowering that waits', 0.5, 0],
])('%s', async (_, maxCu, begun) => {
  const clock = { ...REAL.clock, now: () => EIGHT, monotonicMs: () => EIGHT };
  const fleet = createFleet({ clock } as never);
  const compute = aCompute({ minCu: 0.25, maxCu: 1 });
  const { projectId, computeId } = compute;
  const project = { account: 'default', projectId, name: 'p', regionId: 'r', updatedAtMs: READ_MS };
  fleet.list(project);
  fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: READ_MS, readAtMonotonicMs: READ_MS });
  fleet.waitingAtBoundary.set(projectId, 'lowering');
  const calls: string[] = [];
  const holds = [aHold({ size: { minCu: 0.25, maxCu } })];
  const deps = {
    ...{ clock, fleet, telemetry: { log: memoryLog() }, rules: currentRules(aSchedule()), mode: 'enforce' },
    ...{ samples: { historyOf: () => [] }, slots: FREE_SLOTS },
    overrides: { refresh: async () => {}, snapshot: () => ({ holds, freezes: [] }) },
    ...MAY_DECIDE,
    store: { records: async () => new Map([[computeId, aRecord()]]), acquireLease: async () => undefined },
    queue: { add: async () => calls.push('begun') },
  } as unknown as BoundaryReconcileDeps;
  await createReconcile(deps)({ queue: 'reconcile', id: 'r', data: { projectId } }, NEVER);
  expect(calls).toHaveLength(begun);
});

it.each([
  ['what something else has changed since then is left to it', { isCrowded: true, sentMs: EIGHT + 1_000 }, ['later']],
  ['what few share the boundary with is read', { isCrowded: false, sentMs: EIGHT + 1_000 }, ['listComputes']],
  ['what was changed before the boundary is read', { isCrowded: true, sentMs: EIGHT - 1_000 }, ['listComputes']],
  [
    'what something else has changed in part is read',
    { isCrowded: true, sentMs: EIGHT + 1_000, alsoHas: 'ep-two' },
    ['listComputes'],
  ],
])(
  '%s',
  async (_, { isCrowded, sentMs, alsoHas }: { isCrowded: boolean; sentMs: number; alsoHas?: string }, expected) => {
    const clock = { ...REAL.clock, now: () => EIGHT + 5_000, monotonicMs: () => EIGHT + 5_000 };
    const fleet = createFleet({ clock } as never);
    const compute = aCompute({ state: 'idle', minCu: 0.25, maxCu: 1 });
    const { projectId, computeId } = compute;
    const project = { account: 'default', projectId, name: 'p', regionId: 'r', updatedAtMs: READ_MS };
    fleet.list(project);
    fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: READ_MS, readAtMonotonicMs: READ_MS });
    fleet.confirm(projectId, EIGHT);
    const records = new Map([[computeId, aRecord({ lastSentAtMs: sentMs })]]);
    if (alsoHas) records.set(alsoHas, aRecord());
    const calls: string[] = [];
    const deps = {
      ...{ clock, fleet, telemetry: { log: memoryLog() }, rules: currentRules(aSchedule()) },
      ...MAY_DECIDE,
      store: { records: async () => records, acquireLease: async () => ({}), releaseLease: async () => {} },
      queue: { add: async () => calls.push('later') },
      api: {
        async permit(call: string) {
          calls.push(call);
          throw new Error('read');
        },
        async *listProjects() {
          yield { ok: true, value: [project] };
        },
        accountStatus: () => [],
      },
      outages: { listAnswers() {}, up() {} },
    } as unknown as BoundaryReconcileDeps;
    const options = { signal: NEVER, boundaryMs: EIGHT, isCrowded };
    await reconcile(deps, projectId, options).catch((error: Error) => expect(String(error.cause)).toBe('Error: read'));
    expect(calls).toEqual(expected);
  },
);

it('a job that comes a second time, since its lock was lost, asks for nothing', async () => {
  const once = await asked({ waitMs: 2_000 });
  expect(await asked({ waitMs: 2_000, times: 2 })).toEqual(once);
});
