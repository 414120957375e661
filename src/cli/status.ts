import { Command } from 'commander';
import { type AccessFlags, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { describeStatus } from './operator/describe-status.ts';
import { printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb status
  $ ebb status --url http://127.0.0.1:9464      ask that daemon
  $ ebb status --json | jq .waiting

With an embedded store it asks the daemon that has it open. On Redis and Postgres it reads the store, which doesn't
contain the current state of computes: --url shows more.`;

/** `ebb status`: how things stand. */
export function statusCommand(): Command {
  return withAccessFlags(new Command('status'))
    .description('show mode, policies, what waits and why, holds and freezes')
    .addHelpText('after', EXAMPLES)
    .action(showStatus);
}

async function showStatus(flags: AccessFlags): Promise<void> {
  const status = await withOperator(flags, ({ operator }) => answered(operator.status()));
  if (flags.json) printJson(status);
  else printLines(describeStatus(status));
}
