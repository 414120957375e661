import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { measureImpact } from '../../src/app/rollout/disruption-impact.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, at, aWindow, currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const NOW_MS = at('2026-03-02T20:00:00Z');

/** How many of these computes a lowering that waits for nothing disconnects. */
async function disconnectedOf(...given: Parameters<typeof impactOf>) {
  return (await impactOf(...given)).disconnected;
}

async function impactOf(
  states: Pick<Compute, 'state' | 'pendingState'>[],
  slots = { isAtOnceReached: () => false, isAtMostReached: () => false },
  records: Record<string, ComputeRecord> = {},
  schedule: Partial<SchedulePolicy> = {},
) {
  const clock = { now: () => NOW_MS, monotonicMs: () => NOW_MS, nextTurn: async () => {} };
  const fleet = createFleet({ clock } as never);
  const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const computes = states.map((state, index) =>
    aCompute({ ...state, projectId: 'p', computeId: `ep-${index}`, minCu: 1, maxCu: 4 }),
  );
  fleet.list(project);
  fleet.cache({ project, computes, unreadable: [], readAtMs: NOW_MS, readAtMonotonicMs: NOW_MS });
  const lower = { when: 'any', atDeadline: 'apply' } as const;
  const rules = currentRules(aSchedule({ disruption: { lower }, ...schedule }));
  const deps = {
    ...{ clock, fleet, rules, store: { records: async () => new Map(Object.entries(records)) } },
    api: {
      async *listProjects() {
        yield { ok: true, value: [project] };
      },
      accountStatus: () => [{ account: 'a', key: 'valid' }],
    },
    ...{ mode: 'enforce', samples: { historyOf: () => undefined }, outages: { current: () => new Map() } },
    slots,
    overrides: {
      refresh: async () => {},
      snapshot: () => ({ holds: [], freezes: [], revision: 0 }),
      holds: [],
      freezes: [],
    },
  };
  const candidate = { ...rules.current, policies: rules.current.policies.set };
  return (await measureImpact(deps as never, candidate, new AbortController().signal)) ?? { disconnected: -1 };
}

