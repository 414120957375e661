/**
 * Months under a budget, with spikes, late and missing usage and a change of plan: what its steps change, how soon, and what they never do. A
 * few months; with EBB_BUDGET_MONTHS=200 as many, and their figures are printed.
 */
import { expect, it } from 'vitest';
import { type SimulatedBudget, simulateBudget } from '../support/simulated-budget.ts';
import { TO_MS } from '../support/simulated-project.ts';

const MONTHS = Number(process.env.EBB_BUDGET_MONTHS ?? 2);
const SEED = Number(process.env.EBB_SEED ?? 1);

it('limits in time, seldom, and never because data are missing', async () => {
  const months: SimulatedBudget[] = [];
  for (let index = 0; index < MONTHS; index += 1) {
    // From 0.6 to 1.5 of the amount.
    const ratio = 0.6 + (0.9 * ((index * 7 + 17) % 20)) / 19;
    months.push(await simulateBudget({ ratio }, SEED * 1_000_003 + index));
  }
  const most = Math.max(...months.flatMap(({ changes }) => changes));
  const early = months.filter(({ without, spans }) => without < 0.9 && spans.length > 0);
  const crossed = months.filter(({ knownCrossingMs }) => knownCrossingMs !== undefined);
  const late = sum(months, ({ lateSleepers }) => lateSleepers);
  const beyond = sum(months, ({ slotsBeyond }) => slotsBeyond);
  const disconnected = sum(months, (month) => month.disconnected);
  const people = sum(months, ({ takenForPeople }) => takenForPeople);
  const refused = sum(months, (month) => month.refused);
  const [byHand, raises, held] = (['byHand', 'raises', 'held'] as const).map((what) =>
    sum(months, ({ exceptions }) => exceptions[what]),
  );
  if (MONTHS >= 20) {
    const changed = months.filter(({ changes }) => changes.some((count) => count > 0)).length;
    process.stdout.write(
      `${MONTHS} months, seed ${SEED}: ${changed} with changes, at most ${most} a compute; ${early.length} limited that end below 90 %; ` +
        `${crossed.length} reached the amount, ${late} sleeping computes late, ${beyond} slots beyond the limits; ` +
        `${disconnected} changes by steps disconnected clients, ${refused} clients refused, ${people} times taken for a person; ` +
        `besides ${byHand} changes by hand, ${raises} raises by headroom, ${held} slots of holds over the limits\n`,
    );
  }
  expect(most).toBeLessThanOrEqual(4);
  expect(early).toEqual([]);
  expect([late, beyond, disconnected, refused, people]).toEqual([0, 0, 0, 0, 0]);
  // Otherwise little is shown of what comes before the steps.
  for (const count of MONTHS < 20 ? [byHand] : [byHand, raises, held]) expect(count).toBeGreaterThan(0);
  expect(crossed.length).toBeGreaterThan(0);
  for (const { spans } of crossed)
    expect(spans.some(({ of, untilMs }) => of === 'spent' && untilMs === TO_MS)).toBe(true);
}, 3_600_000);

it('begins nothing once no data arrive', async () => {
  for (let index = 0; index < Math.max(1, MONTHS / 20); index += 1) {
    const { spans, changes } = await simulateBudget({ ratio: 1.4, dataUntilDay: 6 }, SEED * 2_000_003 + index);
    expect(spans).toEqual([]);
    expect(changes.every((count) => count === 0)).toBe(true);
  }
}, 600_000);

function sum(months: readonly SimulatedBudget[], of: (month: SimulatedBudget) => number): number {
  return months.reduce((total, month) => total + of(month), 0);
}
