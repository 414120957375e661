import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Compute, settingsOf } from '../../src/domain/compute/compute.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { type Forecast, forecast, forecastFleet, unchangedCuHours } from '../../src/domain/forecast/forecast.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { withBudgetSteps } from '../../src/domain/policy/compiled-policies.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { parsedOrAll } from '../../src/domain/policy/selector.ts';
import type { Weekday } from '../../src/domain/time/time-spec.ts';
import { aBudget, aCompute, aFreeze, aHold, aSchedule, aStepSpan, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MONDAY = at('2026-03-02T00:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const week = { fromMs: MONDAY, toMs: MONDAY + 7 * DAY };

/** `Mon 08:00 1-4 300 office-hours` for each segment: when it begins, its values, who decided. */
function lines({ segments }: Forecast): string[] {
  return segments.map(({ fromMs, minCu, maxCu, suspendTimeoutSeconds, policies }) => {
    const day = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' }).format(fromMs);
    const time = new Date(fromMs).toISOString().slice(11, 16);
    return [day, time, `${minCu}-${maxCu}`, suspendTimeoutSeconds, ...policies].join(' ');
  });
}

const base = { file: 'test.yaml', mode: 'enforce' as const, select: aSelector({ projects: ['*'] }), priority: 0 };

describe('a forecast', () => {
  it('goes from window to window, and says who decided', () => {
    const policies = compiled(
      aSchedule({ windows: [{ at: [aWindow({ days: [1, 2] })], size: { minCu: 1, maxCu: 4 } }] }),
    );
    expect(lines(forecast({ policies, compute: aCompute(), ...week }))).toEqual([
      'Mon 00:00 0.25-1 300 office-hours',
      'Mon 08:00 1-4 300 office-hours',
      'Mon 18:00 0.25-1 300 office-hours',
      'Tue 08:00 1-4 300 office-hours',
      'Tue 18:00 0.25-1 300 office-hours',
    ]);
  });

  it('keeps fields that nothing asks for as the compute has them now', () => {
    const leaves = aSchedule({
      otherwise: 'leave',
      windows: [{ at: [aWindow({ days: [2] })], size: { minCu: 4, maxCu: 4 } }],
    });
    const result = forecast({ policies: compiled(leaves), compute: aCompute({ suspendTimeoutSeconds: 600 }), ...week });
    expect(lines(result)).toEqual(['Mon 00:00 0.25-2 600', 'Tue 08:00 4-4 600 office-hours']);
  });

  it('has one segment without policies where none selects the compute', () => {
    const policies = compiled(aSchedule({ select: aSelector({ projects: ['other'] }) }));
    expect(lines(forecast({ policies, compute: aCompute(), ...week }))).toEqual(['Mon 00:00 0.25-2 300']);
  });

  it('takes the hour that daylight saving takes and gives', () => {
    const policies = compiled(
      aSchedule({
        windows: [
          {
            at: [aWindow({ days: [6, 7, 1], startMinute: 60, endMinute: 240, zone: 'Europe/Berlin' })],
            size: { minCu: 1, maxCu: 1 },
          },
        ],
      }),
    );
    const hoursOn = (from: string, days: number) =>
      forecast({ policies, compute: aCompute(), fromMs: at(from), toMs: at(from) + days * DAY })
        .segments.filter(({ minCu }) => minCu === 1)
        .map(({ fromMs, toMs }) => `${new Date(fromMs).toISOString().slice(5, 16)} ${(toMs - fromMs) / HOUR}`);
    expect(hoursOn('2026-03-27T12:00:00Z', 3)).toEqual(['03-28T00:00 3', '03-29T00:00 2', '03-29T23:00 3']);
    expect(hoursOn('2026-10-23T12:00:00Z', 3)).toEqual(['10-23T23:00 3', '10-24T23:00 4', '10-26T00:00 3']);
  });

  it('does not let a freeze be written into, except for raises where they are allowed', () => {
    const interval = { kind: 'interval' as const, startMs: MONDAY + DAY, endMs: MONDAY + 3 * DAY };
    const freeze: FreezePolicy = { ...base, kind: 'freeze', name: 'still', at: [interval], allowRaise: false };
    const schedule = aSchedule({ windows: [{ at: [aWindow({ days: [1, 2, 3, 4] })], size: { minCu: 1, maxCu: 4 } }] });
    const of = (allowRaise: boolean) =>
      lines(forecast({ policies: compiled(schedule, { ...freeze, allowRaise }), compute: aCompute(), ...week }));
    expect(of(false)).toEqual([
      'Mon 00:00 0.25-1 300 office-hours',
      'Mon 08:00 1-4 300 office-hours',
      'Mon 18:00 0.25-1 300 office-hours still',
      'Thu 08:00 1-4 300 office-hours',
      'Thu 18:00 0.25-1 300 office-hours',
    ]);
    expect(of(true).slice(3)).toEqual([
      'Tue 08:00 1-4 300 still',
      'Thu 00:00 0.25-1 300 office-hours',
      'Thu 08:00 1-4 300 office-hours',
      'Thu 18:00 0.25-1 300 office-hours',
    ]);
  });

  it('counts holds until they end, and a compute from when it is old enough', () => {
    const hold: Hold = {
      id: 'h1',
      projectId: 'p-one',
      computeId: 'ep-one',
      owner: 'ada',
      reason: 'launch',
      createdAtMs: MONDAY - HOUR,
      expiresAtMs: MONDAY + 5 * HOUR,
      size: { minCu: 8, maxCu: 8 },
    };
    const policies = compiled(aSchedule({ windows: [], select: aSelector({ projects: ['*'], minAgeMs: 2 * HOUR }) }));
    const young = aCompute({ createdAtMs: MONDAY - HOUR });
    expect(lines(forecast({ policies, compute: young, holds: [hold], ...week }))).toEqual([
      'Mon 00:00 8-8 300 hold by ada office-hours',
      'Mon 05:00 0.25-1 300 office-hours',
    ]);
    expect(lines(forecast({ policies, compute: young, ...week }))).toEqual([
      'Mon 00:00 0.25-2 300',
      'Mon 01:00 0.25-1 300 office-hours',
    ]);
  });

  it('leaves as it is what a person holds, and what any of several freezes does not let rise', () => {
    const keep = aHold({ freeze: true, expiresAtMs: MONDAY + 9 * HOUR, owner: 'ada' });
    const tuesday = { ...week, toMs: MONDAY + DAY };
    expect(
      lines(forecast({ policies: compiled(aSchedule()), compute: aCompute(), holds: [keep], ...tuesday })),
    ).toEqual([
      'Mon 00:00 0.25-2 300 hold by ada',
      'Mon 09:00 1-4 300 office-hours',
      'Mon 18:00 0.25-1 300 office-hours',
    ]);
    const freezes = [aFreeze({ name: 'raises', allowRaise: true }), aFreeze({ name: 'nothing' })];
    const of = (...policies: Policy[]) =>
      lines(forecast({ policies: compiled(...policies), compute: aCompute(), ...tuesday }));
    expect(of(aSchedule(), ...freezes)).toEqual(['Mon 00:00 0.25-2 300 raises nothing']);
    const timed = aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 60 } });
    expect(of(timed, aFreeze({ name: 'raises', allowRaise: true }))).toEqual(['Mon 00:00 0.25-2 300 raises']);
  });

  it('leaves as it is what people have frozen or changed themselves, and only that', () => {
    const freeze = { id: 'f', reason: 'r', createdAtMs: 0, expiresAtMs: MONDAY + 9 * HOUR, allowRaise: false };
    const select = parsedOrAll({ projects: ['web-*'], minAgeMs: 0 });
    const tuesday = { ...week, toMs: MONDAY + DAY };
    const subject = { freezes: [{ ...freeze, owner: 'ada', select }], respected: { size: MONDAY + 10 * HOUR } };
    const computes = [aCompute(), aCompute({ computeId: 'ep-other', projectName: 'other' })];
    const subjects = [{ ...subject, compute: computes[0] as Compute }, { compute: computes[1] as Compute }];
    const all = forecastFleet({ policies: compiled(aSchedule()), subjects, ...tuesday }).map(lines);
    const evening = 'Mon 18:00 0.25-1 300 office-hours';
    expect(all).toEqual([
      ['Mon 00:00 0.25-2 300 freeze by ada office-hours', 'Mon 10:00 1-4 300 office-hours', evening],
      ['Mon 00:00 0.25-1 300 office-hours', 'Mon 08:00 1-4 300 office-hours', evening],
    ]);
  });

  it('keeps what a hold keeps as it is, but for a field that a newer hold sets', () => {
    const kept = aHold({ freeze: true, owner: 'ada', createdAtMs: 1 });
    const newer = aHold({ id: 'h2', size: { minCu: 8, maxCu: 8 }, createdAtMs: 2, expiresAtMs: MONDAY + 9 * HOUR });
    const compute = aCompute({ suspendTimeoutSeconds: 600 });
    const of = (holds: Hold[]) =>
      lines(forecast({ policies: compiled(aSchedule()), compute, holds, ...week, toMs: MONDAY + DAY }));
    expect(of([kept])).toEqual(['Mon 00:00 0.25-2 600 hold by ada']);
    expect(of([kept, newer])).toEqual(['Mon 00:00 8-8 600 hold by ann hold by ada']);
  });

  it('ends before what begins where it ends, and of no time there is none', () => {
    const untilSix = { ...week, toMs: MONDAY + 18 * HOUR };
    const hold = aHold({ size: { minCu: 8, maxCu: 8 }, expiresAtMs: untilSix.toMs });
    const of = (holds: Hold[]) =>
      lines(forecast({ policies: compiled(aSchedule()), compute: aCompute(), holds, ...untilSix }));
    expect(of([])).toEqual(['Mon 00:00 0.25-1 300 office-hours', 'Mon 08:00 1-4 300 office-hours']);
    expect(of([hold])).toEqual(['Mon 00:00 8-8 300 hold by ann office-hours']);
    const subjects = [{ compute: aCompute() }];
    for (const toMs of [MONDAY, MONDAY - DAY]) {
      expect(forecastFleet({ policies: compiled(aSchedule()), subjects, fromMs: MONDAY, toMs })).toEqual([
        { segments: [], cuHours: { low: 0, high: 0 }, resizes: [], frozen: [] },
      ]);
    }
  });

  it('tells apart computes of a fleet of which a step of a budget limits only some', () => {
    const always = aSchedule({ windows: [], otherwise: { size: { minCu: 2, maxCu: 4 } } });
    const step = aStepSpan({ fromMs: MONDAY - DAY, untilMs: week.toMs + DAY });
    const policies = withBudgetSteps(compiled(always, aBudget({ includeProtected: false })), [step]);
    const computes = [
      aCompute({ branchRoles: ['child'] }),
      aCompute({ branchRoles: ['default'] }),
      aCompute({ branchRoles: ['child'], account: 'other' }),
    ];
    const all = forecastFleet({ policies, subjects: computes.map((compute) => ({ compute })), ...week });
    expect(all.map(({ segments }) => segments.map(({ maxCu }) => maxCu))).toEqual([[1], [4], [4]]);
  });

  it('tells apart computes of a fleet that differ only in a hold, or in their age', () => {
    const select = aSelector({ projects: ['*'], minAgeMs: 99 * DAY });
    const policies = compiled(aSchedule({ otherwise: 'leave', select }));
    const [held, other, young] = ['ep-held', 'ep-other', 'ep-young'].map((computeId) => aCompute({ computeId }));
    const holds = ['ep-held', 'ep-third'].map((computeId) => aHold({ computeId, size: { minCu: 8, maxCu: 8 } }));
    const computes = [held, other, { ...young, createdAtMs: MONDAY }];
    const subjects = computes.map((compute) => ({ compute: { ...aCompute(), ...compute }, holds }));
    const all = forecastFleet({ policies, subjects, fromMs: MONDAY, toMs: MONDAY + 12 * HOUR });
    expect(all.map((one) => lines(one))).toEqual([
      ['Mon 00:00 8-8 300 hold by ann'],
      ['Mon 00:00 0.25-2 300', 'Mon 08:00 1-4 300 office-hours'],
      ['Mon 00:00 0.25-2 300'],
    ]);
  });

  it('leaves out what observing policies want', () => {
    const policies = compiled(aSchedule({ mode: 'observe' }));
    expect(lines(forecast({ policies, compute: aCompute(), ...week }))).toEqual(['Mon 00:00 0.25-2 300']);
  });
});