/** What a daemon read three hours ago of a project with one compute, what the list and the store show by now, and what a reading shows. */
interface Past {
  read: Partial<Compute>;
  listed?: Partial<Project>;
  /** The record of the compute, and those of others. */
  record?: ComputeRecord;
  others?: Record<string, ComputeRecord>;
  now?: Partial<Compute>;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const READ_MS = NOW_MS - 3 * HOUR_MS;
/** The list shows that a project was used an hour ago. */
const USED: Partial<Project> = { computeLastActiveAtMs: NOW_MS - HOUR_MS };
const SMALL = { minCu: 1, maxCu: 2 };
const LARGE = { minCu: 4, maxCu: 8 };

/** Measures a set that makes everything large at once. With `isOut` nothing but the list is answered. */
async function measureOld(pasts: readonly Past[], { isOut = false } = {}) {
  const clock = { now: () => NOW_MS, monotonicMs: () => NOW_MS, nextTurn: async () => {} };
  const fleet = createFleet({ clock } as never);
  const projects = pasts.map(
    ({ listed }, index): Project => ({
      ...{ account: 'a', projectId: `p-${index}`, name: `p-${index}`, regionId: 'r', updatedAtMs: READ_MS - HOUR_MS },
      ...listed,
    }),
  );
  const computeOf = (index: number, fields: Partial<Compute> = {}) =>
    aCompute({ ...SMALL, projectId: `p-${index}`, computeId: `ep-${index}`, ...fields });
  pasts.forEach(({ read }, index) => {
    const project = { ...projects[index], name: `p-${index}`, updatedAtMs: READ_MS - HOUR_MS } as Project;
    delete project.computeLastActiveAtMs;
    const reading = { project, computes: [computeOf(index, read)], unreadable: [], includedWrites: new Map() };
    fleet.cache({ ...reading, readAtMs: READ_MS, readAtMonotonicMs: READ_MS });
  });
  const recordsOf = (index: number) => {
    const { record, others } = pasts[index] ?? {};
    return new Map(Object.entries({ ...(record && { [`ep-${index}`]: record }), ...others }));
  };
  const reads: string[] = [];
  const down = new Map<string, string>();
  const windows = [{ at: [{ kind: 'always' as const }], size: LARGE }];
  const disruption = { newlyDiscovered: 'act', raise: { when: 'any', atDeadline: 'apply' } } as const;
  const rules = currentRules(aSchedule({ windows, otherwise: 'leave', disruption }));
  const indexOf = (projectId: string) => Number(projectId.slice(2));
  const deps = {
    ...{ clock, fleet, rules, mode: 'enforce', samples: { historyOf: () => undefined } },
    store: { records: async (id: string) => recordsOf(indexOf(id)) },
    api: {
      async *listProjects() {
        yield { ok: true, value: projects };
      },
      async listComputes({ projectId }: Project) {
        reads.push(projectId);
        const index = indexOf(projectId);
        if (isOut) return { ok: false, error: { code: 'unavailable', route: 'any', message: 'is out' } };
        return { ok: true, value: { computes: [computeOf(index, pasts[index]?.now)], unreadable: [] } };
      },
      accountStatus: () => [{ account: 'a', key: 'valid' }],
    },
    outages: {
      beganInOutage: () => false,
      current: () => down,
      up: () => down.clear(),
      projectAnswers() {},
      computesUnreadable() {},
      projectFails: () => down.set('control API', 'is out'),
    },
    telemetry: { log: memoryLog(), metrics: { increment() {} } },
    slots: { isAtOnceReached: () => false, isAtMostReached: () => false },
    overrides: { refresh: async () => {}, snapshot: () => ({ holds: [], freezes: [], revision: 0 }) },
  };
  const candidate = { ...rules.current, policies: rules.current.policies.set };
  const impact = await measureImpact(deps as never, candidate, new AbortController().signal);
  return { impact, reads: reads.length };
}

const many = (count: number, past: Past) => Array.from({ length: count }, () => past);
const SLEEPS: Past = { read: { state: 'idle' } };
/** It slept when it was read, and was used since. */
const USED_SINCE: Past = { read: { state: 'idle' }, listed: USED };

describe('by readings of three hours ago', () => {
  it('nothing is read where what may be awake needs no approval', async () => {
    const { impact, reads } = await measureOld([...many(5, USED_SINCE), ...many(15, SLEEPS)]);
    expect([impact?.disconnected, impact?.computes, reads]).toEqual([5, 20, 0]);
  });

  it.each<[string, Past, number]>([
    ['woke since', { ...USED_SINCE, now: { state: 'active' } }, 8],
    ['woke and fell asleep again', { ...USED_SINCE, now: { state: 'idle' } }, 0],
    ['was awake and sleeps', { read: { state: 'active' }, now: { state: 'idle' } }, 0],
    [
      'is awake, and another daemon has made it smaller',
      { read: LARGE, now: SMALL, record: aRecord({ lastApplied: SMALL, lastSentAtMs: NOW_MS - HOUR_MS }) },
      8,
    ],
  ])('what would need an approval is read, once for each project: each %s', async (_, past, disconnected) => {
    const { impact, reads } = await measureOld([...many(8, past), ...many(12, SLEEPS)]);
    expect([impact?.disconnected, impact?.unknown, reads]).toEqual([disconnected, 0, 8]);
  });

  it('computes that only the records have count, until their projects are read', async () => {
    const past = { ...USED_SINCE, others: { 'ep-new': aRecord() }, now: { state: 'idle' } } as const;
    const { impact, reads } = await measureOld(many(5, past));
    expect([impact?.disconnected, impact?.computes, reads]).toEqual([0, 5, 5]);
  });

  it('a project with a new name is read: policies select by names', async () => {
    const { reads } = await measureOld([{ ...SLEEPS, listed: { name: 'other' } }, SLEEPS]);
    expect(reads).toBe(1);
  });

  it('nothing is said in an outage', async () => {
    const { impact } = await measureOld(many(20, USED_SINCE), { isOut: true });
    expect(impact).toBeUndefined();
  });
});

it('computes that are waking are counted as disconnected, those that are falling asleep are not', async () => {
  expect(await disconnectedOf([{ state: 'active' }, { state: 'idle' }])).toBe(1);
  expect(await disconnectedOf([{ state: 'idle', pendingState: 'active' }])).toBe(1);
  expect(await disconnectedOf([{ state: 'active', pendingState: 'idle' }])).toBe(0);
});

it('while another set still restarts computes, those that wait for its limits count: they are disconnected all the same', async () => {
  const slots = { isAtOnceReached: () => true, isAtMostReached: () => true };
  expect(await disconnectedOf([{ state: 'active' }, { state: 'active' }], slots)).toBe(2);
});

it('computes that ebb has just discovered or restarted count, and are said to be disconnected later', async () => {
  const known = aRecord({ lastApplied: { minCu: 1, maxCu: 4 } });
  const records = {
    'ep-1': known,
    'ep-2': { ...known, lastDisruption: { atMs: NOW_MS - 60_000, lowered: true } },
    'ep-3': { ...known, lastDisruption: { atMs: NOW_MS - 7 * DAY_MS, lowered: true } },
    // Other policies have already wanted the size that it has.
    'ep-4': { ...known, enforcedSinceMs: NOW_MS - 60_000 },
  };
  const states = Array.from({ length: 5 }, () => ({ state: 'active' as const }));
  const slots = { isAtOnceReached: () => true, isAtMostReached: () => true };
  expect(await impactOf(states, slots, records)).toMatchObject({ disconnected: 5, later: 3, unknown: 0 });
});

it('computes that a set lowers count though a boundary would soon undo that, and are said to be disconnected later', async () => {
  const records = { 'ep-0': aRecord({ lastApplied: { minCu: 1, maxCu: 4 } }) };
  const slots = { isAtOnceReached: () => false, isAtMostReached: () => false };
  const opensIn = (minutes: number) => {
    const window = aWindow({ startMinute: 20 * 60 + minutes, endMinute: 23 * 60 });
    return impactOf([{ state: 'active' }], slots, records, { windows: [{ at: [window], size: LARGE }] });
  };
  expect(await opensIn(1)).toMatchObject({ disconnected: 1, later: 1, byPolicy: { 'office-hours': 1 } });
  expect(await opensIn(3)).toMatchObject({ disconnected: 1, later: 0 });
});
