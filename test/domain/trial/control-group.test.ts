import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordAfter } from '../../../src/app/apply/record-update.ts';
import { nextBoundary, searchBoundary } from '../../../src/domain/decide/boundaries.ts';
import { trialOf } from '../../../src/domain/decide/control-group.ts';
import { decide } from '../../../src/domain/decide/decide.ts';
import { evaluate, isReverted, type Situation } from '../../../src/domain/evaluate/evaluate.ts';
import { changesSizeAtFirstFlip, withTrials } from '../../../src/domain/evaluate/trials.ts';
import { forecast, forecastFleet } from '../../../src/domain/forecast/forecast.ts';
import type { Action } from '../../../src/domain/plan/plan.ts';
import type { SchedulePolicy } from '../../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { unloadedPart } from '../../../src/domain/policy/team-parts.ts';
import { armAt, drawOf, flipsOf } from '../../../src/domain/trial/assignment.ts';
import {
  aCompute,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  aTrial,
  at,
  aWindow,
  compiled,
  told,
} from '../../support/builders.ts';
import { aSelector } from '../../support/selectors.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TRIAL = aTrial();
const { design } = TRIAL;
const FROM = at('2026-03-02T00:00:00Z');
/** Mon–Fri 08:00–18:00 UTC 1–4 CU, else 0.25–1; 5 minutes always. */
const OFFICE = aSchedule();
const BASELINE = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 };

/** A project that is in the control group in the period, and when it flips into it. */
function unitIn(period: number) {
  for (let index = 0; ; index += 1) {
    const projectId = `p-${index}`;
    const draw = drawOf(design, projectId);
    if ((period + draw.slot) % design.oneOf === 0) {
      return {
        compute: aCompute({ projectId, ...BASELINE }),
        draw,
        flipMs: FROM + period * 7 * DAY + draw.flipDelayMs,
      };
    }
  }
}
const decided = (compute = unitIn(0).compute, instantMs = FROM + 12 * HOUR, policies: Policy[] = [OFFICE, TRIAL]) =>
  decide({ policies: compiled(...policies), compute, baseline: BASELINE, instantMs });

