/** The result of a trial so far. Source of the formulas: docs/savings.md. */
import { type Draw, type TrialDesign, trialSpan } from './assignment.ts';
import type { LocalDay } from './cells.ts';
import { type ArmTotals, armTotals, type Cells, cellsOf, effectiveUnits, isControlCell } from './cells.ts';
import { effectTest, type Interval, savedShare } from './interval.ts';

/** One unit of a trial with its facts. */
export interface TrialUnit {
  unit: string;
  owner: string;
  /** As it was really assigned. */
  draw: Draw;
  /** Why it is in neither group; absent where it is in one. */
  leftOut?: string | undefined;
  /** US dollars for a CU-hour; absent where that is not known. */
  usdPerCuHour?: number | undefined;
  /** By local day. */
  usage: ReadonlyMap<number, LocalDay>;
  /** Starts of its computes, by local day; a missing day is unknown. Absent where nothing is known. */
  starts?: ReadonlyMap<number, number> | undefined;
}

export interface SavingsInput {
  design: TrialDesign;
  units: readonly TrialUnit[];
  /** Usage is known up to this instant at most, milliseconds since the epoch. */
  nowMs: number;
  /** Local days: only those from here on, and before there. */
  fromDay?: number | undefined;
  untilDay?: number | undefined;
  /** Periods that count for no unit, from 0. */
  periodsLeftOut?: ReadonlySet<number> | undefined;
}

/** Low, middle and high of something; null where it is not measurable or not known. */
export type Range = Interval | null;

/** Of a group of units, or of all. */
export interface Saved {
  units: number;
  effectiveUnits: number;
  unitDays: { control: number; treated: number };
  /** The share of the usage without policies. */
  relative: Range;
  cuHours: Range;
  usd: Range;
  /** The cost of the trial: the saving that policies would have made on the usage of the control group. */
  trialCost: { cuHours: Range; usd: Range };
}

export interface Savings extends Saved {
  /** `interim` until the trial is over: then it may yet change. */
  state: 'interim' | 'complete';
  /** True if the interval excludes zero; null while it is too early to say. */
  distinguishable: boolean | null;
  unknownHours: number;
  startsPerUnitDay: { control: number | null; treated: number | null; difference: Range };
  leftOut: { unit: string; reason: string }[];
}

/** Fewer effective units than this have no interval of their own. */
const FEWEST_EFFECTIVE = 10;

const NO_STARTS = { control: null, treated: null, difference: null };

/** Of all units of the trial, at 95 %. */
export function savingsOf(input: SavingsInput): Savings {
  const { design, nowMs } = input;
  const units = input.units.filter(({ leftOut }) => leftOut === undefined);
  const saved = savedBy(input, units, 0.95);
  const state = nowMs >= trialSpan(design).untilMs && input.untilDay === undefined ? 'complete' : 'interim';
  return {
    ...saved,
    state,
    distinguishable: state === 'interim' || !saved.relative ? null : saved.relative.low > 0 || saved.relative.high < 0,
    unknownHours: units.reduce((sum, { usage }) => sum + unknownHoursOf(input, usage), 0),
    startsPerUnitDay: startsOf(input, units),
    leftOut: input.units.flatMap(({ unit, leftOut }) => (leftOut === undefined ? [] : [{ unit, reason: leftOut }])),
  };
}

/**
 * By owner, the largest first. All intervals together are right with 95 %, so each is at 1 − 5 % / owners; of an owner with less than ten
 * effective units there is none.
 */
export function savingsByOwner(input: SavingsInput): (Saved & { owner: string })[] {
  const units = input.units.filter(({ leftOut }) => leftOut === undefined);
  const owners = [...new Set(units.map(({ owner }) => owner))].sort();
  const level = 1 - 0.05 / Math.max(1, owners.length);
  const all = owners.map((owner) => {
    const own = units.filter((unit) => unit.owner === owner);
    const used = own.reduce((sum, { usage }) => sum + usedIn(usage), 0);
    return { used, saved: { owner, ...savedBy(input, own, level, FEWEST_EFFECTIVE) } };
  });
  return all.sort((a, b) => b.used - a.used).map(({ saved }) => saved);
}

