import { expect, it } from 'vitest';
import { findProject, readProjectList } from '../../src/app/fleet/cached-projects.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { requestReading, usableCachedProject } from '../../src/app/reconcile/missing.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const START = 1_790_000_000_000;

/** A daemon that has just read a project of one compute, whose record says that another daemon sent the last change. */
function aDaemon() {
  const time = { ms: START };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  fleet.listAskedAtMonotonicMs = time.ms;
  const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const records = (lastSentAtMs: number) =>
    new Map<string, ComputeRecord>([['ep-one', { ...aRecord(), lastSentAtMs }]]);
  const read = (compute: Parameters<typeof aCompute>[0] = {}) => {
    const now = { readAtMs: time.ms, readAtMonotonicMs: time.ms, includedWrites: new Map([['ep-one', 0]]) };
    return fleet.cache({ project, computes: [aCompute(compute)], unreadable: [], ...now });
  };
  return { time, read, records, deps: { fleet, clock } };
}

it('what was read before another daemon sent a change is not believed, however its clock stands', () => {
  const { time, read, records, deps } = aDaemon();
  read();
  time.ms += 1_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', undefined)).toBeUndefined();
});

it('what was read after the records were seen is believed as long as nobody has sent anything since', () => {
  const { time, read, records, deps } = aDaemon();
  const readBaseline = requestReading(deps, { records: records(START - 60_000) }, 'p');
  const cached = read();
  time.ms += 1_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', readBaseline)).toBe(cached);
  expect(usableCachedProject(deps, { records: records(START + 500) }, 'p', readBaseline)).toBeUndefined();
  time.ms += 60_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', readBaseline)).toBeUndefined();
});

it('a reading that began in the millisecond of our own write does not include it', () => {
  const { time, read, deps } = aDaemon();
  const record = { ...aRecord(), lastSentAtMs: START };
  const records = new Map<string, ComputeRecord>([['ep-one', record]]);
  read();
  deps.fleet.putEvaluated({ compute: aCompute({ computeId: 'ep-one' }), record } as never);
  const requested = requestReading(deps, { records }, 'p');
  time.ms += 3_000;
  expect(usableCachedProject(deps, { records }, 'p', requested)).toBeUndefined();
  const again = read();
  expect(usableCachedProject(deps, { records }, 'p', requested)).toBe(again);
});

it('what was read before a change without an answer can count as lost does not show that it is', () => {
  const { time, read, deps } = aDaemon();
  const intent = { fields: { minCu: 1, maxCu: 4 }, atMs: START - 1_000 };
  const record = { ...aRecord(), lastSentAtMs: START - 1_000, intent };
  const records = new Map<string, ComputeRecord>([['ep-one', record]]);
  deps.fleet.putEvaluated({ compute: aCompute({ computeId: 'ep-one' }), record } as never);
  time.ms = START + 10_000;
  const cached = read();
  time.ms = START + 18_999;
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBe(cached);
  time.ms += 1;
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBeUndefined();
  time.ms += 1;
  const again = read();
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBe(again);
});

it('a reading that still shows an ended operation is replaced once', () => {
  const { time, read, records: recordsSentAt, deps } = aDaemon();
  const running = recordsSentAt(0);
  const operation = { operationId: 'o', action: 'apply_config', startedAtMs: START };
  const open = new Map([['ep-one', { ...aRecord(), openOperations: [operation], lastSentAtMs: 0 }]]);
  deps.fleet.putEvaluated({
    compute: aCompute({ computeId: 'ep-one' }),
    record: { ...aRecord(), lastSentAtMs: 0 },
  } as never);
  const before = read({ pendingState: 'active' });
  time.ms += 5_000;
  expect(usableCachedProject(deps, { records: open }, 'p', undefined)).toBe(before);
  expect(usableCachedProject(deps, { records: running }, 'p', undefined)).toBeUndefined();
  const requested = requestReading(deps, { records: running }, 'p');
  // Somebody else has started one: there is nothing more to wait for.
  const again = read({ pendingState: 'active' });
  expect(usableCachedProject(deps, { records: running }, 'p', requested)).toBe(again);
});

