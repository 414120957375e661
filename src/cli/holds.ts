import { Command } from 'commander';
import { type AccessFlags, everyPage, withAccessFlags, withOperator } from './operator/access.ts';
import { describeHold, printJson, printLines, printTable } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb holds
  $ ebb holds --json | jq '.holds[] | select(.owner == "ann")'`;

/** `ebb holds`: which holds are in force. */
export function holdsCommand(): Command {
  return withAccessFlags(new Command('holds'))
    .description('list the active holds')
    .addHelpText('after', EXAMPLES)
    .action(listHolds);
}

async function listHolds(flags: AccessFlags): Promise<void> {
  const holds = await withOperator(flags, ({ operator }) => everyPage((query) => operator.holds(query)));
  if (flags.json) return printJson({ holds });
  if (holds.length === 0) return printLines(['no holds']);
  const rows = holds.map((hold) => [
    ...[hold.compute_id, describeHold(hold), hold.expires_at ?? 'never', hold.owner, hold.reason, hold.id],
  ]);
  printTable(['compute', 'held', 'until', 'owner', 'reason', 'id'], rows);
}
