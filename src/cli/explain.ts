import { Command } from 'commander';
import { type CommonFlags, FLAGS, withSourceFlags } from './flags.ts';

const EXAMPLES = `
Examples:
  $ ebb explain ep-quiet-lake-1
  $ ebb explain ep-quiet-lake-1 --at 2026-12-24T09:00:00+01:00
  $ ebb explain ep-quiet-lake-1 --fleet snapshot.yaml --json
  $ ebb explain ep-quiet-lake-1 --live

It shows every step in order: what each policy asks for, which one decides size and timeout, which limits apply,
which gate blocks the change, and the values at the next boundary. Nothing is written.`;

export function explainCommand(): Command {
  return withSourceFlags(new Command('explain'))
    .option(...FLAGS.fleet)
    .option(...FLAGS.at)
    .option(...FLAGS.live)
    .argument('<COMPUTE>', 'id of the compute, PROJECT/COMPUTE, or a project that has only one')
    .option('--json', 'print the steps as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (name: string, flags: CommonFlags) => {
      const { runExplain } = await import('./explain/run-explain.ts');
      await runExplain(name, flags);
    });
}
