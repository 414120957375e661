/** Months of fleets whose daily use has a known shape, with the days before them, and what was projected on some of their days. */

import { seededRandom } from '../../src/domain/random.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time/units.ts';
import { type Projection, projectMonth, shownProjection } from '../../src/domain/usage/projection.ts';
import { type RunsOut, runsOut } from '../../src/domain/usage/runs-out.ts';
import { type Dice, diceFrom } from '../support/dice.ts';
import { drawUse, REAL_WEEKS, type Visits, visitsOf } from '../support/real-use.ts';

/**
 * `constant`: always on at one size. `steady`: always on, autoscaling. `weekly`: quiet weekends. `bursty`: a few jobs that run for days, or
 * not. `shifts`: weekly, with jumps of the level. `growing`: computes come, more than go. `databases`: as the quantiles of 67 real
 * analytical databases (hours used, their repetition after a day and a week, changes of regime). `mixed`: owners of all of these kinds.
 */
export const KINDS = ['constant', 'steady', 'weekly', 'bursty', 'shifts', 'growing', 'databases', 'mixed'] as const;
export type Kind = (typeof KINDS)[number];

export interface ProjectedMonth {
  /** What the month became. */
  truth: number;
  /** At 06:00 of a day of the month, from 1 on, with usage known up to 04:00; undefined if nothing is shown. */
  projectedOn(day: number): Projection | undefined;
}

export interface GeneratedMonth extends ProjectedMonth {
  /** What the days before it used. */
  before: number;
  /** The time at which is asked. */
  askedAtMs(day: number): number;
  toMs: number;
  /** When a limit will be used, as seen at that time. */
  runsOutOn(day: number, limit: number): RunsOut | undefined;
  /** When the limit is used, at an even rate in each day; undefined if it lasts. */
  usedAtMs(limit: number): number | undefined;
  /** When a straight line through what was used so far reaches the limit. */
  straightLineOn(day: number, limit: number): number;
}

/** What is used in each day of a span of days; the first is a Monday. */
type Source = (days: number, dice: Dice) => number[];

const FIRST_MONDAY_MS = Date.parse('2026-08-03T00:00:00Z');

/** A month with so many days known before it; 0: the fleet began with the month. */
export function generateMonth(kind: Kind, historyDays: number, seed: number): GeneratedMonth {
  const dice = diceFrom(seed);
  return monthOf((days) => SOURCES[kind](days, dice), historyDays, dice);
}

/** A month of one database as in real-use.ts under a timeout of five minutes, used for five hours or more in the four weeks before. */
export function generateRealMonth(seed: number): GeneratedMonth {
  const random = seededRandom(seed);
  const kind = seed % 2 === 0 ? 'serverless' : 'provisioned';
  for (;;) {
    const used = hoursByDay(visitsOf(random, drawUse(random, kind), FIRST_MONDAY_MS));
    const shift = Math.floor(random() * (7 * REAL_WEEKS - 28 - 30));
    if (sum(used.slice(shift, shift + 28)) >= 5) return monthFrom(used, { shift, historyDays: 28, monthDays: 30 });
  }
}

function hoursByDay({ activities }: Visits): number[] {
  const used = new Array<number>(7 * REAL_WEEKS).fill(0);
  let untilMs = 0;
  for (const { fromMs, toMs } of activities) {
    const day = Math.floor((fromMs - FIRST_MONDAY_MS) / DAY_MS);
    const endMs = toMs + 300_000;
    used[day] = (used[day] ?? 0) + Math.max(0, endMs - Math.max(fromMs, untilMs)) / HOUR_MS;
    untilMs = Math.max(untilMs, endMs);
  }
  return used;
}