describe('what it may cost', () => {
  it('is nothing to all of it at the maximum where the compute may sleep, and never less than the minimum where it may not', () => {
    const never = aSchedule({
      windows: [{ at: [aWindow({ days: [1] })], size: { minCu: 1, maxCu: 4 }, suspendTimeoutSeconds: -1 }],
    });
    const { cuHours } = forecast({ policies: compiled(never), compute: aCompute(), ...week });
    expect(cuHours).toEqual({ low: 10, high: 10 * 4 + (7 * 24 - 10) * 1 });
    expect(unchangedCuHours(aCompute(), week)).toEqual({ low: 0, high: 7 * 24 * 2 });
  });

  it('counts a fixed size above 16 CU as always awake, and a disabled compute as never', () => {
    expect(unchangedCuHours({ minCu: 18, maxCu: 18, suspendTimeoutSeconds: 300 }, week).low).toBe(18 * 7 * 24);
    const disabled = aCompute({ disabled: true });
    expect(forecast({ policies: compiled(aSchedule()), compute: disabled, ...week }).cuHours).toEqual({
      low: 0,
      high: 0,
    });
    expect(unchangedCuHours(disabled, week)).toEqual({ low: 0, high: 0 });
  });
});

const size = fc.constantFrom(
  { minCu: 0.25, maxCu: 1 },
  { minCu: 1, maxCu: 4 },
  { minCu: 2, maxCu: 2 },
  { minCu: 18, maxCu: 18 },
);
const timeout = fc.constantFrom(-1, 60, 300);
const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe');
const window = fc
  .record({
    days: fc.subarray<Weekday>([1, 2, 3, 4, 5, 6, 7], { minLength: 1 }),
    startMinute: fc.nat(1439),
    minutes: fc.integer({ min: 1, max: 1440 }),
    zone,
  })
  .map(({ days, startMinute, minutes, zone }) => {
    const end = startMinute + minutes;
    return aWindow({ days, zone, startMinute, endMinute: end % 1440, endDayOffset: Math.floor(end / 1440) });
  });
