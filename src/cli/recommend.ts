import { Command, InvalidArgumentError, Option } from 'commander';
import { withFilterFlags } from './filter.ts';
import { parseFor } from './operator/parse-flags.ts';
import { withPastFlags } from './past/flags.ts';
import type { RecommendFlags } from './recommend/run-recommend.ts';

const EXAMPLES = `
Examples:
  $ ebb recommend                                    the last 28 days of the whole fleet
  $ ebb recommend --days 90 --min-usd 5 --format markdown
  $ ebb recommend --write recommended && ebb diff policies recommended
  $ ebb recommend --operations operations.csv --fleet fleet.yaml --usage usage.csv

A list with a price, largest first: timeouts, minima and maxima that don't fit, computes that never sleep or that nobody
uses, left-over preview branches, and causes as in ebb awake. Each has a figure that says what it promises, and the
policy that does it. It only reads, needs neither a daemon nor policies, and wakes no compute. Prices are those of the plan
that pays for the projects. docs/recommend.md explains the method.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb recommend`: finds savings, with the policies for them. */
export function recommendCommand(): Command {
  return withFilterFlags(withPastFlags(new Command('recommend')))
    .description('show what would cost less, with the policies for it')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .option('--policies <paths>', 'present policies, which are not contradicted (EBB_POLICIES; default: policies)')
    .option('--min-usd <dollars>', 'only what may save so much a month', parseDollars)
    .option(
      '--cold-start-worth <duration>',
      'how long awake a start is worth (default: as in ebb.yaml, else 5m)',
      parseFor,
    )
    .option('--write <dir>', 'write policies into a new or empty folder')
    .addOption(new Option('--format <format>', 'how to print').choices(['text', 'json', 'markdown']).default('text'))
    .option('--json', 'the same as --format json')
    .addHelpText('after', EXAMPLES)
    .action(async (names: string[], flags: RecommendFlags) => {
      const { runRecommend } = await import('./recommend/run-recommend.ts');
      await runRecommend(names, flags);
    });
}

function parseDollars(text: string): number {
  if (/^\d{1,9}(\.\d{1,2})?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('write dollars such as 5 or 2.50');
}
