/**
 * Months under a budget, with spikes, late and missing usage and a change of plan: what its steps change, how soon, and what they never do. A
 * few months; with EBB_BUDGET_MONTHS=200 as many, and their figures so far are printed after each 20.
 */
import { expect, it } from 'vitest';
import { type SimulatedBudget, simulateBudget } from './simulated-budget.ts';
import { TO_MS } from './simulated-project.ts';

const MONTHS = Number(process.env.EBB_BUDGET_MONTHS ?? 2);
const SEED = Number(process.env.EBB_SEED ?? 1);

it('limits in time, seldom, and never because data are missing', async () => {
  const months: SimulatedBudget[] = [];
  for (let index = 0; index < MONTHS; index += 1) {
    // From 0.6 to 1.5 of the amount.
    const ratio = 0.6 + (0.9 * ((index * 7 + 17) % 20)) / 19;
    months.push(await simulateBudget({ ratio }, SEED * 1_000_003 + index));
    if (months.length % 20 === 0) print(months);
  }
  const { most, early, crossed, never, exceptions } = figuresOf(months);
  expect(most).toBeLessThanOrEqual(4);
  expect(early).toEqual([]);
  expect(never).toEqual({ late: 0, beyond: 0, disconnected: 0, refused: 0, people: 0 });
  // Otherwise little is shown of what comes before the steps.
  const { byHand, raises, held } = exceptions;
  for (const count of MONTHS < 20 ? [byHand] : [byHand, raises, held]) expect(count).toBeGreaterThan(0);
  expect(crossed.length).toBeGreaterThan(0);
  for (const { spans } of crossed)
    expect(spans.some(({ of, untilMs }) => of === 'spent' && untilMs === TO_MS)).toBe(true);
}, 14_400_000);

it('begins nothing once no data arrive', async () => {
  for (let index = 0; index < Math.max(1, MONTHS / 20); index += 1) {
    const { spans, changes } = await simulateBudget({ ratio: 1.4, dataUntilDay: 6 }, SEED * 2_000_003 + index);
    expect(spans).toEqual([]);
    expect(changes.every((count) => count === 0)).toBe(true);
  }
}, 600_000);

/** What the months showed; `never` is what must not happen in any. */
function figuresOf(months: readonly SimulatedBudget[]) {
  const exceptionsOf = (what: keyof SimulatedBudget['exceptions']) => sum(months, (month) => month.exceptions[what]);
  return {
    most: Math.max(...months.flatMap(({ changes }) => changes)),
    early: months.filter(({ without, spans }) => without < 0.9 && spans.length > 0),
    crossed: months.filter(({ knownCrossingMs }) => knownCrossingMs !== undefined),
    never: {
      late: sum(months, ({ lateSleepers }) => lateSleepers),
      beyond: sum(months, ({ slotsBeyond }) => slotsBeyond),
      disconnected: sum(months, ({ disconnected }) => disconnected),
      refused: sum(months, ({ refused }) => refused),
      people: sum(months, ({ takenForPeople }) => takenForPeople),
    },
    exceptions: { byHand: exceptionsOf('byHand'), raises: exceptionsOf('raises'), held: exceptionsOf('held') },
  };
}

function print(months: readonly SimulatedBudget[]): void {
  const { most, early, crossed, never, exceptions } = figuresOf(months);
  const changed = months.filter(({ changes }) => changes.some((count) => count > 0)).length;
  process.stdout.write(
    `${months.length} months, seed ${SEED}: ${changed} with changes, at most ${most} a compute; ${early.length} limited that end below 90 %; ` +
      `${crossed.length} reached the amount, ${never.late} sleeping computes late, ${never.beyond} slots beyond the limits; ` +
      `${never.disconnected} changes by steps disconnected clients, ${never.refused} clients refused, ${never.people} times taken for a person; ` +
      `besides ${exceptions.byHand} changes by hand, ${exceptions.raises} raises by headroom, ${exceptions.held} slots of holds over the limits\n`,
  );
}

function sum(months: readonly SimulatedBudget[], of: (month: SimulatedBudget) => number): number {
  return months.reduce((total, month) => total + of(month), 0);
}
