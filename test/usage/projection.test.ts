import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/domain/random.ts';
import { anomalyOf } from '../../src/domain/usage/anomaly.ts';
import { projectMonth, shownProjection } from '../../src/domain/usage/projection.ts';
import { generateMonth, generateOwners, KINDS } from './generated-months.ts';
import { simulateMonth } from './simulated-month.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

/** A billing month that begins on a Sunday, known up to noon of its 15th day. */
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
const MONTH = { fromMs: FROM_MS, toMs: FROM_MS + 30 * DAY_MS, untilMs: FROM_MS + 14 * DAY_MS + 12 * HOUR_MS };

const isWeekend = (dayMs: number) => [0, 6].includes(new Date(dayMs).getUTCDay());
const usual = (dayMs: number) => (isWeekend(dayMs) ? 2 : 10);

/** The days before today. */
function days(count: number, used: (dayMs: number) => number): Map<number, number> {
  const todayMs = FROM_MS + 14 * DAY_MS;
  return new Map(
    Array.from({ length: count }, (_, ago) => todayMs - (ago + 1) * DAY_MS).map((dayMs) => [dayMs, used(dayMs)]),
  );
}

function spentIn(used: (dayMs: number) => number): number {
  let sum = used(FROM_MS + 14 * DAY_MS) / 2;
  for (let day = 0; day < 14; day += 1) sum += used(FROM_MS + day * DAY_MS);
  return sum;
}

describe('the projection of a month', () => {
  it('adds the mean of each weekday that is left to what is known', () => {
    const spent = spentIn(usual);
    const projected = projectMonth(days(28, usual), { month: MONTH, spent, unknown: 0 });
    let whole = 0;
    for (let day = 0; day < 30; day += 1) whole += usual(FROM_MS + day * DAY_MS);
    expect(projected?.mid).toBeCloseTo(whole, 2);
    // Days that are all alike still say what is left to 1 % only.
    const margins = [projected?.low, projected?.high].map((end = 0) => Math.abs(end - whole) / (whole - spent));
    for (const margin of margins) expect(margin).toBeGreaterThanOrEqual(0.0099);
    for (const margin of margins) expect(margin).toBeLessThan(0.02);
  });

  it('has an interval that is neither a point nor everything after a week of noisy days', () => {
    const random = seededRandom(7);
    for (let run = 0; run < 20; run += 1) {
      const used = days(7, (dayMs) => usual(dayMs) * (0.8 + 0.4 * random()));
      const { low, high } = projectMonth(used, { month: MONTH, spent: 120, unknown: 0 }) ?? { low: 0, high: 0 };
      const left = (low + high) / 2 - 120;
      expect((high - low) / left).toBeGreaterThan(0.05);
      expect((high - low) / left).toBeLessThan(2);
    }
  });

  it('is not shown where it is too wide to help, or of fewer than seven days', () => {
    const early = { ...MONTH, untilMs: FROM_MS + 12 * HOUR_MS };
    const erratic = new Map(
      [400, 0, 0, 3, 0, 900, 1, 0, 2, 1500].map((value, ago) => [FROM_MS - (ago + 1) * DAY_MS, value]),
    );
    const projected = projectMonth(erratic, { month: early, spent: 0, unknown: 0 });
    expect((projected?.high ?? 0) / (projected?.low ?? 1)).toBeGreaterThan(4);
    expect(shownProjection(projected)).toBe('too_wide');
    expect(shownProjection(undefined)).toBe('too_few_days');
    const near = { low: 100, mid: 200, high: 400 };
    expect(shownProjection(near)).toBe(near);
  });

  it('counts what unknown hours may have used, from nothing to twice that, and is never below what is known', () => {
    const projected = (unknown: number) => {
      const found = projectMonth(days(28, usual), { month: MONTH, spent: 100, unknown });
      if (!found) throw new Error('not projected');
      return found;
    };
    const [without, withUnknown] = [projected(0), projected(30)];
    expect(withUnknown.mid - without.mid).toBeCloseTo(30, 6);
    expect([withUnknown.low, withUnknown.high - 60]).toEqual([
      expect.closeTo(without.low, 2),
      expect.closeTo(without.high, 2),
    ]);
    const random = seededRandom(1);
    const noisy = projectMonth(
      days(28, () => (random() < 0.1 ? 50 : 0)),
      { month: MONTH, spent: 500, unknown: 0 },
    );
    expect(noisy?.low).toBeGreaterThanOrEqual(500);
  });

  it('is unknown with less than a week of known days', () => {
    expect(projectMonth(days(6, usual), { month: MONTH, spent: 1, unknown: 0 })).toBeUndefined();
  });

  /** `npm run bench -- projection` has each kind, day and history by itself, and says which of them are within 75 to 85 %. */
  it('contains what months of very different fleets, and sums of their owners, became in about 80 %', () => {
    const runs = Number(process.env.EBB_PROJECTION_RUNS ?? 8);
    const kinds = KINDS.filter((kind) => kind !== 'constant');
    const months = Array.from({ length: runs }, (_, seed) => [
      ...kinds.map((kind) => generateMonth(kind, 56, seed)),
      generateOwners(56, seed).total,
    ]).flat();
    const inside = months.flatMap(({ truth, projectedOn }) =>
      [7, 14, 21]
        .map(projectedOn)
        .filter((projected) => projected !== undefined)
        .map(({ low, high }) => low <= truth && truth <= high),
    );
    const covered = inside.filter(Boolean).length / inside.length;
    expect(Math.abs(covered - 0.8)).toBeLessThan(runs >= 100 ? 0.05 : 0.12);
  });

  it('contains what the month became in about 80 % of all months, whichever day it is asked on', () => {
    const months = Number(process.env.EBB_PROJECTION_RUNS ?? 60);
    const [seed, tolerance] = [Number(process.env.EBB_SEED ?? 1), months >= 2000 ? 0.03 : 0.12];
    const simulated = Array.from({ length: months }, (_, index) =>
      simulateMonth({ units: [10, 60], weeks: 8 }, Math.imul(seed, 0x9e3779b1) + index),
    );
    for (const day of [8, 15, 22]) {
      const inside = simulated.filter(({ truth, projectedOn }) => {
        const { low, high } = projectedOn(day);
        return low <= truth && truth <= high;
      });
      const covered = inside.length / months;
      if (months >= 2000) process.stdout.write(`day ${day}: ${covered} of ${months} months, seed ${seed}\n`);
      expect(Math.abs(covered - 0.8)).toBeLessThan(tolerance);
    }
  });
});

