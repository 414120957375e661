import { describe, expect, it } from 'vitest';
import type { Compute, Desired } from '../../../src/domain/compute/compute.ts';
import type { ReasonCode } from '../../../src/domain/compute/reasons.ts';
import { type Decision, decide } from '../../../src/domain/decide/decide.ts';
import { isReverted } from '../../../src/domain/evaluate/evaluate.ts';
import { updatedRecord, withProjectName } from '../../../src/domain/evaluate/updated-record.ts';
import { detectManualChanges, withAgreed } from '../../../src/domain/plan/manual-changes.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import { isFightStopped, withoutReversals, withReversal } from '../../../src/domain/records/fights.ts';
import {
  aCompute,
  aHeadroom,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  at,
  compiled,
  countsUntil,
  planFor,
} from '../../support/builders.ts';
import { aSelector } from '../../support/selectors.ts';

const HOUR_MS = 3_600_000;
const NOON = at('2026-03-02T12:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });
const wanting = (wanted: ReturnType<typeof size>) => aSchedule({ windows: [], otherwise: { size: wanted } });
type Options = Partial<Parameters<typeof planFor>[0]>;

const planWith = (policies: Policy[], options: Options) =>
  planFor({ policies: compiled(...policies), compute: aCompute(), record: aRecord(), nowMs: NOON, ...options });

describe('of a newly discovered compute', () => {
  const record = aRecord({ lastApplied: {}, enforcedSinceMs: NOON });

  it('without a boundary in sight, what would disconnect waits for a day', () => {
    const day = 24 * HOUR_MS;
    expect(planWith([wanting(size(4))], { record })).toMatchObject({
      heldBy: ['newly_discovered'],
      untilMs: NOON + day,
    });
    expect(planWith([wanting(size(4))], { record, nowMs: NOON + day - 1 }).heldBy).toEqual(['newly_discovered']);
    expect(planWith([wanting(size(4))], { record, nowMs: NOON + day }).verdict).toBe('act');
  });

  it('connections at critical do not wait', () => {
    const policies = [wanting(size(0.25, 2)), aHeadroom({ criticalShare: 0.9 })];
    expect(planWith(policies, { record, connections: countsUntil(NOON, 850) }).verdict).toBe('act');
    expect(planWith(policies, { record, connections: countsUntil(NOON, 750) }).heldBy).toEqual(['newly_discovered']);
  });

  it('a policy that says so waits for nothing', () => {
    const policies = [{ ...wanting(size(4)), disruption: { newlyDiscovered: 'act' as const } }];
    expect(planWith(policies, { record }).verdict).toBe('act');
  });

  it('a compute without a record counts from now', () => {
    const plan = planWith([aSchedule()], { record: undefined });
    expect(plan).toMatchObject({ heldBy: ['newly_discovered'], untilMs: SIX });
    expect(plan.reasons.at(-1)?.message).toBe(
      'ebb has just discovered this active compute: waiting for sleep or for the next boundary',
    );
  });

  it('a compute that sleeps is changed, also without a record', () => {
    expect(planWith([aSchedule()], { record: undefined, compute: aCompute({ state: 'idle' }) }).heldBy).toEqual([]);
  });

  it('a day is the longest wait, also where the next boundary is later', () => {
    const friday = at('2026-03-06T19:00:00Z');
    const late = aRecord({ lastApplied: {}, enforcedSinceMs: friday });
    const lower = { when: 'any', atDeadline: 'apply' } as const;
    const planAt = (nowMs: number) => planWith([aSchedule({ disruption: { lower } })], { record: late, nowMs });
    expect(planAt(friday)).toMatchObject({ heldBy: ['newly_discovered'], untilMs: friday + 24 * HOUR_MS });
    expect(planAt(friday + 24 * HOUR_MS).verdict).toBe('act');
  });

  it('is over once ebb has changed the size', () => {
    const lastChanges = { size: { before: size(2), to: size(1), answeredAtMs: NOON } };
    const applied = aRecord({ lastApplied: size(1), lastChanges, enforcedSinceMs: NOON });
    expect(planWith([wanting(size(4))], { record: applied }).verdict).toBe('act');
  });

  it('is not over because the size was as policies wanted it, until other policies came', () => {
    const compute = aCompute(size(2));
    const baseline = { ...size(2), suspendTimeoutSeconds: 300 };
    const decision = decide({ policies: compiled(aLimits()), compute, baseline, instantMs: NOON });
    const agreed = withAgreed(record, compute, decision);
    expect(agreed.lastApplied).toMatchObject(size(2));
    const later = { compute, record: agreed, nowMs: NOON + 300_000 };
    expect(planWith([aSchedule(), aLimits()], later)).toMatchObject({ heldBy: ['newly_discovered'], untilMs: SIX });
  });
});

describe('a project that another name brings into the scope of a team', () => {
  const nameable = {
    ...wanting(size(4)),
    name: 'web/office',
    team: 'web',
    select: aSelector({ projects: ['web-*'] }),
  };
  const shop = aCompute({ projectName: 'shop', maxCu: 2 });
  const web = aCompute({ projectName: 'web-shop', maxCu: 2 });
  const office = { ...aSchedule(), name: 'web/office', team: 'web', select: nameable.select };
  const renamedAt = (nowMs: number, policy: Policy) => {
    const policies = compiled(policy);
    const known = withProjectName(aRecord(), shop, policies, NOON - HOUR_MS);
    return withProjectName(known, web, policies, nowMs);
  };

  it('is not changed before its next boundary, asleep or awake, or for a day without one', () => {
    const record = renamedAt(NOON, office);
    expect(record.renamed).toEqual({ from: 'shop', atMs: NOON, by: ['web/office'] });
    const plan = planWith([office], { record, compute: { ...web, state: 'idle' } });
    expect(plan).toMatchObject({ verdict: 'wait', heldBy: ['renamed'], untilMs: SIX });
    expect(plan.reasons.at(-1)?.message).toBe(
      'its project was called "shop" until 2026-03-02T12:00:00Z, and web/office did not select it: waiting for the next boundary',
    );
    expect(planWith([office], { record, compute: web, nowMs: SIX }).heldBy).not.toContain('renamed');
    expect(planWith([nameable], { record, compute: web }).untilMs).toBe(NOON + 24 * HOUR_MS);
  });

  it('is not changed sooner because it is renamed once more, and is held again if its boundary has passed', () => {
    const policies = compiled(office, { ...nameable, name: 'web/shops', team: 'web' });
    const again = aCompute({ projectName: 'web-site', maxCu: 2 });
    const first = renamedAt(NOON, office);
    const second = withProjectName(first, again, policies, NOON + 1);
    expect(second).toMatchObject({
      projectName: 'web-site',
      renamed: { from: 'shop', by: ['web/office', 'web/shops'] },
    });
    expect(withProjectName(first, again, compiled(office), NOON + 1).renamed).toEqual(first.renamed);
    expect(withProjectName(first, again, compiled(office), SIX).renamed).toBeUndefined();
    const b = { ...office, name: 'b/office', team: 'b', select: aSelector({ projects: ['web-site'] }) };
    expect(withProjectName(first, again, compiled(office, b), SIX).renamed).toEqual({
      ...{ from: 'web-shop', atMs: SIX, by: ['b/office'] },
    });
  });

  it('is changed as a person says', () => {
    const holds = [aHold({ projectId: web.projectId, computeId: web.computeId, createdAtMs: NOON + 1, size: size(8) })];
    const plan = planWith([office], { record: renamedAt(NOON, office), compute: web, holds, nowMs: NOON + 2 });
    expect(plan.heldBy).not.toContain('renamed');
  });

  it('is nothing where the team had selected it before, where it leaves the scope, or where no policy is of a team', () => {
    const all = { ...office, select: aSelector({ projects: ['*'] }) };
    expect(renamedAt(NOON, all).renamed).toBeUndefined();
    const back = withProjectName(renamedAt(NOON, office), shop, compiled(office), NOON + 1);
    expect(back).toMatchObject({ projectName: 'shop' });
    expect(back.renamed).toBeUndefined();
    const plain = aRecord();
    expect(withProjectName(plain, web, compiled(aSchedule()), NOON)).toBe(plain);
  });
});

describe('a change by hand', () => {
  const compute = aCompute(size(2, 8));
  const marked = (raises: boolean, seenAtMs: number, group: 'size' | 'suspend_timeout' = 'size'): ComputeRecord =>
    aRecord({
      manual: { [group]: { fields: group === 'size' ? size(2, 8) : { suspendTimeoutSeconds: 300 }, seenAtMs, raises } },
    });
  const idle = { ...compute, state: 'idle' as const };

  it('is respected until the next boundary of its field', () => {
    const record = marked(false, NOON);
    const held = planWith([aSchedule()], { compute: idle, record });
    expect(held).toMatchObject({ heldBy: ['manual_change'], untilMs: SIX });
    expect(held.reasons.at(-1)?.message).toBe(
      'size changed by a person: 0.25-2 CU → 2-8 CU; respected until 2026-03-02T18:00:00Z',
    );
    expect(planWith([aSchedule()], { compute: idle, record, nowMs: SIX - 1 }).verdict).toBe('wait');
    expect(planWith([aSchedule()], { compute: idle, record, nowMs: SIX }).verdict).toBe('act');
  });

  it('of one field knows nothing of the boundaries of the other', () => {
    const timeouts = aSchedule({
      windows: [{ at: [{ kind: 'interval', startMs: 0, endMs: NOON + HOUR_MS }], suspendTimeoutSeconds: 60 }],
      otherwise: { size: size(1), suspendTimeoutSeconds: 600 },
    });
    const sized = planWith([timeouts], {
      compute: { ...idle, suspendTimeoutSeconds: 60 },
      record: marked(false, NOON),
    });
    expect(sized.untilMs).toBe(NOON + 24 * HOUR_MS);
    const timed = planWith([timeouts], {
      compute: { ...idle, ...size(1) },
      record: marked(false, NOON, 'suspend_timeout'),
    });
    expect(timed).toMatchObject({ heldBy: ['manual_change'], untilMs: NOON + HOUR_MS });
  });

  it.each<[string, boolean, Options, number]>([
    ['that raises is respected for 12 h at least', true, {}, NOON + 12 * HOUR_MS],
    [
      'is respected for as long as the settings say',
      true,
      { manualChanges: { kind: 'respect-for', forMs: HOUR_MS } },
      NOON + HOUR_MS,
    ],
  ])('%s', (_what, raises, options, untilMs) => {
    expect(planWith([aSchedule()], { compute: idle, record: marked(raises, NOON), ...options }).untilMs).toBe(untilMs);
  });

  it('is respected as the policy says before what the settings say', () => {
    const revert = aSchedule({ manualChanges: { kind: 'revert' } });
    expect(
      planWith([revert], { compute: idle, record: marked(true, NOON), manualChanges: { kind: 'respect' } }).verdict,
    ).toBe('act');
  });

  it('of a raise outlives a later boundary no longer than that', () => {
    const at7am = at('2026-03-02T07:00:00Z');
    const record = marked(true, at7am);
    expect(planWith([aSchedule()], { compute: idle, record }).untilMs).toBe(at7am + 12 * HOUR_MS);
    expect(planWith([wanting(size(1))], { compute: idle, record }).untilMs).toBe(at7am + 24 * HOUR_MS);
  });

  it('yields to hard limits that it goes beyond, not to those that it keeps', () => {
    const record = marked(true, NOON);
    const hard = (maxCu: number) => [wanting(size(1)), aLimits({ hard: true, size: { maxCu } })];
    expect(planWith(hard(4), { compute: idle, record }).verdict).toBe('act');
    expect(planWith(hard(8), { compute: idle, record }).heldBy).toEqual(['manual_change']);
    const soft = [wanting(size(1)), aLimits({ size: { maxCu: 4 } })];
    expect(planWith(soft, { compute: idle, record }).heldBy).toEqual(['manual_change']);
    const observing = [wanting(size(1)), aLimits({ hard: true, mode: 'observe' })];
    expect(planWith(observing, { compute: idle, record }).heldBy).toEqual(['manual_change']);
  });

  it('yields to headroom at critical', () => {
    const policies = [wanting(size(2)), aHeadroom({ criticalShare: 0.9 })];
    const lowered = aCompute(size(1));
    const record = aRecord({ manual: { size: { fields: size(1), seenAtMs: NOON, raises: false } } });
    const counts = (connections: number) => ({ compute: lowered, record, connections: countsUntil(NOON, connections) });
    expect(planWith(policies, counts(405)).verdict).toBe('act');
    expect(planWith(policies, counts(404)).heldBy).toEqual(['manual_change']);
  });

  it('holds back neither the other field nor a restart', () => {
    const both = aSchedule({ windows: [], otherwise: { size: size(1), suspendTimeoutSeconds: 60 } });
    expect(planWith([both], { compute: idle, record: marked(true, NOON) })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: { suspendTimeoutSeconds: 60 } }],
      heldBy: ['manual_change'],
    });
  });
});