it('a project of which another daemon knows another name is listed again before anything is decided', async () => {
  const { time, read, deps } = aDaemon();
  const { project } = read();
  deps.fleet.list(project);
  const records = new Map<string, ComputeRecord>([['ep-one', { ...aRecord(), projectName: 'shop' }]]);
  let lists = 0;
  const api = {
    accountStatus: () => [],
    async *listProjects() {
      lists += 1;
      yield { ok: true as const, value: [{ ...project, name: 'shop' }] };
    },
  };
  time.ms += 20_000;
  const old = read();
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBeUndefined();
  const telemetry = { metrics: { increment: () => {}, set: () => {} }, log: memoryLog() };
  const found = await findProject(
    { ...deps, api, telemetry, outages: { up: () => {}, down: () => {} } } as never,
    'p',
    { records },
  );
  expect(found?.name).toBe('shop');
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBeUndefined();
  const cached = deps.fleet.cache({ ...old, project: { ...project, name: 'shop' } });
  // Now the list is new: a record that still differs has the old name.
  expect(usableCachedProject(deps, { records: new Map() }, 'p', undefined)).toBe(cached);
  await findProject({ ...deps, api } as never, 'p', { records });
  expect(lists).toBe(1);
});

/** A daemon whose list of projects is a while old, and shows another name once it is answered. */
function aRenamedProject() {
  const { time, read, deps } = aDaemon();
  const { project } = read();
  deps.fleet.list(project);
  const records = new Map<string, ComputeRecord>([['ep-one', { ...aRecord(), projectName: 'shop' }]]);
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const asked: (AbortSignal | undefined)[] = [];
  const api = {
    accountStatus: () => [],
    async *listProjects({ signal }: { signal?: AbortSignal } = {}) {
      asked.push(signal);
      await answered;
      if (!signal?.aborted) yield { ok: true as const, value: [{ ...project, name: 'shop' }] };
    },
  };
  const telemetry = { metrics: { increment: () => {}, set: () => {} }, log: memoryLog() };
  const all = { ...deps, api, telemetry, outages: { up: () => {}, down: () => {} } } as never;
  const find = (signal?: AbortSignal) => findProject(all, 'p', { records, ...(signal && { signal }) });
  time.ms += 20_000;
  read();
  const isUsable = () => usableCachedProject(deps, { records }, 'p', undefined) !== undefined;
  return { find, answer, asked, isUsable, list: () => readProjectList(all, {}) };
}

it('while the list is read that shows a new name, nobody goes on with the old one, and nobody reads it again', async () => {
  const { find, answer, asked, isUsable } = aRenamedProject();
  const [first, second] = [find(), find()];
  expect(isUsable()).toBe(false);
  answer();
  expect((await first)?.name).toBe('shop');
  expect((await second)?.name).toBe('shop');
  expect(asked).toHaveLength(1);
});

it('whoever waits for a list that another one is stopped from reading reads it', async () => {
  const { find, answer, asked } = aRenamedProject();
  const stop = new AbortController();
  const [stopped, waiting] = [find(stop.signal), find()];
  stop.abort();
  answer();
  await stopped;
  expect((await waiting)?.name).toBe('shop');
  expect(asked).toEqual([stop.signal, undefined]);
});

it('a list that is read for another purpose shows a new name, too', async () => {
  const { find, answer, asked, list } = aRenamedProject();
  answer();
  await list();
  expect((await find())?.name).toBe('shop');
  expect(asked).toHaveLength(1);
});

it('a project is listed again once its name is a minute old, as it is where other daemons read the list', () => {
  const { time, read, deps } = aDaemon();
  const records = new Map<string, ComputeRecord>();
  time.ms += 59_000;
  const cached = read();
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBe(cached);
  time.ms += 2_000;
  expect(usableCachedProject(deps, { records }, 'p', undefined)).toBeUndefined();
});