const values = fc.record({ size, suspendTimeoutSeconds: timeout }, { requiredKeys: [] });
const select = fc
  .record({
    projects: fc.constantFrom(['*'], ['a'], ['b']),
    minAgeMs: fc.constantFrom(0, 30 * 60_000, 3 * DAY),
  })
  .map(aSelector);
const schedule = fc
  .record({
    windows: fc.array(fc.tuple(window, values), { maxLength: 3 }),
    otherwise: fc.oneof(values, fc.constantFrom('leave' as const, 'baseline' as const)),
    priority: fc.nat(2),
    mode: fc.constantFrom('enforce' as const, 'observe' as const),
    select,
    readyLeadMs: fc.option(fc.constant(180_000), { nil: undefined }),
  })
  .map(({ windows, readyLeadMs, ...fields }) =>
    aSchedule({
      ...fields,
      windows: windows.map(([at, wants]) => ({
        at: [at],
        ...wants,
        ...(readyLeadMs !== undefined && { readyLeadMs }),
      })),
    }),
  );
const limits = select.map(
  (select): LimitsPolicy => ({ ...base, kind: 'limits', name: 'ceiling', select, size: { maxCu: 2 }, hard: false }),
);
const policySet = fc
  .tuple(fc.array(schedule, { maxLength: 3 }), fc.array(limits, { maxLength: 1 }))
  .map(([schedules, others]): Policy[] => [
    ...schedules.map((one, index) => ({ ...one, name: `s${index}` })),
    ...others,
  ]);