describe('noticing changes by hand', () => {
  const notice = (before: ComputeRecord, compute: Compute, nowMs: number, isReverted = () => false) =>
    detectManualChanges(before, compute, { nowMs, readAtMs: nowMs }, isReverted);
  const record = aRecord({ lastApplied: { ...size(1, 4), suspendTimeoutSeconds: 300 } });
  const changed = aCompute({ ...size(1, 8), suspendTimeoutSeconds: 300 });

  it('marks a value that is not what ebb applied, group by group', () => {
    const noticed = notice(record, changed, NOON);
    expect(noticed.manual).toEqual({ size: { fields: size(1, 8), seenAtMs: NOON, raises: true } });
    expect(noticed.baseline).toBe(record.baseline);
    const timed = notice(record, aCompute({ ...size(1, 4), suspendTimeoutSeconds: 60 }), NOON);
    expect(timed.manual).toEqual({
      suspend_timeout: { fields: { suspendTimeoutSeconds: 60 }, seenAtMs: NOON, raises: false },
    });
    expect(timed.baseline).toBe(record.baseline);
  });

  it('takes it as the baseline once a reading 30 s later shows it too', () => {
    const noticed = notice(record, changed, NOON);
    expect(notice(noticed, changed, NOON + 29_999)).toBe(noticed);
    const sameReading = { nowMs: NOON + 30_000, readAtMs: NOON };
    expect(detectManualChanges(noticed, changed, sameReading, () => false)).toBe(noticed);
    const confirmed = notice(noticed, changed, NOON + 30_000);
    expect(confirmed.baseline).toEqual({ ...size(1, 8), suspendTimeoutSeconds: 300 });
    const { minCu, maxCu } = record.baseline;
    expect(confirmed.baselineChanges).toEqual({ size: { seenAtMs: NOON, before: { minCu, maxCu } } });
    expect(confirmed.manual).toEqual(noticed.manual);
    expect(confirmed).not.toHaveProperty('baselineCandidates');
  });

  it('never takes as the baseline what only one reading showed', () => {
    const noticed = notice(record, changed, NOON);
    const gone = notice(noticed, aCompute(size(1, 4)), NOON + 1_000);
    expect(gone).not.toHaveProperty('baselineCandidates');
    const again = notice(gone, changed, NOON + 31_000);
    expect(again.baseline).toBe(record.baseline);
    expect(notice(again, changed, NOON + 61_000).baseline).toMatchObject(size(1, 8));
  });

  it('leaves the baseline as it was where it does not stay', () => {
    const noticed = notice(record, changed, NOON, () => true);
    expect(noticed.manual?.size?.fields).toEqual(size(1, 8));
    expect(notice(noticed, changed, NOON + 60_000, () => true).baseline).toBe(record.baseline);
  });

  it('is reverted where a policy, or else the settings, say so and something else is wanted', () => {
    const situation = { policies: compiled(aSchedule()), compute: changed, record, nowMs: NOON };
    expect(isReverted(situation, 'size')).toBe(false);
    expect(isReverted({ ...situation, manualChanges: { kind: 'revert' } }, 'size')).toBe(true);
    const reverting = compiled(aSchedule({ manualChanges: { kind: 'revert' } }));
    expect(isReverted({ ...situation, policies: reverting }, 'size')).toBe(true);
    const content = compiled({ ...wanting(size(1, 8)), manualChanges: { kind: 'revert' } });
    expect(isReverted({ ...situation, policies: content }, 'size')).toBe(false);
  });

  it('is not reverted where only a policy that observes wants something else', () => {
    const manualChanges = { kind: 'revert' } as const;
    const situation = { compute: changed, record, nowMs: NOON, manualChanges };
    const observing = compiled(aSchedule({ mode: 'observe', manualChanges }));
    expect(isReverted({ ...situation, policies: observing }, 'size')).toBe(false);
    const later = updatedRecord(record, changed, { ...situation, policies: observing, nowMs: NOON });
    const confirmed = updatedRecord(later, changed, { ...situation, policies: observing, nowMs: NOON + 30_000 });
    expect(confirmed.baseline).toMatchObject(size(1, 8));
  });

  it('keeps the instant at which it was first seen, until the value changes again', () => {
    const noticed = notice(record, changed, NOON);
    expect(notice(noticed, changed, NOON + 1)).toBe(noticed);
    const again = notice(noticed, aCompute(size(0.5)), NOON + 2);
    expect(again.manual?.size).toEqual({ fields: size(0.5), seenAtMs: NOON + 2, raises: false });
  });

  it('forgets it once the value is back', () => {
    const noticed = notice(record, aCompute({ ...size(1, 8), suspendTimeoutSeconds: 60 }), NOON);
    expect(noticed.manual?.suspend_timeout?.raises).toBe(false);
    const halfBack = notice(noticed, changed, NOON + 1);
    expect(Object.keys(halfBack.manual ?? {})).toEqual(['size']);
    expect(notice(halfBack, aCompute(size(1, 4)), NOON + 2)).not.toHaveProperty('manual');
    expect(notice(record, aCompute(size(1, 4)), NOON)).toBe(record);
  });

  it('sees no manual change while a change of ebb or any operation is under way, nor in what ebb never applied', () => {
    const open = { operationId: 'op', action: 'apply_config', startedAtMs: NOON };
    const intent = { fields: size(1, 8), atMs: NOON };
    for (const busy of [
      { ...record, intent },
      { ...record, openOperations: [open] },
    ]) {
      expect(notice(busy, changed, NOON)).toBe(busy);
    }
    expect(notice(record, { ...changed, pendingState: 'active' }, NOON)).toBe(record);
  });

  it('lets the baseline be what is there, as long as ebb has changed nothing', () => {
    const untouched = aRecord({ lastApplied: {} });
    const noticed = notice(untouched, changed, NOON);
    expect(noticed).not.toHaveProperty('manual');
    expect(noticed.baseline).toMatchObject({ minCu: changed.minCu, maxCu: changed.maxCu });
  });

  describe('what policies want by now', () => {
    const decided = (wanted: Partial<Desired>, code: ReasonCode = 'window_open'): Decision => ({
      ...decide({ policies: compiled(), compute: changed, baseline: undefined, instantMs: NOON }),
      enforced: { size: null, suspendTimeoutSeconds: null, ...wanted },
      enforcedDeciders: { size: { group: 'size', code } },
    });
    const noticed = notice(record, changed, NOON);

    it("is ebb's own, no matter who has set it", () => {
      const agreed = withAgreed(noticed, changed, decided({ size: size(1, 8) }));
      expect(agreed).not.toHaveProperty('manual');
      expect(agreed.lastApplied).toEqual({ ...size(1, 8), suspendTimeoutSeconds: 300 });
      const met = withAgreed(aRecord({ lastApplied: {} }), changed, decided({ size: size(1, 8) }));
      expect(met.lastApplied).toEqual(size(1, 8));
    });

    it('is not, where something else is wanted, nothing, or only counts are missing', () => {
      expect(withAgreed(noticed, changed, decided({ size: size(1, 4), suspendTimeoutSeconds: 300 }))).toBe(noticed);
      expect(withAgreed(noticed, changed, decided({ suspendTimeoutSeconds: 300 }))).toBe(noticed);
      for (const code of ['connections_unknown', 'stabilising'] as const) {
        expect(withAgreed(noticed, changed, decided({ size: size(1, 8) }, code))).toBe(noticed);
      }
    });
  });
});

