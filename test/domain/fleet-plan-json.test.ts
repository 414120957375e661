import { describe, expect, it } from 'vitest';
import { desiredJson, fleetPlanJson } from '../../src/domain/evaluate/fleet-plan-json.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aCompute, aRecord, aRestart, aSchedule, at, compiled } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const compute = aCompute({ state: 'idle' });
const place = { project_id: 'p-one', compute_id: 'ep-one' };

const jsonOf = (policies: Policy[], one = compute, more: Partial<Parameters<typeof planFleet>[0]> = {}) =>
  fleetPlanJson(
    planFleet({
      ...{ policies: compiled(...policies), computes: [one], records: new Map([[one.computeId, aRecord()]]) },
      ...{ mode: 'enforce', nowMs: NOON, profiles: new Map(), disruption: undefined, manualChanges: undefined },
      ...more,
    }),
  );

describe('a plan for other programs', () => {
  it('names what there is, what is wanted, and what is sent for it', () => {
    expect(jsonOf([aSchedule()])).toStrictEqual({
      at: '2026-03-02T12:00:00Z',
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      computes: [
        {
          ...place,
          current: { min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: 300, state: 'idle' },
          desired: { min_cu: 1, max_cu: 4, suspend_timeout_seconds: 300 },
          verdict: 'act',
          actions: [{ kind: 'update', fields: { min_cu: 1, max_cu: 4 }, disconnects: false }],
          reasons: [
            {
              code: 'window_open',
              policy: 'office-hours',
              message: 'size 0.25-2 → 1-4 CU: window 1 of office-hours, priority 0, open since 2026-03-02T08:00:00Z',
            },
          ],
        },
      ],
    });
  });

  it('says until when it waits, and sends only the fields that differ', () => {
    const timeout = aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 60 } });
    expect(jsonOf([timeout]).computes[0]).toMatchObject({
      desired: { min_cu: null, max_cu: null, suspend_timeout_seconds: 60 },
      actions: [{ fields: { suspend_timeout_seconds: 60 } }],
    });
    const lowering = jsonOf([aSchedule()], aCompute({ minCu: 2, maxCu: 8 }), { records: new Map(), nowMs: NOON });
    expect(lowering.computes[0]).toMatchObject({ verdict: 'wait', until: '2026-03-02T18:00:00Z' });
  });

  it('gives a restart no fields, and what is as it should be a reason without a policy', () => {
    const awake = aCompute({ startedAtMs: 0 });
    expect(jsonOf([aRestart()], awake).computes[0]?.actions).toStrictEqual([{ kind: 'restart', disconnects: true }]);
    expect(jsonOf([]).computes[0]).toStrictEqual({
      ...place,
      current: { min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: 300, state: 'idle' },
      desired: { min_cu: null, max_cu: null, suspend_timeout_seconds: null },
      verdict: 'none',
      actions: [],
      reasons: [{ code: 'unmatched', message: 'no policy selects this compute' }],
    });
  });
});

describe('what a decision leads to', () => {
  const wanted = (cu: number | null, suspendTimeoutSeconds: number | null) => ({
    size: cu === null ? null : { minCu: cu, maxCu: cu },
    suspendTimeoutSeconds,
  });
  const has = aCompute({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: 300 });

  it.each([
    ['what enforcing policies want, where it differs from what there is', [2, 60], [4, 600], [2, 60]],
    ['what all want, where enforcing ones want nothing', [null, null], [4, 600], [4, 600]],
    ['what all want, where enforcing ones have what they want', [1, 300], [4, 600], [4, 600]],
    ['field by field', [2, 300], [4, 600], [2, 600]],
  ] as const)('is %s', (_what, [size, timeout], [allSize, allTimeout], [cu, seconds]) => {
    const decision = { enforced: wanted(size, timeout), desired: wanted(allSize, allTimeout) };
    expect(desiredJson(decision, has)).toEqual({ min_cu: cu, max_cu: cu, suspend_timeout_seconds: seconds });
  });
});
