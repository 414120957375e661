/** Computes the result of a trial so far. Source of the formulas: docs/savings.md. */
import { type Estimate, mapEstimate } from '../estimate.ts';
import { sum } from '../sum.ts';
import { type Draw, type TrialDesign, trialSpan } from './assignment.ts';
import {
  type ArmTotals,
  armTotals,
  type Cells,
  cellsOf,
  type DayLimits,
  daysOfTrial,
  effectiveUnits,
  isControlCell,
  type LocalDay,
} from './cells.ts';
import { effectTest, savedShare } from './interval.ts';

/** A unit of a trial with its measurements. */
export interface TrialUnit {
  unit: string;
  owner: string;
  /** The actual assignment. */
  draw: Draw;
  /** Why the unit is excluded; absent if it is not. */
  leftOut?: string | undefined;
  /** US dollars per CU-hour; absent if unknown. */
  usdPerCuHour?: number | undefined;
  /** Usage by local day. */
  usage: ReadonlyMap<number, LocalDay>;
  /** Starts of the unit's computes by local day; missing days are unknown. Absent if no day is known. */
  starts?: ReadonlyMap<number, number> | undefined;
}

export interface SavingsInput extends DayLimits {
  design: TrialDesign;
  units: readonly TrialUnit[];
  /** The end of the known usage, milliseconds since the epoch: a trial is complete once this is after its last day. */
  usedUntilMs: number;
  /** Periods to leave out for all units, counted from 0. */
  periodsLeftOut?: ReadonlySet<number> | undefined;
}

/** Null if not measurable or unknown. */
export type MaybeEstimate = Estimate | null;

/** The savings of a group of units. */
export interface Saved {
  units: number;
  effectiveUnits: number;
  unitDays: { control: number; treated: number };
  /** The saving as a share of the usage without policies. */
  relative: MaybeEstimate;
  cuHours: MaybeEstimate;
  usd: MaybeEstimate;
  /** The cost of the trial: what the policies would have saved in the control group. */
  trialCost: { cuHours: MaybeEstimate; usd: MaybeEstimate };
}

export interface Savings extends Saved {
  /** `interim` until the usage of all days of the trial is known, and for a range that ends earlier; results may still change. */
  state: 'interim' | 'complete';
  /** True if the interval excludes zero; null for an `interim` result, and if there is no bounded interval. */
  distinguishable: boolean | null;
  unknownHours: number;
  startsPerUnitDay: { control: number | null; treated: number | null; difference: MaybeEstimate };
  leftOut: { unit: string; reason: string }[];
}

/** The minimum number of effective units for an owner's own interval. */
const MIN_EFFECTIVE_UNITS = 10;

const NO_STARTS = { control: null, treated: null, difference: null };

/** The savings of all units of the trial, with 95 % intervals. */
export function savingsOf(input: SavingsInput): Savings {
  const { design, usedUntilMs } = input;
  const units = input.units.filter(({ leftOut }) => leftOut === undefined);
  const saved = savedOf(input, units, 0.95);
  const state = usedUntilMs >= trialSpan(design).untilMs && input.untilDay === undefined ? 'complete' : 'interim';
  return {
    ...saved,
    state,
    distinguishable: state === 'interim' || !saved.relative ? null : saved.relative.low > 0 || saved.relative.high < 0,
    unknownHours: sum(units.map(({ usage }) => unknownHoursOf(input, usage))),
    startsPerUnitDay: startsOf(input, units),
    leftOut: input.units.flatMap(({ unit, leftOut }) => (leftOut === undefined ? [] : [{ unit, reason: leftOut }])),
  };
}

/**
 * The savings by owner, the largest usage first. Each interval has a level of 1 − 5 % / owners, so that all together hold with 95 %.
 * Owners with less than ten effective units have no interval.
 */
export function savingsByOwner(input: SavingsInput): (Saved & { owner: string })[] {
  const units = input.units.filter(({ leftOut }) => leftOut === undefined);
  const owners = [...new Set(units.map(({ owner }) => owner))].sort();
  const level = 1 - 0.05 / Math.max(1, owners.length);
  const all = owners.map((owner) => {
    const ownUnits = units.filter((unit) => unit.owner === owner);
    const used = sum(ownUnits.map(({ usage }) => usedIn(usage)));
    return { used, saved: { owner, ...savedOf(input, ownUnits, level, MIN_EFFECTIVE_UNITS) } };
  });
  return all.sort((a, b) => b.used - a.used).map(({ saved }) => saved);
}