const subject = fc
  .record({
    projectName: fc.constantFrom('a', 'b'),
    size,
    suspendTimeoutSeconds: timeout,
    ageMs: fc.constantFrom(0, HOUR, 400 * DAY),
    baseline: fc.option(size, { nil: undefined }),
  })
  .map(({ size, baseline, ageMs, ...fields }) => ({
    compute: aCompute({ ...size, ...fields, createdAtMs: MONDAY - ageMs }),
    baseline: baseline && { ...baseline, suspendTimeoutSeconds: 300 },
  }));
/** Weeks with and without a change of the clocks. */
const from = fc.constantFrom(
  MONDAY,
  at('2026-03-25T13:07:00Z'),
  at('2026-10-22T00:00:00Z'),
  at('2026-04-01T00:00:00Z'),
);

describe('every forecast', () => {
  const of = (runs: number) => ({ numRuns: runs });

  it('tiles the time asked for, and neighbours differ in a value', () => {
    fc.assert(
      fc.property(policySet, subject, from, fc.integer({ min: 1, max: 10 * DAY }), (set, one, fromMs, lengthMs) => {
        const { segments } = forecast({ policies: compiled(...set), ...one, fromMs, toMs: fromMs + lengthMs });
        expect(segments[0]?.fromMs).toBe(fromMs);
        expect(segments.at(-1)?.toMs).toBe(fromMs + lengthMs);
        for (const [index, segment] of segments.entries()) {
          const next = segments[index + 1];
          expect(segment.toMs).toBeGreaterThan(segment.fromMs);
          if (!next) continue;
          expect(next.fromMs).toBe(segment.toMs);
          expect(settingsOf(next)).not.toEqual(settingsOf(segment));
        }
      }),
      of(150),
    );
  });

  it('agrees with the decision at any instant, in every field that something asks for', () => {
    fc.assert(
      fc.property(
        policySet,
        subject,
        from,
        fc.array(fc.nat(8 * DAY - 1), { minLength: 20 }),
        (set, one, fromMs, offsets) => {
          const policies = compiled(...set);
          const { segments } = forecast({ policies, ...one, fromMs, toMs: fromMs + 8 * DAY });
          for (const instantMs of offsets.map((offset) => fromMs + offset)) {
            const segment = segments.find(({ fromMs, toMs }) => fromMs <= instantMs && instantMs < toMs);
            if (!segment) throw new Error('a gap');
            const compute = { ...one.compute, ...settingsOf(segment) };
            const baseline = one.baseline ?? settingsOf(one.compute);
            const { enforced } = decide({ policies, compute, baseline, instantMs });
            expect(settingsOf(segment)).toEqual({
              ...settingsOf(segment),
              ...enforced.size,
              ...(enforced.suspendTimeoutSeconds !== null && { suspendTimeoutSeconds: enforced.suspendTimeoutSeconds }),
            });
          }
        },
      ),
      of(150),
    );
  });

  it('is the same for a compute alone and in a fleet', () => {
    fc.assert(
      fc.property(policySet, fc.array(subject, { minLength: 2, maxLength: 12 }), from, (set, subjects, fromMs) => {
        const input = { policies: compiled(...set), fromMs, toMs: fromMs + 8 * DAY };
        const fleet = forecastFleet({ ...input, subjects });
        expect(fleet).toEqual(subjects.map((one) => forecast({ ...input, ...one })));
      }),
      of(60),
    );
  });
});
