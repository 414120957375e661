import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { knownCompute } from '../../src/app/operator/fleet-page.ts';
import { setFreeze } from '../../src/app/operator/freezes.ts';
import { findHold, listHolds, setHold } from '../../src/app/operator/holds.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import { status } from '../../src/app/operator/status.ts';
import { logEvents } from '../../src/app/telemetry/log-events.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { HOUR_MS } from '../../src/domain/time/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { WithAudit } from '../../src/ports/store.ts';
import { aCompute, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector, bounded } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const cap: LimitsPolicy = {
  ...{ kind: 'limits', name: 'cap', file: 'f.yaml', mode: 'enforce', priority: 0 },
  ...{ select: aSelector({ projects: ['*'] }), size: { maxCu: 4 }, hard: true },
};

/** A daemon that has concluded about one compute, with what it was told. */
function operatorOf(set: Policy[], compute = aCompute(), record = aRecord(), holds: Hold[] = []) {
  const policies = compiled(...set);
  const clock = { now: () => NOON, monotonicMs: () => 0 } as Clock;
  const fleet = createFleet({ clock });
  const judgement = evaluate({ policies, compute, record, holds, nowMs: NOON, mode: 'enforce', projectBusy: false });
  fleet.putEvaluated({ compute, record, ...judgement });
  const told: string[] = [];
  const put = async (_entry: unknown, { audit }: WithAudit) => {
    told.push(...(audit?.reasons ?? []).map(({ message }) => message));
    return { ok: true };
  };
  const parts = {
    ...{ ...REAL, log: memoryLog(), now: async () => NOON, requestReconciles: async () => {} },
    store: {
      pendingWrites: async () => [],
      ...{ putHold: put, putFreeze: put, generation: async () => undefined },
      ...{
        holds: async () => holds,
        freezes: async () => [],
        projectIds: async () => holds.map(({ projectId }) => projectId),
      },
      records: async () => new Map(holds.map(({ computeId }) => [computeId, record])),
      usage: async () => new Map(),
      document: async () => undefined,
      documents: async () => new Map(),
      outboxCounts: async () => ({ receivers: [], lost: 0 }),
    },
    daemon: {
      ...{
        fleet,
        mode: 'enforce',
        policies: () => policies,
        revision: () => undefined,
        facts: () => [],
        apiLimits: () => [],
        refusedProjects: () => [],
        herds: () => [],
        staged: () => [],
        owners: () => [],
      },
      ...{ policyProblems: () => [], readiness: async () => ({ ready: true, checks: [] }) },
    },
  } as unknown as OperatorParts;
  const add = (one: Compute) => fleet.putEvaluated({ compute: one, record, ...judgement });
  return { parts, told, plan: judgement.plan, compute, add };
}

const asked = { owner: 'ann', reason: 'import', forSeconds: 3600 };

