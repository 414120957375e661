import { Command, InvalidArgumentError } from 'commander';
import { withFilterFlags } from './filter.ts';
import { SELECTED_COMPUTES, withFormat, withPastFlags } from './flags.ts';
import { parseDurationSeconds } from './operator/parse-flags.ts';
import type { RecommendFlags } from './recommend/run-recommend.ts';

const EXAMPLES = `
Examples:
  $ ebb recommend                                    the last 28 days of the whole fleet
  $ ebb recommend --days 90 --min-usd 5 --format markdown
  $ ebb recommend --write recommended && ebb diff policies recommended
  $ ebb recommend --operations operations.csv --fleet fleet.yaml --usage usage.csv

A list with a price, largest first: timeouts, minima and maxima that don't fit, computes that never sleep or that nobody
uses, left-over preview branches, and causes as in ebb awake. Each finding says how certain its saving is, and has the
policy that makes the change. The command only reads, needs neither a daemon nor policies, and wakes no compute. Prices are
those of the plan that pays for the projects. docs/recommend.md explains the method.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

export function recommendCommand(): Command {
  const command = withFilterFlags(withPastFlags(new Command('recommend')))
    .argument(...SELECTED_COMPUTES)
    .option('--policies <paths>', 'present policies; findings do not contradict them (EBB_POLICIES; default: policies)')
    .option('--min-usd <dollars>', 'only findings that may save at least this amount a month', parseDollars)
    .option(
      '--cold-start-worth <duration>',
      'what a cold start costs, as time awake (default: as in ebb.yaml, else 5m)',
      parseDurationSeconds,
    )
    .option('--write <dir>', 'write policies into a new or empty folder');
  return withFormat(command, 'text', 'json', 'markdown')
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