describe('the control group of a trial', () => {
  const { compute, flipMs } = unitIn(0);

  it('gets what it had before, and says why', () => {
    const { enforced, deciders } = decided();
    expect(enforced).toEqual({ size: { minCu: 2, maxCu: 2 }, suspendTimeoutSeconds: -1 });
    expect(deciders.size).toMatchObject({ code: 'control_group', policy: { name: 'proof' } });
  });

  it('of no team is without the policies of teams that are withdrawn by their full names, and keeps those of others', () => {
    const ofTeam = (team: string, fields: Partial<SchedulePolicy>) =>
      aSchedule({ name: `team-${team}/hours`, team: `team-${team}`, owner: `team-${team}`, ...fields });
    const size = { minCu: 4, maxCu: 4 };
    const policies = [
      ofTeam('web', { windows: [], otherwise: { size } }),
      ofTeam('api', { windows: [], otherwise: { suspendTimeoutSeconds: 60 } }),
      aTrial({ of: ['team-web/hours'] }),
    ];
    const inControl = decided(compute, flipMs, policies);
    expect(inControl.enforced).toEqual({ size: { minCu: 2, maxCu: 2 }, suspendTimeoutSeconds: 60 });
    expect(inControl.deciders.size).toMatchObject({ code: 'control_group', policy: { name: 'proof' } });
    expect(decided(compute, flipMs - 1, policies).enforced.size).toEqual(size);
    expect(decided(unitIn(1).compute, flipMs, policies).enforced.size).toEqual(size);
  });

  it('has its policies again once the trial was ended, with the delay of its flips, and for good', () => {
    const stoppedAtMs = FROM + 3 * DAY;
    const stop = { policy: TRIAL.name, terms: TRIAL.digest, stoppedAtMs, costUsd: 201 };
    const policies = compiled(OFFICE, TRIAL);
    const before = withTrials(policies, compute, aRecord({ baseline: BASELINE }), FROM + DAY);
    const after = withTrials({ ...policies, trialStops: [stop] }, compute, before, stoppedAtMs + 1);
    const endMs = stoppedAtMs + drawOf(design, compute.projectId).flipDelayMs;
    const wanted = (instantMs: number, { trials, baseline } = after) =>
      decide({ policies, compute, baseline, trials, instantMs }).enforced;
    expect(wanted(endMs - 1).size).toEqual({ minCu: 2, maxCu: 2 });
    expect(wanted(endMs).suspendTimeoutSeconds).toBe(300);
    // Also in the next period of this unit as control, and after a restart of a daemon that doesn't know why.
    expect(wanted(flipMs + 29 * DAY).suspendTimeoutSeconds).toBe(300);
    expect(withTrials(policies, compute, after, endMs)).toBe(after);
    expect(trialOf(policies, { compute, trials: after.trials })).toMatchObject({ flips: [flipMs, endMs] });
    expect(trialOf(policies, { compute, trials: after.trials })?.periodEndMs(stoppedAtMs)).toBe(endMs);
    const input = { policies, compute, trials: after.trials, baseline: BASELINE };
    expect(nextBoundary(input, endMs - 1)).toBe(endMs);
  });

  it('goes on if another trial under its name was ended', () => {
    const stop = { policy: TRIAL.name, terms: 'other', stoppedAtMs: FROM, costUsd: 201 };
    const record = withTrials({ ...compiled(OFFICE, TRIAL), trialStops: [stop] }, compute, aRecord({}), FROM + DAY);
    expect(record.trials?.proof?.stoppedAtMs).toBeUndefined();
  });

  it('does not take in a compute that is met after the end', () => {
    const stop = { policy: TRIAL.name, terms: TRIAL.digest, stoppedAtMs: FROM, costUsd: 201 };
    const record = withTrials({ ...compiled(OFFICE, TRIAL), trialStops: [stop] }, compute, aRecord({}), FROM + DAY);
    expect(record.trials?.proof?.stoppedAtMs).toBe(FROM);
  });

  it('is as all others before its flip and in other periods', () => {
    const size = (instantMs: number) => decided(compute, instantMs).enforced.size;
    expect(size(flipMs - 1)).toEqual({ minCu: 0.25, maxCu: 1 });
    expect(size(flipMs)).toEqual({ minCu: 2, maxCu: 2 });
    expect(size(flipMs + 7 * DAY - 1)).toEqual({ minCu: 2, maxCu: 2 });
    expect(size(flipMs + 7 * DAY)).toEqual({ minCu: 0.25, maxCu: 1 });
  });

  it('gets the stored baseline, and the stored draw wins over the pure one', () => {
    const stored = { baseline: { minCu: 4, maxCu: 8, suspendTimeoutSeconds: 60 }, terms: TRIAL.digest, sinceMs: FROM };
    const sizeWith = (slot: number) =>
      decide({
        ...{ policies: compiled(OFFICE, TRIAL), compute, baseline: BASELINE, instantMs: FROM + 12 * HOUR },
        trials: { proof: { ...stored, slot, flipDelayMs: 0 } },
      }).enforced.size;
    expect(sizeWith(0)).toEqual({ minCu: 4, maxCu: 8 });
    expect(sizeWith(1)).toEqual({ minCu: 1, maxCu: 4 });
  });

  it.each([
    ['what it had before cannot be trusted', { baseline: null, terms: TRIAL.digest }],
    ['it was assigned under other terms', { baseline: BASELINE, terms: 'others' }],
  ])('does not have a unit of which %s', (_why, stored) => {
    const trials = { proof: { slot: 0, flipDelayMs: 0, sinceMs: FROM, ...stored } };
    const input = {
      policies: compiled(OFFICE, TRIAL),
      compute,
      baseline: BASELINE,
      trials,
      instantMs: FROM + 12 * HOUR,
    };
    expect(decide(input).enforced.size).toEqual({ minCu: 1, maxCu: 4 });
  });

  it('keeps every policy that is not withdrawn', () => {
    const other = aSchedule({
      name: 'weekend',
      windows: [{ at: [aWindow()], size: { minCu: 8, maxCu: 8 } }],
      otherwise: 'leave',
    });
    const { enforced, trace } = decided(compute, FROM + 12 * HOUR, [other, OFFICE, TRIAL]);
    // The timeout is what a withdrawn policy may change and no other decides.
    expect(enforced).toEqual({ size: { minCu: 8, maxCu: 8 }, suspendTimeoutSeconds: -1 });
    expect(trace.filter(({ code }) => code === 'control_group')).toHaveLength(2);
    const hard = aLimits({ hard: true, size: { maxCu: 1 } });
    expect(decided(compute, FROM + 12 * HOUR, [OFFICE, TRIAL, hard]).enforced.size).toEqual({ minCu: 1, maxCu: 1 });
    const input = { policies: compiled(OFFICE, TRIAL), compute, baseline: BASELINE, instantMs: FROM + 12 * HOUR };
    const holds = [aHold({ computeId: compute.computeId, size: { minCu: 16, maxCu: 16 } })];
    expect(decide({ ...input, holds }).enforced.size).toEqual({ minCu: 16, maxCu: 16 });
  });

  it('is without soft limits that are withdrawn, and leaves alone what these cannot change', () => {
    const limits = aLimits({ size: { maxCu: 2 } });
    const trial = aTrial({ of: ['limits'] });
    expect(decided(compute, FROM + 12 * HOUR, [OFFICE, limits, trial]).enforced).toEqual({
      size: { minCu: 1, maxCu: 4 },
      suspendTimeoutSeconds: 300,
    });
    expect(decided(unitIn(1).compute, FROM + 12 * HOUR, [OFFICE, limits, trial]).enforced.size).toEqual({
      minCu: 1,
      maxCu: 2,
    });
  });

  it('only observes where the trial does', () => {
    const { desired, enforced } = decided(compute, FROM + 12 * HOUR, [OFFICE, aTrial({ mode: 'observe' })]);
    expect(enforced.size).toEqual({ minCu: 1, maxCu: 4 });
    expect(desired.size).toEqual({ minCu: 2, maxCu: 2 });
  });

  it('is drawn by branch where the unit is a branch', () => {
    const trial = aTrial({ unit: 'branch' });
    const arms = Array.from({ length: 40 }, (_, index) => {
      const one = aCompute({ branchId: `br-${index}` });
      const isControl = decided(one, FROM + 12 * HOUR, [OFFICE, trial]).deciders.size?.code === 'control_group';
      expect(isControl).toBe(armAt(design, drawOf(design, `p-one/br-${index}`), FROM + 12 * HOUR) === 'control');
      return isControl;
    });
    expect(new Set(arms).size).toBe(2);
  });
});

