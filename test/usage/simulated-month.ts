import { DAY_MS, HOUR_MS } from '../../src/domain/time/units.ts';
import { type Projection, projectMonth } from '../../src/domain/usage/projection.ts';
import { dailyUse, weeklyWalk } from '../domain/trial/simulated-trial.ts';
import { diceFrom } from '../support/dice.ts';

const MONTH_DAYS = 30;
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
const DAY_BEFORE = 7;

export interface SimulatedMonth {
  /** What all projects used in the month, in CU-seconds. */
  truth: number;
  /** What was projected at 06:00 of a day of the month, from 1 on; usage is known up to 04:00. */
  projectedOn(day: number): Projection;
}

/**
 * A month of a few projects that no budget limits, with whole weeks before it: sizes, walk, noise, jumps, weekends and days without use as in
 * simulateTrial, of one kind of tails or the other. It may begin on any day of the week.
 */
export function simulateMonth(of: { units: readonly [number, number]; weeks: number }, seed: number): SimulatedMonth {
  const dice = diceFrom(seed);
  const units = Math.round(of.units[0] + dice.uniform() * (of.units[1] - of.units[0]));
  const tails = dice.uniform() < 0.5 ? 'normal' : 't4';
  const shift = Math.floor(dice.uniform() * DAY_BEFORE);
  const before = of.weeks * 7;
  const shared = weeklyWalk(dice, of.weeks + 6);
  const used = new Array<number>(shared.length * 7).fill(0);
  for (let unit = 0; unit < units; unit += 1) {
    for (const [day, value] of dailyUse({ tails }, dice, shared).entries()) used[day] = (used[day] ?? 0) + value;
  }
  const days = used.slice(shift, shift + before + MONTH_DAYS);
  const sum = (from: number, to: number) => days.slice(from, to).reduce((total, value) => total + value, 0);
  return {
    truth: sum(before, before + MONTH_DAYS),
    projectedOn(day) {
      const today = before + day - 1;
      const dayMs = (index: number) => FROM_MS + (index - before) * DAY_MS;
      const known = new Map(days.slice(0, today).map((value, index) => [dayMs(index), value]));
      const month = { fromMs: FROM_MS, toMs: FROM_MS + MONTH_DAYS * DAY_MS, untilMs: dayMs(today) + 4 * HOUR_MS };
      const spent = sum(before, today) + (4 / 24) * (days[today] ?? 0);
      const projected = projectMonth(known, { month, spent, unknown: 0 });
      if (!projected) throw new Error('nothing is projected');
      return projected;
    },
  };
}
