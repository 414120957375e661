import { printable } from '../../common/safe-text.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { formatUsd, formatUsdRange } from '../../domain/compute/cost.ts';
import { mapRange, type Range } from '../../domain/estimate.ts';
import { segmentJson } from '../../domain/forecast/forecast.ts';
import { roundTo } from '../../domain/sum.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { shortened } from '../output.ts';
import { differenceOf, formatRange, formatRangeChange, sumOf, times } from '../ranges.ts';
import { plainTable, teamTable } from '../terminal.ts';
import { expectedJson, expectedLine } from './month.ts';
import { expectedOf, hoursWithEbb, hoursWithoutEbb, type Outlook } from './outlook.ts';

const NAME_WIDTH = 16;
const ID_WIDTH = 26;

export function outlookTable(outlooks: readonly Outlook[]): string {
  const isPriced = outlooks.some(({ price }) => price !== undefined);
  const rows = outlooks.map(({ compute, cuHours, without, price }) => {
    const names = [shortened(printable(compute.projectName), NAME_WIDTH), shortened(compute.computeId, ID_WIDTH)];
    const cost = price === undefined ? '' : formatUsdRange(times(cuHours, price));
    return [...names, formatRange(cuHours), formatRange(without), ...(isPriced ? [cost] : [])];
  });
  const cost = formatUsdRange(costOf(outlooks, hoursWithEbb));
  const hours = [sumOf(outlooks, hoursWithEbb), sumOf(outlooks, hoursWithoutEbb)].map(formatRange);
  const all = ['all', '', ...hours, ...(isPriced ? [cost] : [])];
  const head = ['project', 'compute', 'CU-hours', 'without ebb', ...(isPriced ? ['price'] : [])];
  return plainTable(head, [...rows, all], ['left', 'left', 'right', 'right', 'right']);
}

export function ownerTable(outlooks: readonly Outlook[], ownerOf: (compute: Compute) => string): string {
  const cellsOf = (members: readonly Outlook[]) => {
    const isPriced = members.some(({ price }) => price !== undefined);
    const cost = isPriced ? formatUsdRange(costOf(members, hoursWithEbb)) : '?';
    const hours = [sumOf(members, hoursWithEbb), sumOf(members, hoursWithoutEbb)];
    return [String(members.length), ...hours.map(formatRange), cost];
  };
  const head = ['computes', 'CU-hours', 'without ebb', 'price'];
  return teamTable(outlooks, { head, ownerOf: ({ compute }) => ownerOf(compute), cellsOf, hasSum: true });
}

/** US dollars of the computes that have a price. */
function costOf(outlooks: readonly Outlook[], hoursOf: (outlook: Outlook) => Outlook['cuHours']) {
  return sumOf(outlooks, (outlook) => times(hoursOf(outlook), outlook.price ?? 0));
}

/** Instants in UTC, sizes in CU, timeouts in seconds. */
export function forecastJson({ fromMs, toMs }: Span, outlooks: readonly Outlook[]) {
  return {
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    computes: outlooks.map(computeJson),
  };
}

function computeJson(outlook: Outlook) {
  const { compute, segments, cuHours, without, price } = outlook;
  return {
    project_id: compute.projectId,
    compute_id: compute.computeId,
    segments: segments.map(segmentJson),
    cu_hours: rounded(cuHours),
    cu_hours_without: rounded(without),
    cu_hours_expected: expectedJson(expectedOf(outlook)),
    ...(price !== undefined && { usd: rounded(times(cuHours, price)) }),
  };
}

export function rounded(range: Range): Range {
  return mapRange(range, (value) => roundTo(value, 4));
}

export function balanceLines(outlooks: readonly Outlook[]): string[] {
  const change = differenceOf(sumOf(outlooks, hoursWithEbb), sumOf(outlooks, hoursWithoutEbb));
  const cost = differenceOf(costOf(outlooks, hoursWithEbb), costOf(outlooks, hoursWithoutEbb));
  const isPriced = outlooks.some(({ price }) => price !== undefined);
  const dollars = isPriced ? `, ${formatRangeChange(cost, formatUsd)}` : '';
  const unpriced = [
    ...new Set(outlooks.filter(({ price }) => price === undefined).map(({ compute }) => compute.account)),
  ];
  return [
    `Against the baseline: ${formatRangeChange(change)} CU-hours${dollars}.`,
    expectedLine(outlooks),
    'Low: what may sleep always sleeps. High: all awake, at the maximum. The truth is between: docs/forecast.md.',
    ...(unpriced.length > 0 ? [`${unpriced.map(printable).join(', ')}: price unknown: set plan: in ebb.yaml`] : []),
  ];
}
