import { describe, expect, it } from 'vitest';
import type { ReasonCode } from '../../src/domain/compute/reasons.ts';
import {
  aCompute,
  aHold,
  aRecord,
  aRestart,
  aSchedule,
  at,
  aWindow,
  compiled,
  planFor,
  told,
} from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });
const both = compiled(aSchedule({ windows: [], otherwise: { size: size(1, 4), suspendTimeoutSeconds: 60 } }));

describe('a plan', () => {
  it('that wants nothing says why', () => {
    const met = aCompute({ ...size(1, 4), suspendTimeoutSeconds: 60 });
    const because = (code: ReasonCode, message: string) =>
      told({ verdict: 'none', actions: [], why: [{ code, message }], waiting: [] });
    expect(planFor({ policies: both, compute: met, nowMs: NOON })).toEqual(
      because('nothing_to_do', 'the compute already has the desired values'),
    );
    expect(planFor({ policies: compiled(), compute: met, nowMs: NOON })).toEqual(
      because('unmatched', 'no policy selects this compute'),
    );
    const silent = compiled(aSchedule({ windows: [], otherwise: 'leave' }));
    expect(planFor({ policies: silent, compute: met, nowMs: NOON })).toEqual(
      because('no_value', 'no policy sets a value now'),
    );
    const timed = compiled(aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 60 } }));
    expect(planFor({ policies: timed, compute: met, nowMs: NOON }).reasons[0]?.code).toBe('nothing_to_do');
    const sized = compiled(aSchedule({ windows: [], otherwise: { size: size(1, 4) } }));
    expect(planFor({ policies: sized, compute: met, nowMs: NOON }).reasons[0]?.code).toBe('nothing_to_do');
  });

  it('is one PATCH of all fields, or, where both were refused together, one group at a time', () => {
    const compute = aCompute({ suspendTimeoutSeconds: 300 });
    const together = planFor({ policies: both, compute, record: aRecord(), nowMs: NOON });
    expect(together.actions).toEqual([
      {
        kind: 'update',
        fields: { ...size(1, 4), suspendTimeoutSeconds: 60 },
        disconnects: true,
        raises: true,
        policy: 'office-hours',
        priority: 0,
      },
    ]);
    const apart = planFor({ policies: both, compute, record: aRecord({ oneFieldGroupAtATime: true }), nowMs: NOON });
    expect(apart.actions.map(({ fields }) => fields)).toEqual([size(1, 4)]);
    expect(apart.reasons.map(({ message }) => message)).toEqual([expect.stringMatching(/^size /)]);
  });

  it('names each change with its values, and who wants it', () => {
    const { reasons } = planFor({ policies: both, compute: aCompute(), record: aRecord(), nowMs: NOON });
    expect(reasons).toEqual([
      {
        code: 'otherwise',
        policy: 'office-hours',
        message: 'size 0.25-2 → 1-4 CU: otherwise of office-hours, priority 0',
      },
      {
        code: 'otherwise',
        policy: 'office-hours',
        message: 'suspend_after 5m → 1m: otherwise of office-hours, priority 0',
      },
    ]);
  });

  it('says to try again at the earliest of the instants that its gates know', () => {
    const record = aRecord({
      manual: {
        size: { fields: size(0.25, 2), seenAtMs: NOON - 3_600_000, raises: false },
        suspend_timeout: { fields: { suspendTimeoutSeconds: 300 }, seenAtMs: NOON, raises: false },
      },
    });
    const { heldBy, untilMs, actions } = planFor({ policies: both, compute: aCompute(), record, nowMs: NOON });
    expect(heldBy).toEqual(['manual_change', 'manual_change']);
    expect(untilMs).toBe(NOON + 23 * 3_600_000);
    expect(actions).toMatchObject([{ fields: { ...size(1, 4), suspendTimeoutSeconds: 60 } }]);
  });

  it('of a hold names the hold', () => {
    const plan = planFor({
      policies: compiled(),
      compute: aCompute(),
      record: aRecord(),
      nowMs: NOON,
      holds: [aHold({ size: size(2) })],
    });
    expect(plan.actions).toMatchObject([{ policy: 'hold h1', priority: Number.MAX_SAFE_INTEGER }]);
    expect(plan.reasons[0]?.message).toContain('hold of ann until 2100-01-01T00:00:00Z: load test');
  });

  it('of a restart waits as its policy says', () => {
    const at = [aWindow()];
    const restart = (fields: object) =>
      planFor({
        policies: compiled(aRestart({ at, disruption: { cooldownMs: 0 }, ...fields })),
        compute: aCompute({ startedAtMs: 0 }),
        record: aRecord({ lastDisruption: { atMs: NOON, lowered: true } }),
        nowMs: NOON,
      });
    expect(restart({}).verdict).toBe('act');
    expect(restart({ disruption: { cooldownMs: 1 } }).heldBy).toEqual(['cooldown']);
  });
});