describe('a fight', () => {
  const DAY_MS = 24 * HOUR_MS;
  const reversedAt = (...instants: number[]) =>
    instants.reduce((record, ms) => withReversal(record, 'size', ms), aRecord());

  it.each<[string, number[], boolean]>([
    ['goes on after two reversals in a day', [0, 1], false],
    ['stops at the third in a day', [0, 1, DAY_MS - 1], true],
    ['counts a day as 24 hours', [DAY_MS - 2, DAY_MS - 1, 2 * DAY_MS - 2], false],
    ['stops on the third of seven days', [0, 3 * DAY_MS, 6 * DAY_MS + 1], true],
    ['goes on when the days are further apart', [0, 3 * DAY_MS, 7 * DAY_MS], false],
    ['goes on when two of the three are on one day', [0, 1, 6 * DAY_MS], false],
    ['stays stopped for ever', [0, 1, 2, 100 * DAY_MS], true],
  ])('%s', (_what, instants, stopped) => {
    expect(isFightStopped(reversedAt(...instants), 'size')).toBe(stopped);
  });

  it('keeps no more than ten reversals', () => {
    const instants = Array.from({ length: 12 }, (_, index) => index);
    expect(reversedAt(...instants).reversals?.size).toEqual(instants.slice(2));
  });

  it('does not stand against what a person asks for', () => {
    const record = reversedAt(NOON, NOON, NOON);
    expect(planWith([], { record, holds: [aHold({ size: size(8) })] })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: size(8) }],
    });
  });

  it('leaves its field alone until it is released, and the other one not', () => {
    const record = reversedAt(NOON, NOON, NOON);
    const both = aSchedule({ windows: [], otherwise: { size: size(1), suspendTimeoutSeconds: 60 } });
    expect(planWith([both], { record })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: { suspendTimeoutSeconds: 60 } }],
      heldBy: ['fight_stopped'],
    });
    expect(planWith([both], { record }).reasons.at(-1)?.message).toBe(
      'changed back too often; left alone until released: ebb release',
    );
    expect(planWith([both], { record: withoutReversals(record), compute: aCompute({ state: 'idle' }) }).heldBy).toEqual(
      [],
    );
    expect(isFightStopped(undefined, 'size')).toBe(false);
  });
});
