import { describe, expect, it } from 'vitest';
import { frozenPeriods } from '../../../src/domain/policy/frozen-periods.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import { armInPeriod, drawOf, type TrialDesign } from '../../../src/domain/trial/assignment.ts';
import { localDays } from '../../../src/domain/trial/cells.ts';
import { expectedPower } from '../../../src/domain/trial/power.ts';
import {
  type SavingsInput,
  savingsByOwner,
  savingsOf,
  type TrialUnit,
  tooHighCost,
} from '../../../src/domain/trial/savings.ts';
import { aCompute, aFreeze, aTrial, at, compiled } from '../../support/builders.ts';
import { aSelector } from '../../support/selectors.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MARCH = at('2026-03-01T00:00:00Z') / DAY;
const hours = (fromMs: number, count: number, of: (index: number) => number | null = () => 1) =>
  Array.from({ length: count }, (_, index) => ({
    startMs: fromMs + index * HOUR,
    seconds: 3600,
    cuSeconds: of(index),
  }));

describe('usage by local day', () => {
  it('has 23 and 25 hours where clocks change', () => {
    const span = { zone: 'Europe/Berlin', fromDay: MARCH + 27, untilDay: MARCH + 29 };
    // Sunday, 2026-03-29, from 2026-03-28T23:00Z to 22:00Z.
    const days = localDays(hours(at('2026-03-27T23:00:00Z'), 47), span);
    expect([...days.values()].map(({ cuSeconds }) => cuSeconds)).toEqual([24, 23]);
    const autumn = at('2026-10-25T00:00:00Z') / DAY;
    const long = localDays(hours(at('2026-10-24T22:00:00Z'), 25), { ...span, fromDay: autumn, untilDay: autumn + 1 });
    expect(long.get(autumn)).toEqual({ cuSeconds: 25, unknownHours: 0 });
  });

  it('is not known of a day with an hour that is not, and says how many are not', () => {
    const span = { zone: 'UTC', fromDay: MARCH, untilDay: MARCH + 3 };
    const days = localDays(
      hours(MARCH * DAY, 60, (index) => (index === 30 || index === 31 ? null : 1)),
      span,
    );
    expect([...days.values()]).toEqual([
      { cuSeconds: 24, unknownHours: 0 },
      { cuSeconds: null, unknownHours: 2 },
      { cuSeconds: null, unknownHours: 12 },
    ]);
  });

  it('divides an hour that midnight divides', () => {
    const span = { zone: 'Asia/Kolkata', fromDay: MARCH, untilDay: MARCH + 2 };
    // Midnight in Kolkata is 18:30 UTC.
    const days = localDays(
      hours(at('2026-02-28T18:00:00Z'), 49, (index) => (index === 24 ? 10 : 1)),
      span,
    );
    expect([...days.values()].map(({ cuSeconds }) => cuSeconds)).toEqual([0.5 + 23 + 5, 5 + 23 + 0.5]);
  });

  it('takes days where they are local days, and else knows neither', () => {
    const daily = [{ startMs: MARCH * DAY, seconds: 86_400, cuSeconds: 7 }];
    const knownIn = (zone: string) => [...localDays(daily, { zone, fromDay: MARCH - 1, untilDay: MARCH + 2 }).values()];
    expect(knownIn('UTC')).toEqual([{ cuSeconds: 7, unknownHours: 0 }]);
    expect(knownIn('Europe/Berlin').map(({ cuSeconds }) => cuSeconds)).toEqual([null, null]);
  });
});

const DESIGN: TrialDesign = aTrial().design;
const UNTIL = (DESIGN.fromDay + 56) * DAY;

/** A unit that uses its size, with noise, and as treated less; from four weeks before the trial on. */
function unitWith(
  index: number,
  { effect = 0.3, fromDay = DESIGN.fromDay - 28, untilDay = DESIGN.fromDay + 56 } = {},
): TrialUnit {
  const random = seededRandom(index + 1);
  const draw = drawOf(DESIGN, `p-${index}`);
  const size = 2000 + 6000 * random();
  const usage: [number, { cuSeconds: number; unknownHours: number }][] = [];
  const starts: [number, number][] = [];
  for (let day = fromDay; day < untilDay; day += 1) {
    const period = Math.floor((day - DESIGN.fromDay) / 7);
    const isTreated = period >= 0 && armInPeriod(DESIGN, draw.slot, period) === 'treated';
    usage.push([day, { cuSeconds: size * (0.7 + 0.6 * random()) * (isTreated ? 1 - effect : 1), unknownHours: 0 }]);
    starts.push([day, Math.round((isTreated ? 4 : 2) + 2 * random())]);
  }
  return {
    ...{ unit: `p-${index}`, owner: index % 5 === 0 ? 'few' : 'many', draw, usdPerCuHour: 0.2 },
    ...{ usage: new Map(usage), starts: new Map(starts) },
  };
}
const fleet = (count: number, options?: Parameters<typeof unitWith>[1]) =>
  Array.from({ length: count }, (_, index) => unitWith(index, options));
