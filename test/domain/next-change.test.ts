import { describe, expect, it } from 'vitest';
import { upcomingOf, withinAnHour } from '../../src/app/operator/fleet-page.ts';
import { type Evaluation, evaluate, type Situation } from '../../src/domain/evaluate/evaluate.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import { aCompute, aFreeze, aHold, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

/** A Monday; the window of `aSchedule` (1-4 CU) ends at 18:00, and opens at 8:00. */
const NOON = at('2026-03-02T12:00:00Z');
const EVENING = '2026-03-02T18:00:00Z';
const LATER = '2026-03-02T19:21:00Z';
const compute = aCompute({ minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 });

function aPersonsFreeze(fields: Partial<Freeze> = {}): Freeze {
  const person = { id: 'f', owner: 'ann', reason: 'incident' };
  return { ...person, createdAtMs: NOON, expiresAtMs: at(LATER), select: 'all', allowRaise: false, ...fields };
}

function evaluated(also: Partial<Situation> = {}): Evaluation {
  const record = aRecord({ baseline: compute, lastApplied: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 } });
  const situation = { policies: compiled(aSchedule()), compute, record, mode: 'enforce', projectBusy: false } as const;
  return evaluate({ ...situation, nowMs: NOON, ...also });
}

const nextOf = ({ nextChangeMs }: Evaluation) => (nextChangeMs === undefined ? undefined : isoInstant(nextChangeMs));

describe('the next change', () => {
  it('is the next boundary where nobody keeps the compute as it is', () => {
    expect(nextOf(evaluated())).toBe(EVENING);
    expect(nextOf(evaluated({ freezes: [aPersonsFreeze({ expiresAtMs: NOON + 60_000 })] }))).toBe(EVENING);
  });

  it('is the end of what keeps it as it is at the boundary', () => {
    expect(nextOf(evaluated({ freezes: [aPersonsFreeze()] }))).toBe(LATER);
    expect(nextOf(evaluated({ freezes: [aPersonsFreeze({ allowRaise: true })] }))).toBe(LATER);
    const policies = compiled(
      aSchedule(),
      aFreeze({ at: [{ kind: 'interval', startMs: at('2026-03-02T17:00:00Z'), endMs: at(LATER) }] }),
    );
    expect(nextOf(evaluated({ policies }))).toBe(LATER);
    const hold = aHold({ computeId: compute.computeId, createdAtMs: NOON, expiresAtMs: at(LATER), freeze: true });
    expect(nextOf(evaluated({ holds: [hold] }))).toBe(LATER);
    expect(evaluated({ holds: [hold] }).nextBoundaryMs).toBe(at(EVENING));
  });

  it('is a raise at its boundary where a freeze allows that', () => {
    const small = aCompute({ minCu: 0.25, maxCu: 1 });
    const freezes = [aPersonsFreeze({ allowRaise: true, expiresAtMs: at('2026-03-03T12:00:00Z') })];
    const record = aRecord({ baseline: small, lastApplied: { minCu: 0.25, maxCu: 1 } });
    const night = at('2026-03-02T20:00:00Z');
    expect(nextOf(evaluated({ compute: small, record, freezes, nowMs: night }))).toBe('2026-03-03T08:00:00Z');
  });

  it('is not a boundary after which the compute is again as wanted when the freeze ends', () => {
    // At noon of the next day the window is open again.
    const freezes = [aPersonsFreeze({ expiresAtMs: at('2026-03-03T12:00:00Z') })];
    expect(nextOf(evaluated({ freezes }))).toBe('2026-03-03T18:00:00Z');
  });

  it('is the end of the respect for a manual change, not a boundary before it', () => {
    const raised = aCompute({ minCu: 8, maxCu: 8, suspendTimeoutSeconds: 300 });
    const manual = { size: { fields: { minCu: 8, maxCu: 8 }, seenAtMs: NOON, raises: true } };
    const lastApplied = { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 };
    const record = aRecord({ baseline: compute, lastApplied, manual });
    const always = aSchedule({ otherwise: { size: { minCu: 0.25, maxCu: 1 } } });
    const found = evaluated({ policies: compiled(always), compute: raised, record });
    // A raise is respected for 12 hours.
    expect(found.plan.waiting.map(({ gate }) => gate.code)).toEqual(['manual_change']);
    expect(nextOf(found)).toBe('2026-03-03T00:00:00Z');
    expect(found.respected).toEqual({ size: at('2026-03-03T00:00:00Z') });
  });

  it('is what the pages count', () => {
    const one = { evaluatedCompute: { ...evaluated({ freezes: [aPersonsFreeze()] }), compute, record: aRecord() } };
    const fleet = [{ ...one, status: 'frozen' as const, owner: 'team-api' }];
    const owners = [{ owner: 'team-api', computes: 1 }];
    expect(upcomingOf(fleet, NOON)).toEqual([{ first: LATER, last: LATER, computes: 1, owners }]);
    expect(withinAnHour(fleet, at(EVENING) - 60_000)).toEqual({ computes: 0, first: null });
  });
});
