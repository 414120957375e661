import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { measureImpact } from '../../src/app/rollout/disruption-impact.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { aCompute, aSchedule, at, currentRules } from '../support/builders.ts';

const NOW_MS = at('2026-03-02T20:00:00Z');

/** How many of these computes a lowering that waits for nothing disconnects. */
async function disconnectedOf(
  states: Pick<Compute, 'state' | 'pendingState'>[],
  slots = { isAtOnceReached: () => false, isAtMostReached: () => false },
) {
  const clock = { now: () => NOW_MS, monotonicMs: () => NOW_MS, nextTurn: async () => {} };
  const fleet = createFleet({ clock } as never);
  const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const computes = states.map((state, index) =>
    aCompute({ ...state, projectId: 'p', computeId: `ep-${index}`, minCu: 1, maxCu: 4 }),
  );
  fleet.list(project);
  fleet.cache({ project, computes, unreadable: [], readAtMs: NOW_MS, readAtMonotonicMs: NOW_MS });
  const rules = currentRules(aSchedule({ disruption: { lower: { when: 'any', atDeadline: 'apply' } } }));
  const deps = {
    ...{ clock, fleet, rules, store: { records: async () => new Map() } },
    api: {
      async *listProjects() {
        yield { ok: true, value: [project] };
      },
      accountStatus: () => [{ account: 'a', key: 'valid' }],
    },
    ...{ mode: 'enforce', samples: { historyOf: () => undefined } },
    slots,
    overrides: {
      refresh: async () => {},
      snapshot: () => ({ holds: [], freezes: [], revision: 0 }),
      holds: [],
      freezes: [],
    },
  };
  const candidate = { ...rules.current, policies: rules.current.policies.set };
  return (await measureImpact(deps as never, candidate, new AbortController().signal))?.disconnected;
}

it('computes that are waking are counted as disconnected, those that are falling asleep are not', async () => {
  expect(await disconnectedOf([{ state: 'active' }, { state: 'idle' }])).toBe(1);
  expect(await disconnectedOf([{ state: 'idle', pendingState: 'active' }])).toBe(1);
  expect(await disconnectedOf([{ state: 'active', pendingState: 'idle' }])).toBe(0);
});

it('while another set still restarts computes, those that wait for its limits count: they are disconnected all the same', async () => {
  const slots = { isAtOnceReached: () => true, isAtMostReached: () => true };
  expect(await disconnectedOf([{ state: 'active' }, { state: 'active' }], slots)).toBe(2);
});
