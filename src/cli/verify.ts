import { Command } from 'commander';
import { FLAGS, withFormat } from './flags.ts';
import type { VerifyFlags } from './verify/run-verify.ts';

const EXAMPLES = `
Examples:
  $ ebb verify --project calm-sea-1
  $ DATABASE_URL=postgres://… ebb verify --project calm-sea-1 --database-url env:DATABASE_URL --format markdown
  $ ebb verify --project calm-sea-1 --restore

Some facts about the control API are only documented, and two documents contradict each other. This command measures them on a
project that you make for it: empty, younger than a week, with a name that begins with ebb-verify-. It changes size and timeout
of the project's compute, restarts it, and restores its settings, also at Ctrl-C; after a kill, --restore does. docs/verify.md
It prints the block verified: for ebb.yaml, so that ebb uses the facts; --format yaml prints only the block.
It takes at most 15 minutes, 150 requests and 1 CU-hour. With --database-url it connects as a client, which some facts need.
Exit code 0: there is a report. 1: an error, or nothing was measured.`;

export function verifyCommand(): Command {
  const command = new Command('verify')
    .requiredOption('--project <id>', 'a project that was made for this')
    .option('--account <name>', 'which of several accounts (accounts in ebb.yaml) has it')
    .option(
      '--database-url <env:NAME|file:PATH>',
      'where its connection string is: the string itself would be visible to others on this machine',
    )
    .option('--restore', 'only put back what a run that was killed has left');
  return withFormat(command, 'text', 'json', 'markdown', 'yaml')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .addHelpText('after', EXAMPLES)
    .action(async (flags: VerifyFlags) => {
      const { runVerifyCommand } = await import('./verify/run-verify.ts');
      await runVerifyCommand(flags);
    });
}