describe('flips', () => {
  it('are boundaries', () => {
    const { compute, flipMs } = unitIn(1);
    const input = {
      policies: compiled(aSchedule({ windows: [{ at: [aWindow()] }] }), TRIAL),
      compute,
      baseline: BASELINE,
    };
    expect(nextBoundary(input, FROM)).toBe(flipMs);
    expect(nextBoundary(input, flipMs)).toBe(flipMs + 7 * DAY);
    expect(nextBoundary(input, flipsOf(design, unitIn(1).draw).at(-1) ?? 0)).toBeUndefined();
  });

  it('stand in forecasts, by the name of the trial', () => {
    const { compute, flipMs } = unitIn(1);
    const { segments } = forecast({
      ...{ policies: compiled(OFFICE, TRIAL), compute, baseline: BASELINE },
      ...{ fromMs: FROM, toMs: FROM + 28 * DAY },
    });
    const control = segments.filter(({ policies }) => policies.includes('proof'));
    expect(control).toMatchObject([{ fromMs: flipMs, toMs: flipMs + 7 * DAY, ...BASELINE }]);
  });

  it('are foreseen for each unit by itself', () => {
    const subjects = [0, 1, 2, 3].map((period) => ({ compute: unitIn(period).compute, baseline: BASELINE }));
    const span = { fromMs: FROM + 10 * DAY, toMs: FROM + 30 * DAY };
    const policies = compiled(OFFICE, TRIAL);
    const together = forecastFleet({ policies, subjects, ...span });
    expect(together).toEqual(subjects.map((subject) => forecast({ policies, ...subject, ...span })));
  });

  it('are boundaries for whatever is wanted between them', () => {
    fc.assert(
      fc.property(
        fc.nat(60),
        fc.integer({ min: 0, max: 40 * 24 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (unit, hours, share) => {
          const compute = aCompute({ projectId: `p-${unit}` });
          const input = { policies: compiled(OFFICE, TRIAL), compute, baseline: BASELINE };
          const fromMs = FROM + (hours - 24) * HOUR;
          const { boundaryMs = fromMs + DAY } = searchBoundary(input, fromMs);
          const sizeAt = (instantMs: number) => decide({ ...input, instantMs }).enforced;
          const within = Math.floor(fromMs + share * (boundaryMs - 1 - fromMs));
          expect(sizeAt(within)).toEqual(sizeAt(fromMs));
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('what a trial remembers of a compute', () => {
  const { compute, draw } = unitIn(0);
  const policies = compiled(OFFICE, TRIAL);
  const record = aRecord({ baseline: BASELINE, firstSeenAtMs: FROM - DAY });

  it('is nothing before it begins, then its draw and what it had, once for all', () => {
    expect(withTrials(policies, compute, record, FROM - 1)).toBe(record);
    const begun = withTrials(policies, compute, record, FROM);
    expect(begun.trials).toEqual({ proof: { ...draw, baseline: BASELINE, terms: TRIAL.digest, sinceMs: FROM } });
    const changed = { ...begun, baseline: { ...BASELINE, maxCu: 8 } };
    expect(withTrials(policies, compute, changed, FROM + DAY)).toBe(changed);
  });

  it('is forgotten with the policy, not with its end', () => {
    const begun = withTrials(policies, compute, record, FROM);
    expect(withTrials(policies, compute, begun, FROM + 400 * DAY)).toBe(begun);
    expect(withTrials(compiled(OFFICE), compute, begun, FROM + DAY).trials).toBeUndefined();
  });

  it("stays while its team's policies are not loaded, and goes once they are without it", () => {
    const trial = aTrial({ name: 'web/proof', team: 'web' });
    const begun = withTrials(compiled(OFFICE, trial), compute, record, FROM);
    const inTurn = ['web', 'api'].map((name) => compiled(...unloadedPart({ name, projects: ['*'] }).policies));
    expect(begun.trials).toHaveProperty(['web/proof']);
    expect(inTurn.map((policies) => withTrials(policies, compute, begun, FROM + DAY).trials)).toEqual([
      begun.trials,
      undefined,
    ]);
  });

  it.each([
    ['met before the trial', -400, FROM, true],
    ['met only after the trial had begun', -400, FROM + 1, false],
    ['new, and met within a day', 10, FROM + 11 * DAY, true],
    ['new, and met later than that', 10, FROM + 11 * DAY + 1, false],
  ])('has a baseline for a compute that was %s: %#', (_what, createdDay, firstSeenAtMs, isTrusted) => {
    const one = { ...compute, createdAtMs: FROM + createdDay * DAY };
    const { trials } = withTrials(policies, one, { ...record, firstSeenAtMs }, FROM + 12 * DAY);
    expect(trials?.proof?.baseline).toEqual(isTrusted ? BASELINE : null);
  });

  it('is nothing where the trial does not select it, only observes, or is over', () => {
    const apart = aTrial({ select: aSelector({ projects: ['other-*'] }) });
    expect(withTrials(compiled(apart), compute, record, FROM + DAY)).toBe(record);
    expect(withTrials(compiled(aTrial({ mode: 'observe' })), compute, record, FROM + DAY)).toBe(record);
    expect(withTrials(policies, compute, record, FROM + 56 * DAY)).toBe(record);
  });
});

describe('a trial adds no restart', () => {
  const { compute, flipMs } = unitIn(1);
  const policies = compiled(OFFICE, TRIAL);
  const night = { minCu: 0.25, maxCu: 1 };
  const planAt = (nowMs: number, has: object, record = {}, also: Partial<Situation> = {}) =>
    told(
      evaluate({
        ...{ policies, nowMs, mode: 'enforce' as const, projectBusy: false, ...also },
        compute: { ...compute, suspendTimeoutSeconds: 300, ...has },
        record: aRecord({ baseline: BASELINE, lastApplied: { ...night, suspendTimeoutSeconds: 300 }, ...record }),
      }).plan,
    );

  it('a compute that enters the control group awake keeps its size until a withdrawn policy would change it', () => {
    const plan = planAt(flipMs, night);
    // The timeout flips at once, the size waits for the opening of the window on Monday.
    expect(plan.actions).toMatchObject([{ fields: { suspendTimeoutSeconds: -1 }, disconnects: false }]);
    expect(plan.heldBy).toEqual(['trial_flip']);
    expect(plan.untilMs).toBe(FROM + 7 * DAY + 8 * HOUR);
    const opened = planAt(FROM + 7 * DAY + 8 * HOUR, { ...night, suspendTimeoutSeconds: -1 });
    expect(opened).toMatchObject({ verdict: 'act', actions: [{ fields: { minCu: 2, maxCu: 2 }, disconnects: true }] });
  });

  it('nor by a timeout, where that restarts', () => {
    const verified = { timeout_change: 'restarts' } as const;
    const plan = planAt(flipMs, night, {}, { verified });
    expect([plan.verdict, plan.heldBy]).toEqual(['wait', ['trial_flip', 'trial_flip']]);
    expect(planAt(flipMs, { ...night, state: 'idle' }, {}, { verified })).toMatchObject({ verdict: 'act', heldBy: [] });
    const inNewArm = { suspend_timeout: { before: { suspendTimeoutSeconds: -1 }, answeredAtMs: flipMs } };
    expect(planAt(flipMs + HOUR, night, { lastChanges: inNewArm }, { verified }).heldBy).not.toEqual(plan.heldBy);
  });

  it('one that sleeps gets it at once', () => {
    expect(planAt(flipMs, { ...night, state: 'idle' })).toMatchObject({ verdict: 'act', heldBy: [] });
  });

  it('one that leaves the control group awake waits as well', () => {
    const leavesMs = flipMs + 7 * DAY;
    const has = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: 300 };
    expect(planAt(leavesMs, has)).toMatchObject({ verdict: 'wait', heldBy: ['trial_flip'] });
    // By day the window raises it; that is wanted without the trial, too.
    expect(planAt(FROM + 14 * DAY + 8 * HOUR, has)).toMatchObject({ verdict: 'act' });
  });

  it('its deadline counts from when the policy changes it, not from the flip', () => {
    const leavesMs = flipMs + 7 * DAY;
    const closesMs = FROM + 14 * DAY + 18 * HOUR;
    const has = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: 300 };
    const wanted = { size: { fields: night, sinceMs: leavesMs } };
    expect(planAt(closesMs, has, { wanted })).toMatchObject({
      heldBy: ['waiting_for_idle'],
      untilMs: closesMs + 2 * HOUR,
    });
  });

  it('a change that was pending before the flip restarts nothing after it either', () => {
    // It was to be lowered from 4 CU once it sleeps; now the control group wants it back as it was.
    const pending = { minCu: 4, maxCu: 4, suspendTimeoutSeconds: -1 };
    const wanted = { size: { fields: night, sinceMs: flipMs - HOUR } };
    expect(planAt(flipMs - 1, pending, { wanted }).heldBy).toContain('waiting_for_idle');
    expect(planAt(flipMs, pending, { wanted }).heldBy).toEqual(['trial_flip']);
    expect(planAt(flipMs, { ...pending, minCu: 1, maxCu: 1 }).heldBy).toEqual(['trial_flip']);
  });

  it('does not hold back what is wanted in both arms', () => {
    const held = { id: 'h', projectId: compute.projectId, computeId: compute.computeId, owner: 'ann', reason: 'test' };
    const hold = { ...held, size: { minCu: 1, maxCu: 4 }, createdAtMs: flipMs, expiresAtMs: flipMs + DAY };
    const { plan } = evaluate({
      ...{ policies, nowMs: flipMs + HOUR, mode: 'enforce' as const, projectBusy: false, holds: [hold] },
      ...{ compute: { ...compute, ...night }, record: aRecord({ baseline: BASELINE, lastApplied: night }) },
    });
    expect(plan).toMatchObject({ verdict: 'act', actions: [{ disconnects: true }] });
  });

  it('does not hold back what changes once the size was changed in the new arm', () => {
    const lastChanges = { size: { before: night, answeredAtMs: flipMs } };
    expect(planAt(flipMs + HOUR, { minCu: 1, maxCu: 1 }, { lastChanges }).heldBy).not.toContain('trial_flip');
    const before = { size: { before: night, answeredAtMs: flipMs - 1 } };
    expect(planAt(flipMs + HOUR, { minCu: 1, maxCu: 1 }, { lastChanges: before }).heldBy).toContain('trial_flip');
  });

  it('whatever it has, whenever it flips', () => {
    const sizes = fc.constantFrom(0.25, 1, 2, 4, 8).map((cu) => ({ minCu: cu, maxCu: cu }));
    const treatedAt = (one: typeof compute, instantMs: number) =>
      decide({ policies, compute: one, baseline: BASELINE, arm: 'treated', instantMs }).enforced.size;
    fc.assert(
      fc.property(fc.nat(20), fc.nat(40 * 24), sizes, sizes, (unit, hours, has, applied) => {
        const one = { ...aCompute({ projectId: `p-${unit}` }), ...has };
        const nowMs = FROM + hours * HOUR + 1;
        const record = aRecord({ baseline: BASELINE, lastApplied: { ...applied, suspendTimeoutSeconds: 300 } });
        const { plan } = evaluate({ policies, compute: one, record, nowMs, mode: 'enforce', projectBusy: false });
        if (plan.verdict !== 'act' || !plan.actions[0]?.disconnects) return;
        const flippedAtMs = flipsOf(design, drawOf(design, one.projectId)).findLast((ms) => ms <= nowMs) ?? FROM - DAY;
        // Every window begins and ends at a full hour.
        const hoursSince = Array.from({ length: 8 * 24 }, (_, back) => FROM + (hours - back) * HOUR);
        const isByPolicy = hoursSince
          .filter((ms) => ms >= flippedAtMs)
          .some((ms) => String(treatedAt(one, ms)?.maxCu) !== String(treatedAt(one, ms - 1)?.maxCu));
        expect(isByPolicy || flippedAtMs < FROM).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("a person's change in a trial", () => {
  const { compute, flipMs } = unitIn(1);
  const policies = compiled(OFFICE, aTrial({ manualChanges: { kind: 'revert' } }), TRIAL);
  const theirs = { minCu: 4, maxCu: 4 };
  const seenAtMs = flipMs + DAY;
  const situation = {
    ...{ policies, compute: { ...compute, ...theirs, state: 'idle' as const } },
    record: aRecord({ baseline: BASELINE, manual: { size: { fields: theirs, seenAtMs, raises: true } } }),
    manualChanges: { kind: 'revert' } as const,
  };

  it('is respected to the end of the period, in spite of `revert`', () => {
    const plan = (nowMs: number) => told(evaluate({ ...situation, nowMs, mode: 'enforce', projectBusy: false }).plan);
    expect(plan(seenAtMs)).toMatchObject({ heldBy: ['manual_change'], untilMs: flipMs + 7 * DAY });
    expect(plan(flipMs + 7 * DAY).heldBy).toEqual([]);
  });

  it('is no fight when the period ends', () => {
    const { plan } = evaluate({ ...situation, nowMs: flipMs + 7 * DAY, mode: 'enforce', projectBusy: false });
    const [action] = plan.actions;
    if (!action) throw new Error('nothing is written');
    expect(action.endsRespect).toBe(true);
    const written = (one: Action) => recordAfter(situation.record, one, { ok: true, value: { operations: [] } }, FROM);
    expect(written(action)).toMatchObject({ lastApplied: action.fields });
    expect(written(action).reversals).toBeUndefined();
    const { endsRespect: _, ...ordinary } = action;
    expect(written(ordinary).reversals?.size).toHaveLength(1);
  });

  it('is never reverted', () => {
    expect(isReverted({ ...situation, nowMs: seenAtMs }, 'size')).toBe(false);
    expect(isReverted({ ...situation, nowMs: FROM + 100 * DAY }, 'size')).toBe(true);
  });
});

describe('the staged check', () => {
  it('counts computes that the first flip of a trial gives another size, until it has begun', () => {
    const [control, treated] = [unitIn(0).compute, unitIn(1).compute];
    const counts = (compute = control, nowMs = FROM - DAY, trial = TRIAL) => {
      const one = { ...compute, minCu: 1, maxCu: 4 };
      return changesSizeAtFirstFlip({ policies: compiled(OFFICE, trial), compute: one, baseline: BASELINE }, nowMs);
    };
    expect(counts()).toBe(true);
    expect(counts(treated)).toBe(false);
    expect(counts(control, FROM)).toBe(false);
    expect(counts(control, FROM - DAY, aTrial({ mode: 'observe' }))).toBe(false);
    const same = { policies: compiled(OFFICE, TRIAL), compute: control, baseline: BASELINE };
    expect(changesSizeAtFirstFlip(same, FROM - DAY)).toBe(false);
  });
});