describe('what people are told', () => {
  it('of a hold beyond a hard limit: which policy caps it, and to what', async () => {
    const { parts } = operatorOf([aSchedule(), cap]);
    const hold = (maxCu: number) => setHold(parts, { ...asked, compute: 'ep-one', size: { minCu: 2, maxCu } });
    const limited = 'hard limit cap caps it: 2-8 CU → 2-4 CU';
    expect(await hold(8)).toMatchObject({ ok: true, value: { limited, size: { max_cu: 8 } } });
    expect(await hold(4)).toMatchObject({ ok: true, value: { limited: null } });
  });

  it('of a compute that the daemon does not know: whether it has read all projects', () => {
    const { parts } = operatorOf([aSchedule()]);
    const { fleet } = parts.daemon as NonNullable<OperatorParts['daemon']>;
    const said = () => knownCompute(parts as Parameters<typeof knownCompute>[0], 'ep-other');
    const unknown = 'ebb does not know a compute ep-other: check the id, or write PROJECT/COMPUTE';
    expect(said()).toMatchObject({ error: { message: unknown } });
    fleet.list({ account: 'default', projectId: 'p-new', name: 'new', regionId: 'r', updatedAtMs: 0 });
    expect(said()).toMatchObject({ error: { message: `${unknown}; this daemon has not read 1 project yet` } });
  });

  it('of a held compute that a person has changed since: that the hold does not decide now, and until when', async () => {
    const place = { projectId: 'p-one', computeId: 'ep-one', id: 'h-1', owner: 'ann', reason: 'load' };
    const hold: Hold = {
      ...place,
      createdAtMs: NOON - 60_000,
      expiresAtMs: NOON + HOUR_MS,
      size: { minCu: 2, maxCu: 4 },
    };
    const mark = { fields: { minCu: 1, maxCu: 1 }, seenAtMs: NOON - 30_000, raises: false };
    const record = aRecord({ lastApplied: { minCu: 2, maxCu: 4 }, manual: { size: mark } });
    const { parts } = operatorOf([aSchedule()], aCompute({ minCu: 1, maxCu: 1 }), record, [hold]);
    const said = async (of: OperatorParts) => {
      const [summary, list, one] = [await status(of), await listHolds(of, { limit: 10 }), await findHold(of, 'h-1')];
      if (!summary.ok || !list.ok || !one.ok) throw new Error('not answered');
      return [...summary.value.holds, ...list.value.items, one.value].map(({ limited }) => limited);
    };
    const changed = 'not now: size changed by a person: 2-4 CU → 1 CU';
    const withEnd = `${changed}; respected until 2026-03-02T13:00:00Z`;
    expect(await said(parts)).toEqual([withEnd, withEnd, withEnd]);
    const { daemon: _none, ...ofStore } = parts;
    expect(await said(ofStore)).toEqual([changed, changed, changed]);
    hold.createdAtMs = NOON;
    expect(await said(parts)).toEqual([null, null, null]);
  });

  it('of a hold beyond a hard limit where no daemon is asked: what the policies of this machine say of its ids', async () => {
    const byName = { ...cap, name: 'by-name', select: aSelector({ projects: ['shop-*'] }) };
    const elsewhere = { ...cap, name: 'elsewhere', select: aSelector({ computes: ['ep-two'] }) };
    const limitedBy = async (policies: Policy[] | undefined, areCurrent: boolean, maxCu = 8) => {
      const { daemon: _none, ...parts } = operatorOf([]).parts;
      const known = policies && { set: compiled(...policies).set, areCurrent };
      const request = { ...asked, compute: 'p-one/ep-one', size: { minCu: 2, maxCu } };
      const held = await setHold({ ...parts, policies: async () => known }, request);
      return held.ok && held.value.limited;
    };
    const unknown = 'hard limits still apply, and those of the daemons are not known here';
    expect(await limitedBy([cap], true)).toBe('hard limit cap caps it: 2-8 CU → 2-4 CU');
    expect(await limitedBy([byName], true)).toBe('hard limit by-name may cap it: 2-8 CU → 2-4 CU');
    expect(await limitedBy([cap], false)).toBe('hard limit cap may cap it: 2-8 CU → 2-4 CU');
    expect(await limitedBy([cap, elsewhere], true, 4)).toBe(null);
    expect([await limitedBy([elsewhere], false), await limitedBy(undefined, false)]).toEqual([unknown, unknown]);
  });

  it('of a project that is named for a compute: its only one, or which there are', async () => {
    const { parts, add } = operatorOf([aSchedule()], aCompute({ projectName: 'web shop' }));
    const hold = (compute: string) => setHold(parts, { ...asked, compute, freeze: true });
    for (const name of ['ep-one', 'p-one', 'web shop', 'p-one/ep-one']) {
      expect(await hold(name)).toMatchObject({ ok: true, value: { compute_id: 'ep-one', project_id: 'p-one' } });
    }
    add(aCompute({ projectName: 'web shop', computeId: 'ep-a' }));
    const message = 'web shop has 2 computes, name one: ep-a, ep-one';
    expect(await hold('web shop')).toMatchObject({ ok: false, error: { code: 'invalid', message } });
    expect(await hold('nobody')).toMatchObject({ ok: false, error: { code: 'not_found' } });
  });

  it('of a freeze: its selector', async () => {
    const { parts, told } = operatorOf([aSchedule()]);
    await setFreeze(parts, { ...asked, select: bounded({ projects: ['web-eu-*'] }), allowRaise: false });
    expect(told).toEqual(['frozen: projects=web-eu-*, until 2026-03-02T13:00:00Z: import']);
  });

  it('of a change by hand: from what to what, and until when it is respected', async () => {
    const size = { minCu: 2, maxCu: 8 };
    const record = aRecord({
      lastApplied: { minCu: 1, maxCu: 4 },
      manual: { size: { fields: size, seenAtMs: NOON - 1000, raises: false } },
    });
    const { parts } = operatorOf([aSchedule()], aCompute({ ...size, state: 'idle' }), record);
    const message = 'size changed by a person: 1-4 CU → 2-8 CU; respected until 2026-03-02T18:00:00Z';
    expect(await status(parts)).toMatchObject({ value: { manual_changes: [{ compute_id: 'ep-one', message }] } });
  });

  it('of what waits beside what is written: what waits', () => {
    const lower = aSchedule({
      ...{ windows: [], otherwise: { size: { minCu: 0.25, maxCu: 1 }, suspendTimeoutSeconds: 60 } },
      disruption: { lower: { when: 'idle', atDeadline: 'apply' } },
    });
    const { plan, compute } = operatorOf([lower], aCompute({ state: 'active' }));
    expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: { suspendTimeoutSeconds: 60 } }] });
    const log = memoryLog();
    const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
    logEvents({ log, metrics })({ kind: 'held_back', compute, plan });
    expect(log.lines[0]?.fields).toHaveProperty('new', { min_cu: 0.25, max_cu: 1 });
    expect(log.lines[0]?.message).toMatch(
      /^waits: ep-one of web-shop: size \S+ → 0.25-1 CU: it would disconnect clients/,
    );
  });
});