const input = (fields: Partial<SavingsInput> = {}): SavingsInput => ({
  ...{ design: DESIGN, units: fleet(40), usedUntilMs: UNTIL },
  ...fields,
});

describe('what a trial has measured', () => {
  const saved = savingsOf(input());

  it('is the effect, as a share, in CU-hours and in dollars', () => {
    const { relative, cuHours, usd, trialCost, unitDays } = saved;
    if (!relative || !cuHours || !usd || !trialCost.usd || !trialCost.cuHours) throw new Error('not measurable');
    expect(relative.low).toBeLessThan(0.3);
    expect(relative.high).toBeGreaterThan(0.3);
    expect(relative.high - relative.low).toBeLessThan(0.06);
    // Each of the 40 units is treated in six of eight periods, of which six days each count.
    expect(unitDays).toEqual({ treated: 40 * 36, control: 40 * 12 });
    const treated = (cuHours.mid * (1 - relative.mid)) / relative.mid;
    const truth = input().units.flatMap(({ draw, usage }) =>
      [...usage].filter(([day]) => {
        const [period, of] = [Math.floor((day - DESIGN.fromDay) / 7), (day - DESIGN.fromDay) % 7];
        return period >= 0 && of !== 0 && armInPeriod(DESIGN, draw.slot, period) === 'treated';
      }),
    );
    expect(treated).toBeCloseTo(truth.reduce((sum, [, { cuSeconds }]) => sum + (cuSeconds ?? 0), 0) / 3600, 6);
    expect(usd.low).toBeCloseTo(cuHours.low * 0.2, 6);
    // The control group, a third as many unit-days that use more, would have saved this.
    expect(trialCost.cuHours.mid / cuHours.mid).toBeCloseTo(1 / 3, 1);
    expect(trialCost.usd.high).toBeCloseTo(trialCost.cuHours.high * 0.2, 6);
  });

  it('has more starts as the price', () => {
    const { control, treated, difference } = saved.startsPerUnitDay;
    expect(control).toBeCloseTo(3, 0);
    expect(treated).toBeCloseTo(5, 0);
    expect(difference?.low).toBeGreaterThan(1.5);
    expect(difference?.high).toBeLessThan(2.5);
  });

  it('claims nothing before its end', () => {
    expect(saved).toMatchObject({ state: 'complete', distinguishable: true });
    expect(savingsOf(input({ usedUntilMs: UNTIL - 1 }))).toMatchObject({ state: 'interim', distinguishable: null });
    expect(savingsOf(input({ untilDay: DESIGN.fromDay + 28 }))).toMatchObject({
      state: 'interim',
      distinguishable: null,
    });
    const nothing = savingsOf(input({ units: fleet(40, { effect: 0 }) }));
    expect(nothing).toMatchObject({ state: 'complete', distinguishable: false });
    expect(savingsOf(input({ units: [] }))).toMatchObject({
      relative: null,
      cuHours: null,
      usd: null,
      distinguishable: null,
    });
  });

  it('does not count units that are in neither group, nor days and periods that are left out', () => {
    const [first, ...others] = fleet(40);
    const leftOut = { ...(first as TrialUnit), leftOut: 'its usage is not known' };
    const without = savingsOf(input({ units: [leftOut, ...others] }));
    expect(without).toMatchObject({ units: 39, leftOut: [{ unit: 'p-0', reason: 'its usage is not known' }] });
    expect(without.relative).toEqual(savingsOf(input({ units: others })).relative);
    expect(savingsOf(input({ periodsLeftOut: new Set([0, 5]) })).unitDays).toMatchObject({
      treated: expect.any(Number),
      control: expect.any(Number),
    });
    const { unitDays } = savingsOf(input({ periodsLeftOut: new Set([0, 5]) }));
    expect(unitDays.treated + unitDays.control).toBe(40 * 36);
    const early = savingsOf(input({ fromDay: DESIGN.fromDay + 8, untilDay: DESIGN.fromDay + 10 })).unitDays;
    expect(early.treated + early.control).toBe(80);
  });

  it('has no dollars where a price is not known', () => {
    const units = fleet(40).map((unit, index) => (index === 3 ? { ...unit, usdPerCuHour: undefined } : unit));
    expect(savingsOf(input({ units }))).toMatchObject({
      usd: null,
      trialCost: { usd: null },
      cuHours: expect.anything(),
    });
  });

  it('is told by owner, with wider intervals, and none where units are few', () => {
    const [many, few] = savingsByOwner(input());
    expect(many).toMatchObject({ owner: 'many', units: 32 });
    expect(few).toMatchObject({ owner: 'few', units: 8, relative: null, cuHours: null });
    const alone = savingsOf(input({ units: fleet(40).filter(({ owner }) => owner === 'many') })).relative;
    expect((many?.relative?.high ?? 0) - (many?.relative?.low ?? 0)).toBeGreaterThan(
      (alone?.high ?? 0) - (alone?.low ?? 0),
    );
  });
});

