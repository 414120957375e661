import { printable } from '../../common/safe-text.ts';
import type { Outlook } from './outlook.ts';
import { differenceOf, formatChange, formatDollar, sumOf } from './sums.ts';
import { costOf } from './table.ts';

/** What ebb changes in all, and what these figures rest on. */
export function balanceLines(outlooks: readonly Outlook[]): string[] {
  const change = differenceOf(
    sumOf(outlooks, ({ cuHours }) => cuHours),
    sumOf(outlooks, ({ without }) => without),
  );
  const cost = differenceOf(
    costOf(outlooks, ({ cuHours }) => cuHours),
    costOf(outlooks, ({ without }) => without),
  );
  const priced = outlooks.some(({ price }) => price !== undefined);
  const dollars = priced ? `, ${formatChange(cost, formatDollar)}` : '';
  const unpriced = [
    ...new Set(outlooks.filter(({ price }) => price === undefined).map(({ compute }) => compute.account)),
  ];
  return [
    `Against the baseline: ${formatChange(change)} CU-hours${dollars}.`,
    'Low: what may sleep always sleeps. High: all awake, at the maximum. The truth is between: docs/forecast.md.',
    ...(unpriced.length > 0
      ? [`No price for ${unpriced.map(printable).join(', ')}: say in ebb.yaml which plan it is (plan: launch).`]
      : []),
  ];
}
