import { describe, expect, it } from 'vitest';
import { type AdoptDeps, adoptsSettled, isSettled } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aSchedule, at, compiled, currentRules } from '../support/builders.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const SIZE = { minCu: 1, maxCu: 1 };
const policies = compiled(aSchedule({ windows: [], otherwise: { size: SIZE } }));

it('a compute that is as wanted needs a reconcile until it is recorded that enforcing has found it so', () => {
  const of = (mode: 'enforce' | 'observe', known: Parameters<typeof aRecord>[0], size = SIZE, all = policies) => {
    const compute = aCompute(size);
    const record = aRecord({
      setBy: { size: 'office-hours' },
      enforcedSinceMs: undefined as never,
      lastApplied: {},
      ...known,
    });
    const situation = { policies: all, compute, record, nowMs: NOW_MS, mode, projectBusy: false };
    return isSettled(mode, { compute, record, ...evaluate(situation) });
  };
  const enforced = { enforcedSinceMs: NOW_MS - 3_600_000 };
  expect(of('observe', {})).toBe(true);
  expect(of('enforce', {})).toBe(false);
  // Without it a person's next change would look like what was always there.
  expect(of('enforce', enforced)).toBe(false);
  expect(of('enforce', { ...enforced, lastApplied: SIZE })).toBe(true);
  expect(of('enforce', { ...enforced, lastApplied: SIZE }, { minCu: 2, maxCu: 2 })).toBe(false);
  const { policies: unloaded } = unloadedPart({ name: 'web', projects: ['*'] });
  expect(of('enforce', {}, SIZE, compiled(...policies.set.policies, ...unloaded))).toBe(true);
});

describe('a project that another daemon has read', () => {
  const AS_WANTED = aRecord({ enforcedSinceMs: 1, lastApplied: SIZE, setBy: { size: 'office-hours' } });
  const settled = async (mode: 'enforce' | 'observe', ...known: [Compute, ComputeRecord | undefined][]) => {
    const clock = { now: () => NOW_MS, monotonicMs: () => NOW_MS };
    const fleet = createFleet({ clock } as never);
    const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
    const computes = known.map(([compute]) => compute);
    const readAtMs = NOW_MS - 1_000;
    fleet.cache({ project, computes, unreadable: [], readAtMs, readAtMonotonicMs: readAtMs, isShared: true });
    const records = known.flatMap(([{ computeId }, record]) => (record ? [[computeId, record] as const] : []));
    const deps = {
      ...{ clock, mode, fleet, store: { records: async () => new Map(records) } },
      rules: currentRules(aSchedule({ windows: [], otherwise: { size: SIZE } })),
      ...{ overrides: { holds: [], freezes: [] }, samples: { historyOf: () => undefined } },
      slots: { isAtOnceReached: () => false, isAtMostReached: () => false },
    };
    return adoptsSettled(deps as unknown as AdoptDeps, 'p');
  };
  const one = (id: string, fields: Partial<Compute> = SIZE) => aCompute({ projectId: 'p', computeId: id, ...fields });

  it('is not reconciled if all its computes are as wanted, or it has none', async () => {
    expect(await settled('enforce')).toBe(true);
    expect(await settled('enforce', [one('ep-1'), AS_WANTED], [one('ep-2'), AS_WANTED])).toBe(true);
    expect(await settled('observe', [one('ep-1'), aRecord({ setBy: { size: 'office-hours' } })])).toBe(true);
  });

  it('is reconciled if one compute is new, or not as wanted', async () => {
    for (const mode of ['enforce', 'observe'] as const) {
      expect(await settled(mode, [one('ep-1'), AS_WANTED], [one('ep-2'), undefined])).toBe(false);
      const larger = one('ep-2', { minCu: 2, maxCu: 2 });
      expect(await settled(mode, [one('ep-1'), AS_WANTED], [larger, AS_WANTED])).toBe(false);
    }
  });
});