describe('a spend anomaly', () => {
  const yesterdayMs = FROM_MS + 13 * DAY_MS;
  const ask = (past: Map<number, number>, minExcess = 1) => anomalyOf(past, { yesterdayMs, minExcess });

  it('is a day above the 99 % interval of its weekday', () => {
    const past = days(85, usual);
    expect(ask(past)).toBeUndefined();
    expect(ask(new Map(past).set(yesterdayMs, 30))).toMatchObject({ dayMs: yesterdayMs, used: 30 });
    // A Saturday that is like a workday is one, too.
    expect(isWeekend(yesterdayMs)).toBe(true);
    expect(ask(new Map(past).set(yesterdayMs, 10))).toMatchObject({ used: 10 });
  });

  it('is none of which too little is known, or that is too small to matter', () => {
    expect(ask(new Map(days(28, usual)).set(yesterdayMs, 30))).toBeUndefined();
    const past = days(85, usual);
    past.delete(yesterdayMs);
    expect(ask(past)).toBeUndefined();
    expect(ask(new Map(past).set(yesterdayMs, 2.9), 1)).toBeUndefined();
  });

  it('is seen on about one ordinary day in 200', () => {
    let seen = 0;
    for (let seed = 0; seed < 4000; seed += 1) {
      const random = seededRandom(seed);
      const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      if (ask(days(85, (dayMs) => usual(dayMs) * 10 + 10 * normal()))) seen += 1;
    }
    expect(seen / 4000).toBeLessThan(0.009);
    expect(seen / 4000).toBeGreaterThan(0.001);
  });
});
