import { expect, it } from 'vitest';
import { isNameInDoubt, readProjectList } from '../../src/app/fleet/cached-projects.ts';
import { CONFIRMED_MS, createFleet, FRESH_MS } from '../../src/app/fleet/fleet.ts';
import { compareList } from '../../src/app/fleet/project-list.ts';
import type { AccountFacts } from '../../src/domain/compute/account-facts.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const START = 1_790_000_000_000;

/** A daemon that has read one project a minute after it was last changed. */
function aDaemon(verified: AccountFacts = {}) {
  const time = { ms: START };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock, verified: new Map([['a', verified]]) } as never);
  const log = memoryLog();
  const records = new Map<string, ComputeRecord>();
  const deps = { fleet, store: { records: async () => records }, telemetry: { log } };
  const project: Project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: START - 60_000 };
  const read = () => {
    const now = { readAtMs: time.ms, readAtMonotonicMs: time.ms };
    fleet.cache({ project: fleet.listed('p') ?? project, computes: [aCompute()], unreadable: [], ...now });
  };
  const list = async (changes: Partial<Project> = {}) => {
    const asked = { askedAtMs: time.ms, askedAtMonotonicMs: time.ms };
    const listed = { ...project, ...changes };
    fleet.list(listed);
    const due = await compareList(deps, { projects: [listed], failures: new Map(), ...asked });
    return due.map(({ projectId }) => projectId);
  };
  /** ebb changes the compute, and the list that follows says this of the project. */
  const change = async (updatedAtMs: number) => {
    fleet.changedAtMs.set('p', time.ms);
    records.set('ep', { ...aRecord(), lastSentAtMs: time.ms });
    time.ms += 5_000;
    return list({ updatedAtMs });
  };
  return { time, fleet, log, records, read, list, change };
}

it('a project that nobody has read is read, and one that somebody changed after it was read', async () => {
  const { time, read, list } = aDaemon();
  expect(await list()).toEqual(['p']);
  read();
  time.ms += 30_000;
  expect(await list()).toEqual([]);
  expect(await list({ updatedAtMs: time.ms - 10_000 })).toEqual(['p']);
});

it('a reading that began two seconds after a change includes it; before that, nobody knows', async () => {
  const { time, read, list } = aDaemon();
  await list();
  read();
  time.ms += 10_000;
  expect(await list({ updatedAtMs: START - 2_000 })).toEqual([]);
  read();
  expect(await list({ updatedAtMs: time.ms - 1_999 })).toEqual(['p']);
});

it('a change of our own is known without reading it, whichever daemon made it', async () => {
  const { time, read, list, change } = aDaemon();
  await list();
  read();
  expect(await change(time.ms)).toEqual([]);
  time.ms += 60_000;
  expect(await list({ updatedAtMs: time.ms - 10_000 })).toEqual(['p']);
});

it('what an operation of ours changes as it runs and ends is read at its end, not because of the list', async () => {
  const { time, records, read, list } = aDaemon();
  await list();
  read();
  const openOperations = [{ operationId: 'op', action: 'apply_config', startedAtMs: time.ms }];
  records.set('ep', { ...aRecord(), lastSentAtMs: time.ms, openOperations });
  time.ms += 20_000;
  const endedAtMs = time.ms - 8_000;
  expect(await list({ updatedAtMs: endedAtMs - 5_000 })).toEqual([]);
  records.set('ep', { ...aRecord(), lastSentAtMs: time.ms - 20_000, operationEndedAtMs: endedAtMs });
  // The list is in whole seconds.
  expect(await list({ updatedAtMs: endedAtMs - 900 })).toEqual([]);
  expect(await list({ updatedAtMs: endedAtMs + 1_000 })).toEqual(['p']);
});

it('what the list shows unchanged is fresh only where the list has shown a change of our own', async () => {
  const { time, fleet, read, list, change } = aDaemon();
  await list();
  read();
  time.ms += FRESH_MS + 1;
  await list();
  expect(fleet.isFresh('p')).toBe(false);
  const changedAtMs = time.ms;
  await change(changedAtMs);
  read();
  expect(fleet.listShowsChanges.get('a')).toBe(true);
  time.ms += 300_000;
  expect(fleet.isFresh('p')).toBe(false);
  await list({ updatedAtMs: changedAtMs });
  time.ms += CONFIRMED_MS;
  expect(fleet.isFresh('p')).toBe(true);
  time.ms += 1;
  expect(fleet.isFresh('p')).toBe(false);
});

it('a compute that was used after it was read is not confirmed', async () => {
  const { time, fleet, read, list, change } = aDaemon();
  await list();
  const changedAtMs = time.ms;
  await change(changedAtMs);
  read();
  time.ms += 300_000;
  await list({ updatedAtMs: changedAtMs, computeLastActiveAtMs: time.ms - 5_000 });
  expect(fleet.isFresh('p')).toBe(false);
});

