import { Command } from 'commander';
import type { DiffFlags } from './diff/run-diff.ts';
import { withFilterFlags } from './filter.ts';
import { FLAGS, MAX_PAST_DAYS, pastDays, withFormat } from './flags.ts';

const EXAMPLES = `
Examples:
  $ ebb diff old/policies policies                   for the next seven days of the live fleet
  $ ebb diff old/policies policies --fleet fleet.yaml --format markdown > comment.md
  the changes of a branch, in the checks of a pull request:
  $ git worktree add ../main origin/main && ebb diff ../main/policies policies --fleet fleet.yaml

OLD and NEW are policy files, folders or globs. It compares the two forecasts of every compute; ebb forecast
lists their limits. A snapshot of the fleet (ebb snapshot) needs no key.
Exit code 0: fine, with or without a change. 1: an error, or a part of the fleet that can't be read.`;

export function diffCommand(): Command {
  const command = withFilterFlags(new Command('diff').option(...FLAGS.live))
    .argument('<OLD>', 'policies as they are: a file, folder or glob')
    .argument('<NEW>', 'policies as they would be')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .option(...FLAGS.queueUrl)
    .option(...FLAGS.fleet)
    .option(...FLAGS.expectedUsage)
    .option('--operations <file>', 'operations.csv of `ebb usage export`, for what timeouts save; needs --fleet')
    .option(
      '--past-days <n>',
      `how far the findings of --json look back, as --days of ebb recommend, 2 to ${MAX_PAST_DAYS} days`,
      pastDays(2),
      28,
    )
    .option(...FLAGS.days)
    .option(...FLAGS.from)
    .option(...FLAGS.to)
    .option(...FLAGS.zone);
  return withFormat(command, 'text', 'json', 'markdown')
    .addHelpText('after', EXAMPLES)
    .action(async (before: string, after: string, flags: DiffFlags) => {
      const { runDiff } = await import('./diff/run-diff.ts');
      await runDiff(before, after, flags);
    });
}
