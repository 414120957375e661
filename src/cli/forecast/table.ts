import Table from 'cli-table3';
import { printable, shortened } from '../printable.ts';
import type { Outlook } from './outlook.ts';
import { formatDollars, formatHours, sumOf, times } from './sums.ts';

/** Blanks instead of lines, so that it fits into 80 columns. */
export const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'mid', 'left', 'right'].flatMap((side) =>
    ['', '-mid', '-left', '-right'].map((part) => [`${side}${part}`, '']),
  ),
);

/** Names longer than this are cut. */
const NAME_WIDTH = 16;
const ID_WIDTH = 26;

/** CU-hours of every compute, with ebb and without, and what they cost. */
export function outlookTable(outlooks: readonly Outlook[]): string {
  const priced = outlooks.some(({ price }) => price !== undefined);
  const table = new Table({
    head: ['project', 'compute', 'CU-hours', 'without ebb', ...(priced ? ['price'] : [])],
    colAligns: ['left', 'left', 'right', 'right', 'right'],
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 1, compact: true },
    chars: { ...NO_LINES, middle: ' ' },
  });
  for (const { compute, cuHours, without, price } of outlooks) {
    const names = [shortened(printable(compute.projectName), NAME_WIDTH), shortened(compute.computeId, ID_WIDTH)];
    const cost = price === undefined ? '' : formatDollars(times(cuHours, price));
    table.push([...names, formatHours(cuHours), formatHours(without), ...(priced ? [cost] : [])]);
  }
  const used = sumOf(outlooks, ({ cuHours }) => cuHours);
  const without = sumOf(outlooks, (outlook) => outlook.without);
  const cost = formatDollars(costOf(outlooks, ({ cuHours }) => cuHours));
  table.push(['all', '', formatHours(used), formatHours(without), ...(priced ? [cost] : [])]);
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** US dollars of the computes that have a price. */
export function costOf(outlooks: readonly Outlook[], hoursOf: (outlook: Outlook) => Outlook['cuHours']) {
  return sumOf(outlooks, (outlook) => times(hoursOf(outlook), outlook.price ?? 0));
}