/** A fleet of some owners whose days and levels partly move together: its total, and each owner. */
export function generateOwners(historyDays: number, seed: number): { total: GeneratedMonth; owners: GeneratedMonth[] } {
  const dice = diceFrom(seed);
  const count = 2 + Math.floor(7 * dice.uniform());
  const { shift, monthDays } = calendarOf(dice);
  const days = shift + historyDays + monthDays;
  // What all owners share: the company's own good and bad days, and its growth.
  const shared = wobble(days, 0.1 * dice.uniform(), dice);
  let level = 0;
  const common = shared.map((value) => {
    level += 0.01 * dice.normal();
    return Math.exp(value + level);
  });
  const owners = Array.from({ length: count }, () => {
    const kind = KINDS[Math.floor(KINDS.length * dice.uniform())] ?? 'steady';
    return SOURCES[kind](days, dice).map((value, day) => value * (common[day] ?? 1));
  });
  const asMonth = (used: readonly number[]) => monthFrom(used, { shift, historyDays, monthDays });
  return { total: asMonth(added(owners)), owners: owners.map(asMonth) };
}

const SOURCES: Record<Kind, Source> = {
  constant: (days, dice) => new Array<number>(days).fill(100 * Math.exp(dice.normal())),
  steady: (days, dice) => {
    const noise = wobble(days, between(dice, 0.02, 0.06), dice);
    return noise.map((value) => 100 * Math.exp(value));
  },
  weekly: (days, dice) => weekly(days, dice),
  bursty: (days, dice) => {
    const jobs = Array.from({ length: 1 + Math.floor(6 * dice.uniform()) }, () => job(days, dice));
    const base = (between(dice, 0, 0.5) * sum(jobs.flat())) / days;
    return added(jobs).map((value) => value + base);
  },
  shifts: (days, dice) => {
    let level = 0;
    return weekly(days, dice).map((value) => {
      if (dice.uniform() < 1 / 30) level += 0.35 * dice.normal();
      return value * Math.exp(level);
    });
  },
  growing: (days, dice) => {
    const before = 3 + Math.floor(38 * dice.uniform());
    const [comes, goes] = [(before * between(dice, 0.05, 0.5)) / 30, 0.05 / 30];
    const rhythm = weekly(days, dice);
    let sizes = Array.from({ length: before }, () => Math.exp(0.8 * dice.normal()));
    return rhythm.map((value) => {
      sizes = sizes.filter(() => dice.uniform() >= goes);
      for (let due = comes; due > 0; due -= 1) if (dice.uniform() < due) sizes.push(Math.exp(0.8 * dice.normal()));
      return value * sum(sizes);
    });
  },
  databases: (days, dice) =>
    added(Array.from({ length: 5 + Math.floor(36 * dice.uniform()) }, () => database(days, dice))),
  mixed: (days, dice) => {
    const kinds = KINDS.filter((kind) => kind !== 'mixed');
    const parts = Array.from({ length: 2 + Math.floor(9 * dice.uniform()) }, () => {
      const part = SOURCES[kinds[Math.floor(kinds.length * dice.uniform())] ?? 'steady'](days, dice);
      const size = Math.exp(dice.normal()) / (sum(part) || 1);
      return part.map((value) => 10_000 * size * value);
    });
    return added(parts);
  },
};

function weekly(days: number, dice: Dice): number[] {
  const weekend = between(dice, 0, 0.6);
  const friday = dice.uniform() < 0.3 ? 0.8 : 1;
  const noise = wobble(days, 0.05 * Math.exp(dice.uniform() * Math.log(5)), dice);
  return noise.map((value, day) => {
    const workday = day % 7 === 4 ? friday : 1;
    return 100 * (day % 7 >= 5 ? weekend : workday) * Math.exp(value);
  });
}

/** On for some days, off for some; what it uses in a day is log-normal. */
function job(days: number, dice: Dice): number[] {
  const [on, off] = [between(dice, 1, 4), between(dice, 1, 8)];
  const size = Math.exp(0.5 * dice.normal());
  let isOn = dice.uniform() < on / (on + off);
  return Array.from({ length: days }, () => {
    isOn = dice.uniform() < 1 / (isOn ? on : off) ? !isOn : isOn;
    return isOn ? size * Math.exp(dice.normal()) : 0;
  });
}

