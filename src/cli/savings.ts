import { Command, Option } from 'commander';
import { withFilterFlags } from './filter.ts';
import { FLAGS, withSourceFlags } from './flags.ts';
import { jsonText, writeNotes, writeOut } from './output.ts';
import type { SavingsFlags } from './savings/read-trial.ts';

const EXAMPLES = `
Examples:
  $ ebb savings --usage usage.csv                        what the trial of the policies has measured
  $ ebb savings --usage usage.csv --fleet fleet.yaml --operations operations.csv --json
  $ ebb savings --trial proof --by owner --usage usage.csv
  $ ebb savings --design --usage usage.csv               what it will do, and what it could find out, before it begins

Usage is what \`ebb usage export\` writes, by hours; without --usage, what daemons have stored for the trial, or what the
control API still has. The units are those that the trial selects in the fleet, assigned as in the store, otherwise as the
policy draws them. Until the trial is over the figures are interim and nothing is claimed. docs/savings.md has the
formulas and the assumptions. Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

export function savingsCommand(): Command {
  return withFilterFlags(withSourceFlags(new Command('savings')).option(...FLAGS.live))
    .option('--trial <name>', 'the policy of kind trial (default: the only one)')
    .addOption(new Option('--by <what>', 'a line for each owner, too').choices(['owner']))
    .option('--from <date>', 'only days from this local date on')
    .option('--to <date>', 'only days before this local date')
    .option('--design', 'show the design and the smallest detectable saving, not the results')
    .option('--usage <file>', 'usage.csv: CU-seconds by hours')
    .option('--operations <file>', 'operations.csv, for starts of computes')
    .option(...FLAGS.fleet)
    .option(...FLAGS.json)
    .addHelpText('after', EXAMPLES)
    .action(savings);
}

async function savings(flags: SavingsFlags): Promise<void> {
  const [{ readTrial }, { designReport, savingsReport }, { designText, savingsText }] = await Promise.all([
    import('./savings/read-trial.ts'),
    import('./savings/report.ts'),
    import('./savings/text.ts'),
  ]);
  const read = await readTrial(flags);
  writeNotes(read);
  if (flags.design) {
    const report = designReport(read);
    writeOut(`${flags.json ? jsonText(report) : designText(report)}\n`);
  } else {
    const report = savingsReport(read, flags);
    writeOut(`${flags.json ? jsonText(report) : savingsText(report)}\n`);
  }
}
