import { armInPeriod, type TrialDesign } from '../../../src/domain/trial/assignment.ts';
import { type Cells, cellsOf, isControlCell } from '../../../src/domain/trial/cells.ts';
import { type Dice, diceFrom } from '../../support/dice.ts';

/** How a simulated fleet uses what it uses. */
export interface SimulatedTrial {
  units: number;
  /** Mean share that a treated unit saves. */
  effect: number;
  /** `normal`, or t with 4 degrees of freedom: more days that are far off. */
  tails: 'normal' | 't4';
  /** Every unit saves the same, or each its own share, N(effect, effect / 2) in [−0.2, 0.95]. */
  effects?: 'common' | 'own';
  weeks?: number;
  oneOf?: number;
}

export interface Simulated {
  cells: Cells;
  /** 1 − used / what would have been used, over the treated cells that count. */
  truth: number;
}

/**
 * Eight weeks of a fleet: sizes log-normal with σ 1.3; a walk by week that all share, 0.05; an AR(1) by day with ρ 0.5 and standard
 * deviation 0.35; jumps of the level, 2 % of the weeks, 0.7; weekends at 0.3; days without use; units that come and go; missing days.
 */
export function simulateTrial(of: SimulatedTrial, seed: number): Simulated {
  const { units, weeks = 8, oneOf = 4 } = of;
  const dice = diceFrom(seed);
  const design: TrialDesign = { seed: '', oneOf, rotateDays: 7, fromDay: 4, periods: weeks, zone: 'UTC' };
  const shared = weeklyWalk(dice, weeks);
  const rows = Array.from({ length: units }, () => simulateUnit(of, dice, design, shared));
  const cells = cellsOf(
    design,
    rows.map(({ slot, used }) => ({ slot, days: used })),
  );
  return {
    cells,
    truth: truthOf(
      cells,
      cellsOf(
        design,
        rows.map(({ slot, without }) => ({ slot, days: without })),
      ),
    ),
  };
}

function truthOf(cells: Cells, without: Cells): number {
  const columns = cells.periodOf.length;
  let [used, wouldBe] = [0, 0];
  for (const [index, value] of cells.values.entries()) {
    if (Number.isNaN(value) || isControlCell(cells, Math.floor(index / columns), index % columns)) continue;
    used += value;
    wouldBe += without.values[index] ?? 0;
  }
  return 1 - used / wouldBe;
}

function simulateUnit(of: SimulatedTrial, dice: Dice, design: TrialDesign, shared: readonly number[]) {
  const slot = Math.floor(dice.uniform() * design.oneOf);
  const effect = effectOf(of, dice);
  const isKnown = comingsAndGoings(dice, shared.length * 7);
  const used = new Map<number, number | null>();
  const without = new Map<number, number | null>();
  for (const [day, value] of dailyUse(of, dice, shared).entries()) {
    const saved = armInPeriod(design, slot, Math.floor(day / 7)) === 'treated' ? effect : 0;
    const known = isKnown(day);
    used.set(design.fromDay + day, known ? value * (1 - saved) : null);
    without.set(design.fromDay + day, known ? value : null);
  }
  return { slot, used, without };
}

/** One unit in ten comes later than the trial, one goes before its end, and two days in a hundred are not known. */
function comingsAndGoings(dice: Dice, days: number): (day: number) => boolean {
  const comes = dice.uniform() < 0.1 ? dice.uniform() * days : 0;
  const goes = dice.uniform() < 0.1 ? dice.uniform() * days : days;
  return (day) => dice.uniform() >= 0.02 && day >= comes && day < goes;
}

/** What one project uses day by day. */
export function dailyUse({ tails }: Pick<SimulatedTrial, 'tails'>, dice: Dice, shared: readonly number[]): number[] {
  const idle = dice.uniform() < 0.3 ? 0.2 : 0.01;
  let level = 1.3 * dice.normal();
  let wobble = 0.35 * dice.normal();
  return Array.from({ length: shared.length * 7 }, (_, day) => {
    if (dice.uniform() < 0.02 / 7) level += 0.7 * dice.normal();
    wobble = 0.5 * wobble + 0.35 * Math.sqrt(0.75) * (tails === 'normal' ? dice.normal() : dice.t4());
    if (dice.uniform() < idle) return 0;
    const weekend = day % 7 >= 5 ? 0.3 : 1;
    return 10_000 * weekend * Math.exp(level + wobble + (shared[Math.floor(day / 7)] ?? 0));
  });
}

function effectOf({ effect, effects = 'own' }: SimulatedTrial, dice: Dice): number {
  if (effects === 'common') return effect;
  for (;;) {
    const own = effect + (effect / 2) * dice.normal();
    if (own >= -0.2 && own <= 0.95) return own;
  }
}

/** By week, the logarithm of what all projects have in common. */
export function weeklyWalk(dice: Dice, weeks: number): number[] {
  let level = 0;
  return Array.from({ length: weeks }, () => {
    level += 0.05 * dice.normal();
    return level;
  });
}
