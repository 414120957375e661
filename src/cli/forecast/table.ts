import { printable } from '../../common/safe-text.ts';
import { plainTable } from '../plain-table.ts';
import { shortened } from '../printable.ts';
import type { Outlook } from './outlook.ts';
import { formatDollars, formatHours, sumOf, times } from './sums.ts';

/** Names longer than this are cut. */
const NAME_WIDTH = 16;
const ID_WIDTH = 26;

/** CU-hours of every compute, with ebb and without, and what they cost. */
export function outlookTable(outlooks: readonly Outlook[]): string {
  const priced = outlooks.some(({ price }) => price !== undefined);
  const rows = outlooks.map(({ compute, cuHours, without, price }) => {
    const names = [shortened(printable(compute.projectName), NAME_WIDTH), shortened(compute.computeId, ID_WIDTH)];
    const cost = price === undefined ? '' : formatDollars(times(cuHours, price));
    return [...names, formatHours(cuHours), formatHours(without), ...(priced ? [cost] : [])];
  });
  const used = sumOf(outlooks, ({ cuHours }) => cuHours);
  const without = sumOf(outlooks, (outlook) => outlook.without);
  const cost = formatDollars(costOf(outlooks, ({ cuHours }) => cuHours));
  const all = ['all', '', formatHours(used), formatHours(without), ...(priced ? [cost] : [])];
  const head = ['project', 'compute', 'CU-hours', 'without ebb', ...(priced ? ['price'] : [])];
  return plainTable(head, [...rows, all], ['left', 'left', 'right', 'right', 'right']);
}

/** US dollars of the computes that have a price. */
export function costOf(outlooks: readonly Outlook[], hoursOf: (outlook: Outlook) => Outlook['cuHours']) {
  return sumOf(outlooks, (outlook) => times(hoursOf(outlook), outlook.price ?? 0));
}
