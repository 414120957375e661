import { Command, Option } from 'commander';
import type { CostFlags } from './cost/read-cost.ts';
import type { CostReport } from './cost/report.ts';
import { UserError } from './fail.ts';
import { withFilterFlags } from './filter.ts';
import { writeErrLine, writeOut } from './output.ts';
import { withSourceFlags } from './plan/common-flags.ts';

/** More than this share of difference to the account's own figure is worth checking. */
const MOST_DIFFERENCE = 0.01;
const DIFFERS = 2;

const EXAMPLES = `
Examples:
  $ ebb cost                                     this month so far, by owner
  $ ebb cost --month 2026-10 --by project --csv
  $ ebb cost --owner team-web --by project
  $ ebb cost --usage usage.csv --fleet fleet.yaml --json

It is the bill as far as compute goes; storage and transfer are quantities without a price, and in no total. Hours of which
the usage is not known are counted, never taken for zero. It reads what daemons have collected (400 days), else asks the control API,
which knows 60 days, and wakes nothing.
Exit code 0: fine. 1: an error. 2: more than 1 % from the account's own figure of a month that has ended. docs/cost.md`;

/** `ebb cost`: what compute has cost. */
export function costCommand(): Command {
  return withFilterFlags(withSourceFlags(new Command('cost')))
    .description('show what compute has cost in a month, by owner or project')
    .option('--month <yyyy-mm>', 'a billing month (default: this one)')
    .addOption(new Option('--by <what>', 'lines of the bill').choices(['owner', 'project']).default('owner'))
    .option('--usage <file>', 'usage.csv of `ebb usage export`, instead of the control API: no key is needed')
    .option('--fleet <file>', 'a snapshot, for names and owners, with --usage')
    .option('--json', 'print it as JSON')
    .option('--csv', 'print the lines as CSV')
    .addHelpText('after', EXAMPLES)
    .action(cost);
}

async function cost(flags: CostFlags): Promise<void> {
  if (flags.json && flags.csv) throw new UserError('--json and --csv exclude each other: leave one out');
  if (flags.fleet !== undefined && flags.usage === undefined) {
    throw new UserError('--fleet needs --usage: a snapshot has no usage');
  }
  const [{ readCost }, { reportCost }, { costText, costCsv, costJson }] = await Promise.all([
    import('./cost/read-cost.ts'),
    import('./cost/report.ts'),
    import('./cost/render.ts'),
  ]);
  const nowMs = Date.now();
  const read = await readCost(flags, nowMs);
  for (const line of read.notes) writeErrLine(`note: ${line}`);
  const report = reportCost(read, { monthMs: monthOf(flags.month, nowMs), by: flags.by, nowMs });
  const asTable = flags.csv ? costCsv : costText;
  writeOut(flags.json ? costJson(report) : asTable(report));
  if (differs(report)) process.exitCode ??= DIFFERS;
}

function differs({ difference }: CostReport): boolean {
  return difference !== undefined && Math.abs(difference) > MOST_DIFFERENCE;
}

function monthOf(text: string | undefined, nowMs: number): number {
  if (text === undefined) return nowMs;
  const ms = /^\d{4}-(0[1-9]|1[0-2])$/.test(text) ? Date.parse(`${text}-01T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(ms) || ms > nowMs) throw new UserError(`--month: ${text} is no month of the past; write 2026-11`);
  return ms;
}
