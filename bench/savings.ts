import { effectiveUnits } from '../src/domain/trial/cells.ts';
import { effectTest, savedShare } from '../src/domain/trial/interval.ts';
import { type SimulatedTrial, simulateTrial } from '../test/domain/trial/simulated-trial.ts';
import { percentile, printTable } from './figures.ts';

/** How many trials are simulated for each row, and for how many of them the whole interval is computed. */
const RUNS = Number(process.env.EBB_SAVINGS_RUNS ?? 2000);
const INTERVALS = Number(process.env.EBB_SAVINGS_INTERVALS ?? 100);
const SEED = Number(process.env.EBB_SEED ?? 1);

const ROWS: SimulatedTrial[] = [10, 30, 100, 300].flatMap((units) =>
  [0, 0.1, 0.3].flatMap((effect) => (['normal', 't4'] as const).map((tails) => ({ units, effect, tails }))),
);

/**
 * How often the interval of a simulated trial of eight weeks, a quarter of the units as control, covers what was really saved, and how
 * wide it is. It covers the truth where the test does not reject it; the whole interval is computed for fewer runs.
 */
export async function run(): Promise<void> {
  const head = ['units', 'effective', 'saving', 'noise', 'covered', 'covered, whole', 'claims', 'half width'];
  printTable([...head, 'not measurable'], ROWS.map(rowOf));
}

function rowOf(of: SimulatedTrial, row: number): string[] {
  const halves: number[] = [];
  const effective: number[] = [];
  let [covered, claims, within, unbounded] = [0, 0, 0, 0];
  for (let index = 0; index < RUNS; index += 1) {
    const seed = Math.imul(SEED, 0x9e3779b1) + row * 1_000_003 + index;
    const { cells, truth } = simulateTrial(of, seed);
    const test = effectTest(cells, { seed });
    const isKept = (saving: number) => Object.values(test.pValues(Math.log(1 - saving))).every((p) => p > 0.025);
    if (isKept(truth)) covered += 1;
    if (!isKept(0)) claims += 1;
    effective.push(effectiveUnits(cells));
    if (index >= INTERVALS) continue;
    const interval = savedShare(test);
    if (!interval) unbounded += 1;
    else halves.push((interval.high - interval.low) / 2);
    if (!interval || (interval.low <= truth && truth <= interval.high)) within += 1;
  }
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  return [
    String(of.units),
    percentile(effective, 0.5).toFixed(1),
    percent(of.effect),
    of.tails === 'normal' ? 'A' : 'B',
    percent(covered / RUNS),
    percent(within / Math.min(RUNS, INTERVALS)),
    percent(claims / RUNS),
    halves.length === 0 ? '–' : `± ${(100 * percentile(halves, 0.5)).toFixed(1)}`,
    percent(unbounded / Math.min(RUNS, INTERVALS)),
  ];
}
