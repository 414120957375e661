import { MONTH_DAYS, simulateMonth } from '../test/support/simulated-month.ts';
import { percentile, printTable } from './figures.ts';

/** How many months are simulated for each row. */
const RUNS = Number(process.env.EBB_PROJECTION_RUNS ?? 2000);
const SEED = Number(process.env.EBB_SEED ?? 1);

const ROWS = [
  { units: [10, 60], weeks: 8, name: '10 to 60 projects' },
  { units: [10, 60], weeks: 4, name: 'the same, four weeks known' },
  { units: [3, 10], weeks: 8, name: '3 to 10 projects' },
  { units: [100, 100], weeks: 8, name: '100 projects' },
] as const;

/** How often the 80 % interval of a month's projection has what the month became, and how wide it is, asked on three of its days. */
export async function run(): Promise<void> {
  printTable(
    ['scope', 'asked on day', 'covered', 'below it', 'above it', 'width'],
    ROWS.flatMap((row) => [8, 15, 22].map((day) => rowOf(row, day))),
  );
}

function rowOf({ units, weeks, name }: (typeof ROWS)[number], day: number): string[] {
  const widths: number[] = [];
  let [below, above] = [0, 0];
  for (let index = 0; index < RUNS; index += 1) {
    const month = simulateMonth({ units, weeks }, Math.imul(SEED, 0x9e3779b1) + index);
    const { low, high } = month.projectedOn(day);
    if (month.truth < low) below += 1;
    if (month.truth > high) above += 1;
    widths.push((high - low) / month.truth);
  }
  const percent = (count: number) => `${((100 * count) / RUNS).toFixed(1)} %`;
  const width = `${(100 * percentile(widths, 0.5)).toFixed(0)} %`;
  return [name, `${day} of ${MONTH_DAYS}`, percent(RUNS - below - above), percent(below), percent(above), width];
}
