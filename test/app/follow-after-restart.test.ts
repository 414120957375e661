import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import {
  createFollowOperations,
  type FollowJobDeps,
  followOperations,
  followStored,
} from '../../src/app/operations/follow.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { FAILURES_UNTIL_DEGRADED } from '../../src/domain/records/failures.ts';
import type { CallOptions } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, currentRules } from '../support/builders.ts';

const RECEIVER = { name: 'ops', to: 'webhook', url: { from: 'text', text: 'http://localhost' } } as const;
const STARTED_MS = Date.parse('2026-11-23T07:00:00Z');

/** A store with these records by project, and a daemon that starts so long after their operations did, and has read no project. */
function restart(
  projects: Record<string, Partial<ComputeRecord>>,
  { downMs = 180_000, waits }: { downMs?: number; waits?: 'raise' | 'lowering' } = {},
) {
  const time = { ms: STARTED_MS + downMs };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  const queued: string[] = [];
  const asked: [string, CallOptions['priority']][] = [];
  const deps = {
    ...{ clock, fleet },
    store: {
      projectIds: async () => Object.keys(projects),
      records: async (projectId: string) => new Map([[`ep-${projectId}`, aRecord(projects[projectId])]]),
    },
    queue: { add: async (queue: string, { key }: { key: string }) => queued.push(`${queue} ${key}`) },
    durations: { expectedEndMs: () => STARTED_MS + 2_000, learn() {} },
    api: {
      async *listOperations(projectId: string, { priority }: CallOptions) {
        asked.push([projectId, priority]);
        yield { ok: false, error: { code: 'not_found' } };
      },
      async listComputes({ projectId }: { projectId: string }, { priority }: CallOptions) {
        asked.push([`read ${projectId}`, priority]);
        return { ok: false, error: { code: 'not_found' } };
      },
    },
    telemetry: { log: { info() {}, warn() {}, error() {}, debug() {} }, metrics: { increment() {}, set() {} } },
    outages: { projectAnswers() {} },
    slots: { refusedLately: () => waits },
  } as unknown as FollowJobDeps;
  return { deps, queued, asked, time, fleet };
}

const open = (startedAtMs = STARTED_MS) => ({
  openOperations: [{ operationId: 'op-1', action: 'apply_config', startedAtMs, policy: 'office-hours' }],
});

it('after a restart operations are followed whose project has not been read yet', async () => {
  const { deps, queued } = restart({ 'p-one': open(), 'p-two': {}, 'p-three': open() });
  await followStored(deps);
  expect(queued.sort()).toEqual(['operations p-one', 'operations p-three']);
});

it('what an earlier process started is not behind the reads of the whole fleet, nor is the reading that follows', async () => {
  const { deps, asked, fleet } = restart({ 'p-one': open() });
  fleet.list({ account: 'default', projectId: 'p-one', name: 'p-one', regionId: 'r', updatedAtMs: 0 });
  await createFollowOperations(deps)({ data: { projectId: 'p-one' } } as never, new AbortController().signal);
  expect(asked).toEqual([
    ['p-one', 'read'],
    ['read p-one', 'read'],
  ]);
});

it('what is read after an operation is shared before the reconcile, which another daemon may take, with the writes that it includes', async () => {
  const { deps, queued, fleet, time } = restart({});
  fleet.list({ account: 'default', projectId: 'p-one', name: 'p-one', regionId: 'r', updatedAtMs: 0 });
  Object.assign(deps, {
    rules: currentRules(),
    sharedReadings: { share: async (projectId: string) => queued.push(`share ${projectId}`) },
    outages: { up() {}, projectAnswers() {}, computesUnreadable() {} },
  });
  const compute = aCompute({ projectId: 'p-one', computeId: 'ep-p-one' });
  // Another daemon has written: this one has not evaluated the compute since.
  const lastSentAtMs = time.ms - 5_000;
  const operations = [open().openOperations, []];
  deps.store.records = async () =>
    new Map([['ep-p-one', aRecord({ lastSentAtMs, openOperations: operations.shift() ?? [] })]]);
  deps.api.listOperations = async function* () {
    yield { ok: true, value: [] };
  };
  deps.durations.expectedEndMs = () => 0;
  deps.api.listComputes = async () => ({ ok: true, value: { computes: [compute], unreadable: [] } });
  Object.assign(deps.store, {
    acquireLease: async () => ({}),
    putRecord: async () => true,
    releaseLease: async () => {},
  });
  await createFollowOperations(deps)({ data: { projectId: 'p-one' } } as never, new AbortController().signal);
  expect(queued).toEqual(['share p-one', 'reconcile p-one']);
  expect(fleet.cachedProject('p-one')?.includedWrites).toEqual(new Map([['ep-p-one', lastSentAtMs]]));
});

