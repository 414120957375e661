import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Compute, type Size, settingsOf } from '../../src/domain/compute/compute.ts';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import { type FleetPlan, type FleetSituation, planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { gatesOf } from '../../src/domain/plan/plan.ts';
import type { HeadroomPolicy } from '../../src/domain/policy/kinds/headroom.ts';
import type { RestartPolicy } from '../../src/domain/policy/kinds/restart.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aHeadroom, aRecord, aSchedule, at, aWindow, compiled, countsUntil } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MORNING = at('2026-03-02T08:00:00Z');
const NOON = at('2026-03-02T12:00:00Z');
const NIGHT = at('2026-03-02T23:00:00Z');

type Wanted = Partial<FleetSituation> & { set?: readonly Policy[] };

function planOf({ set = [aSchedule()], ...situation }: Wanted): FleetPlan {
  return planFleet({
    ...{ policies: compiled(...set), computes: [], records: new Map(), mode: 'enforce', nowMs: NOON },
    ...{ profiles: new Map(), disruption: undefined, manualChanges: undefined },
    ...situation,
  });
}

const computes = (count: number, fields: Partial<Compute> = {}) =>
  Array.from({ length: count }, (_, index) =>
    aCompute({ computeId: `ep-${index}`, projectId: `p-${index}`, ...fields }),
  );

const recordsOf = (all: readonly Compute[], fields: Partial<ComputeRecord> = {}) =>
  new Map(all.map((compute) => [compute.computeId, aRecord({ lastApplied: { ...compute }, ...fields })]));

const verdicts = ({ computes: planned }: FleetPlan) => planned.map(({ plan }) => plan.verdict);
const gates = ({ computes: planned }: FleetPlan) => planned.map(({ plan }) => gatesOf(plan).join());

describe('planFleet', () => {
  it('orders computes by project and id, whatever the order in which they were read', () => {
    const all = computes(12);
    const there = planOf({ computes: all });
    const back = planOf({ computes: all.toReversed() });
    expect(back).toEqual(there);
    expect(there.computes.map(({ compute }) => compute.computeId)).toEqual(all.map((one) => one.computeId).sort());
  });

  it('counts restarts in the order of writing, at most five or the share', () => {
    const raised = computes(6, { minCu: 0.25, maxCu: 1 });
    const lowered = [aCompute({ computeId: 'a-low', projectId: 'a-low', minCu: 4, maxCu: 8 })];
    const all = [...lowered, ...raised];
    const rule = { lower: { when: 'any', atDeadline: 'apply' } } as const;
    const plan = planOf({ computes: all, records: recordsOf(all), disruption: rule });
    expect(gates(plan)).toEqual(['at_once', '', '', '', '', '', 'at_once']);
    const wide = planOf({ computes: all, records: recordsOf(all), disruption: { ...rule, atOnce: 1 } });
    expect(verdicts(wide)).toEqual(Array(7).fill('act'));
  });

  it('counts what was restarted within the time of at_most, by whichever daemon', () => {
    const all = computes(10, { minCu: 0.25, maxCu: 1 });
    const records = recordsOf(all);
    const minutesAgo = [9, 9, 10];
    const ids = all.map(({ computeId }) => computeId).sort();
    for (const [at, minutes] of minutesAgo.entries()) {
      const id = ids[at] ?? '';
      const lastDisruption = { atMs: NOON - minutes * 60_000, lowered: true };
      records.set(id, { ...(records.get(id) ?? aRecord()), lastDisruption });
    }
    const disruption = { atOnce: 1, cooldownMs: 0, atMost: { share: 0.3, windowMs: 10 * 60_000 } };
    const plan = planOf({ computes: all, records, disruption });
    expect(gates(plan).filter((gate) => gate === 'at_most')).toHaveLength(7);
    expect(gates(plan).slice(0, 2)).toEqual(['', '']);
    expect(
      gates(planOf({ computes: all, records, disruption: { ...disruption, atMost: { share: 1, windowMs: 60_000 } } })),
    ).toEqual(Array(10).fill(''));
    // What another policy has restarted is not among those of this one, as in the daemon.
    const heldAfter = (policy: string) => {
      for (const id of ids.slice(0, 3)) {
        const lastDisruption = { atMs: NOON - 60_000, lowered: false, policy };
        records.set(id, { ...(records.get(id) ?? aRecord()), lastDisruption });
      }
      const again = planOf({ computes: all, records, disruption: { ...disruption, cooldownMs: 3_600_000 } });
      return gates(again).filter((gate) => gate === 'at_most').length;
    };
    expect([heldAfter('office-hours'), heldAfter('another')]).toEqual([7, 4]);
  });

  it('counts computes that ebb is restarting already, and none of those that sleep', () => {
    const busy = computes(5, { state: 'active', minCu: 1, maxCu: 4 });
    const idle = aCompute({ computeId: 'z-idle', projectId: 'z-idle', state: 'idle' });
    const awake = aCompute({ computeId: 'z-next', projectId: 'z-next' });
    const records = recordsOf([...busy, idle, awake]);
    const operation = { operationId: 'op', action: 'start_compute', startedAtMs: NOON, policy: 'office-hours' };
    for (const { computeId } of busy) records.set(computeId, aRecord({ openOperations: [operation] }));
    const plan = planOf({ computes: [...busy, idle, awake], records });
    expect(gates(plan).slice(5)).toEqual(['', 'at_once']);
  });

  it('lets computes of one project wait for an operation of another of them', () => {
    const busy = aCompute({ computeId: 'ep-busy', pendingState: 'idle', minCu: 1, maxCu: 4 });
    const far = aCompute({ computeId: 'ep-far', projectId: 'p-two', state: 'idle' });
    const plan = planOf({ computes: [busy, aCompute({ state: 'idle' }), far] });
    expect(gates(plan)).toEqual(['', 'operation_running', '']);
  });

  describe('of a compute without a record', () => {
    it('holds what disconnects until the next boundary after the meeting, and nothing else', () => {
      const [active, idle] = [aCompute(), aCompute({ computeId: 'ep-two', state: 'idle' })];
      const met = planOf({ computes: [active, idle] });
      expect(met.computes.map(({ plan }) => [plan.verdict, plan.untilMs])).toEqual([
        ['wait', at('2026-03-02T18:00:00Z')],
        ['act', undefined],
      ]);
      const later = planOf({ computes: [active, idle], discoveredAtMs: MORNING - 1 });
      expect(verdicts(later)).toEqual(['act', 'act']);
    });

    it('takes the baseline that is known, else what it has', () => {
      const set = [aSchedule({ otherwise: 'baseline' })];
      const baselines = new Map([['ep-one', { minCu: 2, maxCu: 2, suspendTimeoutSeconds: 600 }]]);
      const [known] = planOf({ set, computes: [aCompute({ state: 'idle' })], baselines, nowMs: NIGHT }).computes;
      expect(known?.plan.actions).toMatchObject([{ fields: { minCu: 2, maxCu: 2, suspendTimeoutSeconds: 600 } }]);
      expect(verdicts(planOf({ set, computes: [aCompute({ state: 'idle' })], nowMs: NIGHT }))).toEqual(['none']);
    });
  });

  it('sees by the record what a person has changed since, as a daemon would', () => {
    const records = new Map([['ep-one', aRecord({ lastApplied: { minCu: 1, maxCu: 4 } })]]);
    const plan = planOf({ computes: [aCompute()], records });
    expect(gates(plan)).toEqual(['manual_change']);
  });

  it('evaluates headroom with the given counts and the profile of the account', () => {
    const headroom: HeadroomPolicy = {
      ...{ kind: 'headroom', name: 'room', file: 'f', mode: 'enforce', priority: 0, select: aSelector({}) },
      ...{ connections: 'pg', targetShare: 0.7, maxCu: 8, mayRaiseMin: false, scaleDownAfterMs: 60_000, act: 'apply' },
    };
    const at250 = [NOON - 60_000, NOON].map((atMs) => ({ atMs, connections: 250 }));
    const connections = new Map([['ep-one', new Map([['pg', at250]])]]);
    const set = [headroom];
    const [one] = planOf({
      set,
      computes: [aCompute({ maxCu: 0.5 })],
      records: recordsOf([aCompute()], { baseline: { ...settingsOf(aCompute()), maxCu: 0.5 } }),
      connections,
    }).computes;
    expect(one?.decision.desired.size).toEqual({ minCu: 0.25, maxCu: 1 });
    const lowering = { set: [headroom, aSchedule()], computes: [aCompute()], nowMs: NIGHT };
    const [unknown] = planOf({ ...lowering, connections: new Map() }).computes;
    expect(unknown?.decision.trace.map(({ code }) => code)).toContain('connections_unknown');
    expect(planOf(lowering).computes[0]?.decision.desired.size).toEqual({ minCu: 0.25, maxCu: 1 });
  });

  it('heeds holds, freezes, and how many connections the account says that a size accepts', () => {
    const computes = [aCompute({ state: 'idle', minCu: 1, maxCu: 1 })];
    const until = { createdAtMs: 0, expiresAtMs: NIGHT, owner: 'ann', reason: 'test' };
    const held = planOf({
      computes,
      holds: [{ id: 'h', projectId: 'p-one', computeId: 'ep-one', freeze: true, ...until }],
    });
    expect(gates(held)).toEqual(['held']);
    expect(gates(planOf({ computes, freezes: [{ id: 'f', select: 'all', allowRaise: false, ...until }] }))).toEqual([
      'frozen',
    ]);
    const connections = new Map([['ep-one', countsUntil(NOON, 430)]]);
    const sizes = [new Map(), new Map([['default', CONNECTION_PROFILES['vendor-2026']]])].map(
      (profiles) =>
        planOf({
          set: [aHeadroom({ targetShare: 1 })],
          computes: [aCompute({ minCu: 1, maxCu: 1 })],
          connections,
          profiles,
        }).computes[0]?.decision.desired.size?.maxCu,
    );
    expect(sizes).toEqual([1, 2]);
  });

  describe('the hash', () => {
    const [one, two] = [aCompute({ state: 'idle' }), aCompute({ computeId: 'ep-two', state: 'idle' })];
    const hashOf = (situation: Wanted) => planOf(situation).hash;
    const usual = hashOf({ computes: [one, two] });

    it('does not depend on the instant nor on what nothing is done about', () => {
      expect(hashOf({ computes: [two, one], nowMs: NOON + 60_000 })).toBe(usual);
      const done = aCompute({ computeId: 'ep-three', minCu: 1, maxCu: 4 });
      expect(hashOf({ computes: [one, two, done] })).toBe(usual);
    });

    it('changes with the size that a compute has, its timeout, its state, the desired values, and the computes', () => {
      const limited = aSchedule({ windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 3 } }] });
      const wanting = (size: Size, timeout?: number) =>
        aSchedule({
          windows: [{ at: [aWindow()], size, ...(timeout !== undefined && { suspendTimeoutSeconds: timeout }) }],
        });
      const others = [
        hashOf({ computes: [one, { ...two, maxCu: 3 }] }),
        hashOf({ computes: [one, { ...two, suspendTimeoutSeconds: 600 }] }),
        hashOf({ computes: [one, { ...two, state: 'active' }] }),
        hashOf({ computes: [one, two], set: [limited] }),
        hashOf({ computes: [one, two], set: [wanting({ minCu: 2, maxCu: 4 })] }),
        hashOf({ computes: [one, two], set: [wanting({ minCu: 1, maxCu: 4 }, 600)] }),
        hashOf({ computes: [one, two], set: [wanting({ minCu: 1, maxCu: 4 }, 900)] }),
        hashOf({ computes: [one] }),
        hashOf({ computes: [one, two], mode: 'observe' }),
        planFleet({
          ...{ computes: [one, two], records: new Map(), mode: 'enforce', nowMs: NOON, profiles: new Map() },
          ...{ disruption: undefined, manualChanges: undefined },
          policies: { ...compiled(aSchedule()), set: { policies: [aSchedule()], sources: new Map(), hash: 'other' } },
        }).hash,
      ];
      expect(new Set([usual, ...others]).size).toBe(others.length + 1);
    });
  });

  it('has nothing more to do once it was applied, in as many rounds as restarts at once allow', () => {
    fc.assert(
      fc.property(aFleet(), fc.integer({ min: 0, max: 7 * 24 * 60 }), (fleet, minute) => {
        const nowMs = at('2026-03-02T00:00:00Z') + minute * 60_000;
        const set = [aSchedule(), aRestart()];
        let situation: Wanted = { set, nowMs, computes: fleet, records: recordsOf(fleet) };
        const rounds = Math.ceil(fleet.length / 5) + 1;
        for (let round = 0; round < rounds; round += 1) situation = afterApply(planOf(situation), situation);
        const left = planOf(situation);
        expect(verdicts(left)).not.toContain('act');
        const asleep = left.computes.filter(({ compute }) => compute.state === 'idle');
        expect(asleep.map(({ plan }) => plan.verdict)).toEqual(asleep.map(() => 'none'));
      }),
      { numRuns: 60 },
    );
  });
});