function savedOf(input: SavingsInput, units: readonly TrialUnit[], level: number, minEffectiveUnits = 0): Saved {
  const cells = cellsBy(
    input,
    units,
    ({ usage }) => new Map([...usage].map(([day, { cuSeconds }]) => [day, cuSeconds])),
  );
  const { control, treated } = armTotals(cells);
  const effective = effectiveUnits(cells);
  const relative = effective < minEffectiveUnits ? null : savedShare(effectTest(cells), level);
  const usd = usdTotals(cells, units);
  return {
    units: units.length,
    effectiveUnits: effective,
    unitDays: { control: control.unitDays, treated: treated.unitDays },
    relative,
    cuHours: savedAmount(relative, treated.sum / 3600),
    usd: savedAmount(relative, usd?.treated),
    trialCost: { cuHours: costAmount(relative, control.sum / 3600), usd: costAmount(relative, usd?.control) },
  };
}

function cellsBy(
  { design, fromDay, untilDay, periodsLeftOut }: SavingsInput,
  units: readonly TrialUnit[],
  daysOf: (unit: TrialUnit) => ReadonlyMap<number, number | null>,
): Cells {
  const rows = units.map((unit) => ({ slot: unit.draw.slot, days: daysOf(unit) }));
  const leftOut =
    periodsLeftOut && ((day: number) => periodsLeftOut.has(Math.floor((day - design.fromDay) / design.rotateDays)));
  return cellsOf(design, rows, { fromDay, untilDay, leftOut });
}

/** The saved amount from the usage with the policies: used × share / (1 − share). */
function savedAmount(relative: MaybeEstimate, used: number | undefined): MaybeEstimate {
  return relative && used !== undefined ? mapEstimate(relative, (share) => (used * share) / (1 - share)) : null;
}

/** The amount that could have been saved, from the usage without the policies: used × share. */
function costAmount(relative: MaybeEstimate, used: number | undefined): MaybeEstimate {
  return relative && used !== undefined ? mapEstimate(relative, (share) => used * share) : null;
}

/** US dollars of the known cells by arm; undefined if a price is missing. */
function usdTotals(cells: Cells, units: readonly TrialUnit[]): { control: number; treated: number } | undefined {
  const totals = { control: 0, treated: 0 };
  const columns = cells.periodOf.length;
  for (const [row, { usdPerCuHour }] of units.entries()) {
    if (usdPerCuHour === undefined) return undefined;
    for (let column = 0; column < columns; column += 1) {
      const value = cells.values[row * columns + column] || 0;
      totals[isControlCell(cells, row, column) ? 'control' : 'treated'] += (value / 3600) * usdPerCuHour;
    }
  }
  return totals;
}

/** The effect of the policies on starts per unit-day, by the same test. */
function startsOf(input: SavingsInput, units: readonly TrialUnit[]): Savings['startsPerUnitDay'] {
  const unitsWithStarts = units.filter(({ starts }) => starts !== undefined);
  if (unitsWithStarts.length === 0) return NO_STARTS;
  const cells = cellsBy(input, unitsWithStarts, ({ starts = new Map() }) => starts);
  const { control, treated } = armTotals(cells);
  const mean = (arm: ArmTotals) => (arm.unitDays === 0 ? null : arm.sum / arm.unitDays);
  const perDay = mean(treated);
  const relative = savedShare(effectTest(cells));
  const saved = savedAmount(relative, perDay ?? undefined);
  // Fewer starts are a saving, so the difference has the opposite sign.
  const difference = saved && { low: -saved.high, mid: -saved.mid, high: -saved.low };
  return { control: mean(control), treated: perDay, difference };
}

/** Counts unknown hours on the trial's days within the range. */
function unknownHoursOf(input: SavingsInput, usage: TrialUnit['usage']): number {
  const { fromDay, untilDay } = daysOfTrial(input.design, input);
  return sum([...usage].map(([day, { unknownHours }]) => (fromDay <= day && day < untilDay ? unknownHours : 0)));
}

function usedIn(usage: TrialUnit['usage']): number {
  return sum([...usage.values()].map(({ cuSeconds }) => cuSeconds ?? 0));
}

/* Early ends of trials that cost too much. */

/** A leader's decision to end a trial early for all units. */
export interface TrialStop {
  /** The name of the trial's policy. A trial of this name with other {@link terms} continues. */
  policy: string;
  terms: string;
  /** Milliseconds since the epoch. */
  stoppedAtMs: number;
  /** The cost of the trial at that time, US dollars. */
  costUsd: number;
}

export function isStopOf({ policy, terms }: TrialStop, trial: { name: string; digest: string }): boolean {
  return policy === trial.name && terms === trial.digest;
}

/**
 * The cost of the trial in US dollars, the middle of the cost that `ebb savings` shows, if it exceeds `maxUsd`. Undefined for a lower cost, and
 * for one that is not measurable or has no price.
 */
export function tooHighCost(input: SavingsInput, maxUsd: number): number | undefined {
  const { usd } = savingsOf(input).trialCost;
  return usd && usd.mid > maxUsd ? usd.mid : undefined;
}