describe('the cost that ends a trial', () => {
  const { mid = 0 } = savingsOf(input()).trialCost.usd ?? {};

  it('is the middle of what is measured, once it is more than the amount', () => {
    expect(mid).toBeGreaterThan(1);
    expect(tooHighCost(input(), mid - 0.01)).toBeCloseTo(mid, 6);
    expect(tooHighCost(input(), mid)).toBeUndefined();
  });

  it('is not known where a price, the usage or an interval is missing', () => {
    const units = fleet(40);
    const noPrice = units.map((unit, index) => (index === 3 ? { ...unit, usdPerCuHour: undefined } : unit));
    const noUsage = units.map((unit) => ({ ...unit, usage: new Map() }));
    const few = units.slice(0, 1);
    expect([noPrice, noUsage, few, []].map((one) => tooHighCost(input({ units: one }), 0))).toEqual(
      Array(4).fill(undefined),
    );
  });
});

describe('periods that are frozen', () => {
  const trial = aTrial();
  const day = (from: number) => ({ kind: 'interval' as const, startMs: from * DAY, endMs: (from + 1) * DAY });
  const frozen = (...days: number[]) =>
    frozenPeriods(compiled(trial, aFreeze({ at: days.map((one) => day(DESIGN.fromDay + one)) })), trial, [aCompute()]);

  it('for more than a fifth of their time are left out whole', () => {
    expect([...frozen(0, 7, 8)]).toEqual([1]);
    expect([...frozen()]).toEqual([]);
    const apart = aFreeze({ select: aSelector({ projects: ['other'] }) });
    expect([...frozenPeriods(compiled(trial, apart), trial, [aCompute()])]).toEqual([]);
  });
});

describe('what a trial could find out', () => {
  const power = (count: number, past = 56) => {
    const units = fleet(count, { effect: 0, fromDay: DESIGN.fromDay - past, untilDay: DESIGN.fromDay });
    const known = units.map(({ usage }) => new Map([...usage].map(([one, { cuSeconds }]) => [one, cuSeconds])));
    return expectedPower(DESIGN, known, DESIGN.fromDay - 1);
  };

  it('is the interval that it has later, if nothing is saved', () => {
    const { relative } = savingsOf(input({ units: fleet(40, { effect: 0 }) }));
    const half = ((relative?.high ?? 0) - (relative?.low ?? 0)) / 2;
    const expected = power(40);
    expect(expected?.days).toBe(56);
    expect(expected?.halfWidth).toBeGreaterThan(half * 0.7);
    expect(expected?.halfWidth).toBeLessThan(half * 1.4);
    expect(expected?.detectable).toBeGreaterThan(expected?.halfWidth ?? 1);
  });

  it('is more with more units, and about the same from a shorter past', () => {
    expect(power(60)?.detectable).toBeLessThan(power(12)?.detectable ?? 0);
    const shorter = power(40, 28);
    expect(shorter?.days).toBe(28);
    expect((shorter?.halfWidth ?? 0) / (power(40)?.halfWidth ?? 1)).toBeCloseTo(1, 0);
  });

  it('is not known from less than two periods, or of one unit', () => {
    expect(power(40, 13)).toBeUndefined();
    expect(power(1)).toBeUndefined();
    expect(expectedPower(DESIGN, [], 0)).toBeUndefined();
  });

  it('is found for a large fleet, here one without usage, of which a year is known', () => {
    const lastDay = DESIGN.fromDay - 1;
    const unused = new Map(Array.from({ length: 400 }, (_, index) => [lastDay - index, 0]));
    expect(expectedPower(DESIGN, Array(600).fill(unused), lastDay)).toBeUndefined();
  });
});