it('what this process started is followed patiently', async () => {
  const startedMs = STARTED_MS + 60_000;
  const { deps, asked, time } = restart({ 'p-one': open(startedMs) }, { downMs: 30_000 });
  const follow = createFollowOperations(deps);
  time.ms = startedMs + 10_000;
  await follow({ data: { projectId: 'p-one' } } as never, new AbortController().signal);
  expect(asked).toEqual([['p-one', 'operations']]);
});

it.each(['raise', 'lowering'] as const)(
  'an operation whose slot a %s waits for is followed as urgently',
  async (waits) => {
    const startedMs = STARTED_MS + 60_000;
    const { deps, asked, time } = restart({ 'p-one': open(startedMs) }, { downMs: 30_000, waits });
    const follow = createFollowOperations(deps);
    time.ms = startedMs + 10_000;
    await follow({ data: { projectId: 'p-one' } } as never, new AbortController().signal);
    expect(asked).toEqual([['p-one', waits]]);
  },
);

it('what degrades a compute is recorded once an evaluation can name it in its message', async () => {
  const failure = { count: FAILURES_UNTIL_DEGRADED - 1, lastAtMs: 0, desired: { minCu: 1, maxCu: 4 }, message: '' };
  const fields = { minCu: 1, maxCu: 4 };
  const operation = { operationId: 'op-1', action: 'apply_config', startedAtMs: STARTED_MS, fields };
  const { deps, fleet } = restart({ 'p-one': {} });
  let stored = aRecord({ openOperations: [operation], failures: { size: failure } });
  const sent: unknown[] = [];
  const ended = { ...operation, outcome: 'failed', status: 'failed', createdAtMs: STARTED_MS, updatedAtMs: STARTED_MS };
  Object.assign(deps, { rules: currentRules(), reportEvent: () => {} });
  Object.assign(deps.store, {
    records: async () => new Map([['ep-one', stored]]),
    acquireLease: async (name: string) => ({ name, token: 1, holder: 'test' }),
    releaseLease: async () => {},
    putRecord: async (
      _: string,
      __: string,
      record: ComputeRecord,
      ___: unknown,
      { outbox }: { outbox: unknown[] },
    ) => {
      stored = record;
      sent.push(...outbox);
      return true;
    },
  });
  Object.assign(deps.api, {
    async *listOperations() {
      yield { ok: true, value: [ended] };
    },
  });
  deps.rules.current.notify = { receivers: [{ ...RECEIVER, allowedOrigins: [], file: 'ebb.yaml' }] };
  const { signal } = new AbortController();
  expect((await followOperations(deps, 'p-one', signal)).nextCheckMs).toBeDefined();
  expect(stored.openOperations).toHaveLength(1);
  fleet.adopt({ compute: aCompute(), record: stored, decision: { trace: [], holds: [] } } as never);
  expect((await followOperations(deps, 'p-one', signal)).nextCheckMs).toBeUndefined();
  expect(sent).toHaveLength(1);
  expect(stored.openOperations).toEqual([]);
});

it('what has ended is not in flight any more where another daemon, or this one before its restart, evaluated it', async () => {
  const { deps, fleet } = restart({ 'p-one': open() });
  const compute = aCompute({ projectId: 'p-one', computeId: 'ep-p-one' });
  fleet.adopt({ compute, record: aRecord(open()), decision: { trace: [], holds: [] } } as never);
  const released: string[] = [];
  Object.assign(deps, { rules: currentRules(), reportEvent: () => {} });
  Object.assign(deps.slots, { release: async (id: string, policy: string) => released.push(`${policy} ${id}`) });
  Object.assign(deps.store, {
    acquireLease: async (name: string) => ({ name, token: 1, holder: 'test' }),
    releaseLease: async () => {},
    putRecord: async () => true,
  });
  const ended = { operationId: 'op-1', action: 'apply_config', outcome: 'succeeded', status: 'finished' };
  Object.assign(deps.api, {
    async *listOperations() {
      yield { ok: true, value: [{ ...ended, createdAtMs: STARTED_MS, updatedAtMs: STARTED_MS + 1_000 }] };
    },
  });
  await followOperations(deps, 'p-one', new AbortController().signal);
  const inFlight = [...fleet.evaluatedComputes()].flatMap(({ record }) => record.openOperations);
  expect([inFlight, released]).toEqual([[], ['office-hours ep-p-one']]);
});