function savedBy(input: SavingsInput, units: readonly TrialUnit[], level: number, fewest = 0): Saved {
  const cells = cellsBy(
    input,
    units,
    ({ usage }) => new Map([...usage].map(([day, { cuSeconds }]) => [day, cuSeconds])),
  );
  const totals = armTotals(cells);
  const effective = effectiveUnits(cells);
  const relative = effective < fewest ? null : savedShare(effectTest(cells), level);
  const usd = usdTotals(cells, units);
  const hours = { treated: totals.treated.sum / 3600, control: totals.control.sum / 3600 };
  return {
    units: units.length,
    effectiveUnits: effective,
    unitDays: { control: totals.control.unitDays, treated: totals.treated.unitDays },
    relative,
    cuHours: saving(relative, hours.treated),
    usd: saving(relative, usd?.treated),
    trialCost: { cuHours: costing(relative, hours.control), usd: costing(relative, usd?.control) },
  };
}

function cellsBy(
  { design, fromDay, untilDay, periodsLeftOut }: SavingsInput,
  units: readonly TrialUnit[],
  daysOf: (unit: TrialUnit) => ReadonlyMap<number, number | null>,
): Cells {
  return cellsOf(
    design,
    units.map((unit) => ({ slot: unit.draw.slot, days: daysOf(unit) })),
    {
      ...(fromDay !== undefined && { fromDay }),
      ...(untilDay !== undefined && { untilDay }),
      ...(periodsLeftOut && {
        leftOut: (day: number) => periodsLeftOut.has(Math.floor((day - design.fromDay) / design.rotateDays)),
      }),
    },
  );
}

/** Relative to the usage with the policies: used × r / (1 − r). */
function saving(relative: Range, used: number | undefined): Range {
  return used === undefined ? null : mapRange(relative, (share) => (used * share) / (1 - share));
}

/** Relative to the usage without them: used × r. */
function costing(relative: Range, used: number | undefined): Range {
  return used === undefined ? null : mapRange(relative, (share) => used * share);
}

function mapRange(range: Range, change: (value: number) => number): Range {
  return range && { low: change(range.low), mid: change(range.mid), high: change(range.high) };
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

/** By the same test: the effect of policies on the starts of a unit-day. */
function startsOf(input: SavingsInput, units: readonly TrialUnit[]): Savings['startsPerUnitDay'] {
  const known = units.filter(({ starts }) => starts !== undefined);
  if (known.length === 0) return NO_STARTS;
  const cells = cellsBy(input, known, ({ starts = new Map() }) => starts);
  const { control, treated } = armTotals(cells);
  const mean = ({ sum, unitDays }: ArmTotals) => (unitDays === 0 ? null : sum / unitDays);
  const perDay = mean(treated);
  const relative = savedShare(effectTest(cells));
  // Fewer starts are a saving: the difference goes the other way.
  const difference = relative && perDay !== null ? saving(relative, perDay) : null;
  const turned = difference && { low: -difference.high, mid: -difference.mid, high: -difference.low };
  return { control: mean(control), treated: perDay, difference: turned };
}

/** Counts days of the trial within the range: the time before it does not count. */
function unknownHoursOf(
  { design, fromDay = design.fromDay, untilDay }: SavingsInput,
  usage: TrialUnit['usage'],
): number {
  const last = Math.min(untilDay ?? Number.POSITIVE_INFINITY, design.fromDay + design.periods * design.rotateDays);
  const counts = (day: number) => day >= Math.max(fromDay, design.fromDay) && day < last;
  return [...usage].reduce((sum, [day, { unknownHours }]) => sum + (counts(day) ? unknownHours : 0), 0);
}

function usedIn(usage: TrialUnit['usage']): number {
  return [...usage.values()].reduce((sum, { cuSeconds }) => sum + (cuSeconds ?? 0), 0);
}

/* Trials that are ended early because of what they cost. */

/** The leader's word that a trial has ended for all units. */
export interface TrialStop {
  /** Name of the policy, and the digest of its terms: another trial under this name goes on. */
  policy: string;
  terms: string;
  /** Milliseconds since the epoch. */
  stoppedAtMs: number;
  /** Its cost at that time, US dollars. */
  costUsd: number;
}

export function isStopOf({ policy, terms }: TrialStop, trial: { name: string; digest: string }): boolean {
  return policy === trial.name && terms === trial.digest;
}

/**
 * The cost of the trial, in US dollars, if that is more than `mostUsd`; else undefined. It is the middle of the measured cost of `ebb
 * savings`. A cost that is not measurable, or has no price, is not known to be too high.
 */
export function tooHighCost(input: SavingsInput, mostUsd: number): number | undefined {
  const { usd } = savingsOf(input).trialCost;
  return usd && usd.mid > mostUsd ? usd.mid : undefined;
}