it('an account whose list hides a change, or shows it late, is not relied on from then on, which is logged once', async () => {
  const { time, fleet, log, read, list, change } = aDaemon();
  await list();
  read();
  await change(time.ms);
  await change(START - 60_000);
  await change(time.ms);
  expect(fleet.listShowsChanges.get('a')).toBe(false);
  expect(log.lines.map(({ fields }) => (fields as { event: string; shows: boolean }).shows)).toEqual([true, false]);
});

it('a change by another daemon that the list shows is enough to rely on it', async () => {
  const { fleet, records, list } = aDaemon();
  records.set('ep', { ...aRecord(), lastSentAtMs: START - 60_000 });
  await list({ updatedAtMs: START - 61_000 });
  expect(fleet.listShowsChanges.get('a')).toBe(true);
});

it('all is listed once each account was listed completely, and stays so while one fails later', async () => {
  const { fleet } = aDaemon();
  let failing: string[] = [];
  const api = {
    async *listProjects({ account: only }: { account?: string }) {
      for (const account of ['a', 'b'].filter((one) => only === undefined || one === only)) {
        if (failing.includes(account)) yield { ok: false, error: { account, code: 'unavailable', message: 'no' } };
      }
    },
  };
  const clock = { now: () => START, monotonicMs: () => START };
  const listedWith = async (broken: string[], account?: string) => {
    failing = broken;
    await readProjectList({ fleet, api, clock } as never, { ...(account !== undefined && { account }) } as never);
    return fleet.isListed();
  };
  expect(fleet.isListed()).toBe(false);
  expect([await listedWith([], 'a'), await listedWith(['b']), await listedWith(['b'])]).toEqual([false, false, false]);
  expect([await listedWith([], 'b'), await listedWith(['a']), await listedWith([])]).toEqual([true, true, true]);
});

it('what a list shows changed or used after it was read is not written by, although a list before confirmed it', async () => {
  for (const changes of [{ updatedAtMs: START + 40_000 }, { computeLastActiveAtMs: START + 40_000 }]) {
    const { time, fleet, read, list, change } = aDaemon();
    await list();
    await change(START);
    time.ms += 5_000;
    await list({ updatedAtMs: START });
    read();
    time.ms += 30_000;
    await list({ updatedAtMs: START });
    expect(fleet.isFresh('p')).toBe(true);
    time.ms += 10_000;
    await list({ updatedAtMs: START, ...changes });
    expect(fleet.isFresh('p')).toBe(false);
    read();
    expect(fleet.isFresh('p')).toBe(true);
  }
});

it('a project that was renamed is read again, also where the list shows no change of it otherwise', async () => {
  const { time, read, list } = aDaemon();
  await list();
  read();
  time.ms += 30_000;
  expect(await list({ name: 'other' })).toEqual(['p']);
  read();
  expect(await list({ name: 'other' })).toEqual([]);
});

it('what ebb verify has found of the list need not be learned; what it contradicts is no longer relied on', async () => {
  const daemon = aDaemon({ list_updated_at: 'moves' });
  expect(daemon.fleet.listShowsChanges.get('a')).toBe(true);
  await daemon.list();
  daemon.read();
  await daemon.change(START - 60_000);
  expect(daemon.fleet.listShowsChanges.get('a')).toBe(false);
  for (const list_updated_at of ['late', 'stays'] as const) {
    const { fleet, read, list, change, time } = aDaemon({ list_updated_at });
    await list();
    read();
    await change(time.ms);
    expect(fleet.listShowsChanges.get('a')).toBe(false);
  }
});

it('a list that was requested later has newer names', async () => {
  const { fleet, time } = aDaemon();
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const project = { account: 'a', projectId: 'p', regionId: 'r', updatedAtMs: START };
  const read = (name: string, afterwards = async () => {}) => {
    async function* listProjects() {
      yield { ok: true, value: [{ ...project, name }] };
      time.ms += 1_000;
      await afterwards();
    }
    return readProjectList({ fleet, clock, api: { listProjects } } as never, {});
  };
  await read('old', async () => void (await read('new')));
  expect(fleet.listed('p')?.name).toBe('new');
});

it('the name of a project that a page has just confirmed is not in doubt, however old the last complete list is', () => {
  const { fleet, time } = aDaemon();
  const clock = { monotonicMs: () => time.ms };
  const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: START };
  fleet.list(project);
  fleet.listAskedAtMonotonicMs = time.ms - 600_000;
  expect(isNameInDoubt({ fleet, clock }, project)).toBe(true);
  fleet.confirm('p', time.ms - 5_000);
  expect(isNameInDoubt({ fleet, clock }, project)).toBe(false);
});