function aFleet(): fc.Arbitrary<Compute[]> {
  const size = fc.constantFrom(...COMPUTE_SIZES_CU.filter((cu) => cu <= 8));
  const one = fc.record({
    ...{ minCu: size, state: fc.constantFrom('active' as const, 'idle' as const) },
    suspendTimeoutSeconds: fc.constantFrom(-1, 60, 300),
    startedAtMs: fc.constantFrom(0, NOON),
  });
  return fc
    .array(one, { maxLength: 12 })
    .map((all) =>
      all.map((fields, index) =>
        aCompute({ computeId: `ep-${index}`, projectId: `p-${index}`, maxCu: fields.minCu, ...fields }),
      ),
    );
}

function aRestart(): RestartPolicy {
  return {
    ...{ kind: 'restart', name: 'weekly', file: 'f', mode: 'enforce', priority: 0, select: aSelector({}) },
    ...{ at: [aWindow({ startMinute: 180, endMinute: 240 })], everyMs: 7 * 24 * 3_600_000 },
  };
}

/** The fleet after all actions have been carried out. */
function afterApply({ computes: planned, atMs }: FleetPlan, situation: Wanted): Wanted {
  const records = new Map(situation.records);
  const after = planned.map(({ compute, record, plan }) => {
    if (plan.verdict !== 'act') return compute;
    const fields = Object.assign({}, ...plan.actions.map((action) => action.fields));
    const restarted = plan.actions.some(({ disconnects }) => disconnects);
    records.set(compute.computeId, { ...record, lastApplied: { ...record.lastApplied, ...fields } });
    return { ...compute, ...fields, ...(restarted && { startedAtMs: atMs }) };
  });
  return { ...situation, computes: after, records };
}
