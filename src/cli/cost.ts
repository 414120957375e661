import { Command } from 'commander';
import { csvLine } from '../common/csv-text.ts';
import { printable } from '../common/safe-text.ts';
import { formatUsd } from '../domain/compute/cost.ts';
import { roundTo, roundToSum } from '../domain/sum.ts';
import { isoInstant } from '../domain/time/units.ts';
import type { BillLine } from '../domain/usage/bill.ts';
import type { CostFlags } from './cost/read-cost.ts';
import type { CostReport } from './cost/report.ts';
import { UserError } from './fail.ts';
import { withFilterFlags } from './filter.ts';
import { choiceOption, FLAGS, withSourceFlags } from './flags.ts';
import { jsonText, writeNotes, writeOut } from './output.ts';
import { plainTable } from './terminal.ts';

/** The command fails if the bill differs from the vendor's own figure for the account by a larger share. */
const MAX_DIFFERENCE = 0.01;
const DIFFERS_CODE = 2;

const EXAMPLES = `
Examples:
  $ ebb cost                                     this month so far, by owner
  $ ebb cost --month 2026-10 --by project --csv
  $ ebb cost --owner team-web --by project
  $ ebb cost --usage usage.csv --fleet fleet.yaml --json

It shows the compute part of the bill; storage and transfer are quantities without a price, and not in the total. Hours with
unknown usage are counted apart, not as zero. It reads what daemons have collected (400 days), otherwise the control API, which
keeps 60 days. It wakes nothing. docs/cost.md
Exit code 0: fine. 1: an error. 2: more than 1 % off the account's own figure for a month that has ended.`;

export function costCommand(): Command {
  return withFilterFlags(withSourceFlags(new Command('cost')).option(...FLAGS.live))
    .option('--month <yyyy-mm>', 'a billing month (default: this one)')
    .addOption(choiceOption('--by <what>', 'lines of the bill', ['owner', 'project']))
    .option('--usage <file>', 'usage.csv of `ebb usage export`, instead of the control API: no key is needed')
    .option('--fleet <file>', 'a snapshot, for names and owners, with --usage')
    .option(...FLAGS.json)
    .option('--csv', 'print the lines as CSV')
    .addHelpText('after', EXAMPLES)
    .action(cost);
}

async function cost(flags: CostFlags): Promise<void> {
  if (flags.json && flags.csv) throw new UserError('--json and --csv exclude each other: leave one out');
  if (flags.fleet !== undefined && flags.usage === undefined) {
    throw new UserError('--fleet needs --usage: a snapshot has no usage');
  }
  const [{ readCost }, { reportCost }] = await Promise.all([import('./cost/read-cost.ts'), import('./cost/report.ts')]);
  const nowMs = Date.now();
  const read = await readCost(flags, nowMs);
  writeNotes(read);
  const report = reportCost(read, { monthMs: monthOf(flags.month, nowMs), by: flags.by, nowMs });
  const render = flags.csv ? costCsv : costText;
  writeOut(flags.json ? costJson(report) : render(report));
  if (differsTooMuch(report)) process.exitCode ??= DIFFERS_CODE;
}

function differsTooMuch({ difference = 0 }: Pick<CostReport, 'difference'>): boolean {
  return Math.abs(difference) > MAX_DIFFERENCE;
}

function monthOf(text: string | undefined, nowMs: number): number {
  if (text === undefined) return nowMs;
  const ms = /^\d{4}-(0[1-9]|1[0-2])$/.test(text) ? Date.parse(`${text}-01T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(ms) || ms > nowMs) throw new UserError(`--month: ${text} is not a past month; write 2026-11`);
  return ms;
}

const NOT_INCLUDED = ['storage', 'transfer', 'extra branches'];
const SECONDS_PER_HOUR = 3600;

/** The CU-hours of the lines and, last, of the total, rounded so that the lines add up to the total. */
function cuHours({ lines, total }: CostReport, digits: number): number[] {
  const hours = lines.map(({ cuSeconds }) => cuSeconds / SECONDS_PER_HOUR);
  return [...roundToSum(hours, digits), roundTo(total.cuSeconds / SECONDS_PER_HOUR, digits)];
}

const dollars = (usd: number | undefined): string => (usd === undefined ? '?' : formatUsd(usd));

export function costText(report: CostReport): string {
  const { month, lines, total, by, ownFigure, difference } = report;
  const hours = cuHours(report, 1);
  const rows = [...lines, total].flatMap((line, index) => {
    const { name, usd, unknownHours } = line;
    const isNothing = hours[index] === 0 && (usd ?? 0) === 0 && unknownHours === 0;
    if (isNothing && line !== total) return [];
    const unknown = unknownHours === 0 ? '' : `${Math.round(unknownHours)}`;
    return [[printable(name), hours[index]?.toFixed(1) ?? '', dollars(usd), unknown]];
  });
  const table = plainTable([by, 'CU-hours', 'USD', 'unknown hours'], rows, ['left', 'right', 'right', 'right']);
  return [
    `${isoInstant(month.fromMs)} to ${isoInstant(month.untilMs)}`,
    '',
    table,
    '',
    ...(total.unknownHours > 0 ? ['Unknown hours are not counted: at least the total was used.'] : []),
    ...(ownFigure === undefined || difference === undefined
      ? []
      : [
          `The account's own figure: ${(ownFigure / SECONDS_PER_HOUR).toFixed(1)} CU-hours; the difference is ${(Math.abs(100 * difference)).toFixed(2)} %.${differsTooMuch(report) ? ` Exit code ${DIFFERS_CODE}: it is more than ${100 * MAX_DIFFERENCE} %.` : ''}`,
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

function costCsv(report: CostReport): string {
  const { lines, total, by } = report;
  const hours = cuHours(report, 4);
  const rows = [...lines, total].map(({ name, usd, unknownHours }, index) =>
    csvLine([name, hours[index], usd, unknownHours]),
  );
  return `${[`${by},cu_hours,usd,unknown_hours`, ...rows].join('\n')}\n`;
}

export function costJson(report: CostReport): string {
  const { month, by, lines, total, ownFigure, difference, quantities } = report;
  const hours = cuHours(report, 4);
  const lineJson = ({ name, usd, unknownHours }: BillLine, index: number) => ({
    name,
    cu_hours: hours[index] ?? 0,
    usd: usd ?? null,
    unknown_hours: unknownHours,
  });
  const { name: _, ...sum } = lineJson(total, lines.length);
  return `${jsonText({
    month: isoInstant(month.fromMs).slice(0, 7),
    from: isoInstant(month.fromMs),
    to: isoInstant(month.untilMs),
    figure: total.unknownHours === 0 ? ('measured' as const) : ('at_least' as const),
    by,
    lines: lines.map(lineJson),
    total: sum,
    account_cu_hours: ownFigure === undefined ? null : roundTo(ownFigure / SECONDS_PER_HOUR, 4),
    difference: difference === undefined ? null : roundTo(difference, 4),
    quantities,
    not_included: NOT_INCLUDED,
  })}\n`;
}