/** Hours in which it is used: some by a weekly habit, the others at random; now and then it stops, starts or changes its habit. */
function database(days: number, dice: Dice): number[] {
  const size = Math.exp(1.2 * dice.normal());
  const share = Math.min(0.9, 0.08 * Math.exp(1.3 * dice.normal()));
  const strength = dice.uniform();
  const habit = () => Array.from({ length: 168 }, () => dice.uniform() < share);
  let [hours, isUsed] = [habit(), dice.uniform() < 0.9];
  return Array.from({ length: days }, (_, day) => {
    if (dice.uniform() < 1 / 60) [hours, isUsed] = [habit(), isUsed ? dice.uniform() < 0.6 : true];
    if (!isUsed) return 0;
    const used = Array.from({ length: 24 }, (__, hour) =>
      dice.uniform() < strength ? hours[(day % 7) * 24 + hour] === true : dice.uniform() < share,
    );
    return size * used.filter(Boolean).length;
  });
}

/** Noise by day that lasts for some days: AR(1), its correlation drawn from 0 to 0.7. */
function wobble(days: number, deviation: number, dice: Dice): number[] {
  const memory = between(dice, 0, 0.7);
  let value = deviation * dice.normal();
  return Array.from({ length: days }, () => {
    value = memory * value + Math.sqrt(1 - memory ** 2) * deviation * dice.normal();
    return value;
  });
}

/** The month has 28 to 31 days and begins on any weekday. */
function calendarOf(dice: Dice): { shift: number; monthDays: number } {
  return { shift: Math.floor(7 * dice.uniform()), monthDays: 28 + Math.floor(4 * dice.uniform()) };
}

function monthOf(source: (days: number) => number[], historyDays: number, dice: Dice): GeneratedMonth {
  const calendar = calendarOf(dice);
  const used = source(calendar.shift + historyDays + calendar.monthDays);
  return monthFrom(used, { ...calendar, historyDays });
}

function monthFrom(
  used: readonly number[],
  { shift, historyDays, monthDays }: { shift: number; historyDays: number; monthDays: number },
): GeneratedMonth {
  const first = shift + historyDays;
  const dayMs = (day: number) => FIRST_MONDAY_MS + day * DAY_MS;
  const seenOn = (day: number) => {
    const today = first + day - 1;
    const known = new Map(used.slice(shift, today).map((value, index) => [dayMs(shift + index), value]));
    const month = { fromMs: dayMs(first), toMs: dayMs(first + monthDays), untilMs: dayMs(today) + 4 * HOUR_MS };
    return { known, month, spent: sum(used.slice(first, today)) + (4 / 24) * (used[today] ?? 0) };
  };
  return {
    truth: sum(used.slice(first, first + monthDays)),
    projectedOn(day) {
      const { known, ...of } = seenOn(day);
      const shown = shownProjection(projectMonth(known, { ...of, unknown: 0 }));
      return typeof shown === 'object' ? shown : undefined;
    },
    before: sum(used.slice(shift, first)),
    toMs: dayMs(first + monthDays),
    askedAtMs: (day) => seenOn(day).month.untilMs,
    runsOutOn(day, limit) {
      const { known, ...of } = seenOn(day);
      return runsOut(known, { ...of, limit });
    },
    straightLineOn(day, limit) {
      const { month, spent } = seenOn(day);
      return month.fromMs + ((month.untilMs - month.fromMs) * limit) / spent;
    },
    usedAtMs(limit) {
      let total = 0;
      for (let index = first; index < first + monthDays; index += 1) {
        const value = used[index] ?? 0;
        if (total + value >= limit) return dayMs(index) + ((limit - total) / value) * DAY_MS;
        total += value;
      }
      return undefined;
    },
  };
}

function added(parts: readonly (readonly number[])[]): number[] {
  return (parts[0] ?? []).map((_, day) => sum(parts.map((part) => part[day] ?? 0)));
}

function between(dice: Dice, low: number, high: number): number {
  return low + (high - low) * dice.uniform();
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
