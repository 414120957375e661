import { csvLine } from '../../common/csv-text.ts';
import { printable } from '../../common/safe-text.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { BillLine } from '../../domain/usage/bill.ts';
import { jsonText } from '../output.ts';
import { plainTable } from '../terminal.ts';
import type { CostReport } from './report.ts';

const NOT_INCLUDED = ['storage', 'transfer', 'extra branches'];
const SECONDS_PER_HOUR = 3600;

const hours = (cuSeconds: number): string => (cuSeconds / SECONDS_PER_HOUR).toFixed(1);
const dollars = (usd: number | undefined): string => (usd === undefined ? '?' : formatUsd(usd));
const rounded = (value: number): number => Math.round(value * 1e4) / 1e4;

/** What the sum is: a measure only if nothing in it is unknown. */
function figureOf({ unknownHours }: BillLine): 'measured' | 'at_least' {
  return unknownHours === 0 ? 'measured' : 'at_least';
}

/** The bill as a table. */
export function costText(report: CostReport): string {
  const { month, lines, total, by, ownFigure, difference } = report;
  const row = ({ name, cuSeconds, usd, unknownHours }: BillLine) => [
    printable(name),
    hours(cuSeconds),
    dollars(usd),
    unknownHours === 0 ? '' : `${Math.round(unknownHours)}`,
  ];
  const shown = lines.filter(({ cuSeconds, unknownHours }) => hours(Math.abs(cuSeconds)) !== '0.0' || unknownHours > 0);
  const table = plainTable([by, 'CU-hours', 'USD', 'unknown hours'], [...shown, total].map(row), [
    'left',
    'right',
    'right',
    'right',
  ]);
  return [
    `${isoInstant(month.fromMs)} to ${isoInstant(month.untilMs)}`,
    '',
    table,
    '',
    ...(total.unknownHours > 0 ? ['Unknown hours are in no sum: the total is what was used at least.'] : []),
    ...(ownFigure === undefined || difference === undefined
      ? []
      : [
          `The account's own figure: ${hours(ownFigure)} CU-hours; the difference is ${(Math.abs(100 * difference)).toFixed(2)} %.`,
        ]),
    ...quantityLines(report),
    `Not in the total: ${NOT_INCLUDED.join(', ')}.`,
    '',
  ].join('\n');
}

function quantityLines({ quantities }: CostReport): string[] {
  const known = Object.entries(quantities).filter(([, value]) => value > 0);
  return known.length === 0 ? [] : [`Without a price: ${known.map(([name, value]) => `${name} ${value}`).join(', ')}.`];
}

/** One line for each line of the bill, and the total. */
export function costCsv({ lines, total, by }: CostReport): string {
  const rows = [...lines, total].map(({ name, cuSeconds, usd, unknownHours }) =>
    csvLine([name, rounded(cuSeconds / SECONDS_PER_HOUR), usd === undefined ? undefined : rounded(usd), unknownHours]),
  );
  return `${[`${by},cu_hours,usd,unknown_hours`, ...rows].join('\n')}\n`;
}

/** The document of `--json`. */
export function costJson(report: CostReport): string {
  const { month, by, lines, total, ownFigure, difference, quantities } = report;
  const render = ({ name, cuSeconds, usd, unknownHours }: BillLine) => ({
    name,
    cu_hours: rounded(cuSeconds / SECONDS_PER_HOUR),
    usd: usd === undefined ? null : rounded(usd),
    unknown_hours: unknownHours,
  });
  const { name: _, ...sum } = render(total);
  return `${jsonText({
    month: isoInstant(month.fromMs).slice(0, 7),
    from: isoInstant(month.fromMs),
    to: isoInstant(month.untilMs),
    figure: figureOf(total),
    by,
    lines: lines.map(render),
    total: sum,
    account_cu_hours: ownFigure === undefined ? null : rounded(ownFigure / SECONDS_PER_HOUR),
    difference: difference === undefined ? null : rounded(difference),
    quantities,
    not_included: NOT_INCLUDED,
  })}\n`;
}
