import { Command } from 'commander';
import { type AccessFlags, answered, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb status                      shows which policy set is staged, and what it would disconnect
  $ ebb approve 3f2a9c0d1e4b

A policy set that would disconnect many computes at once is staged: the previous one stays current until somebody
approves the new one. Give at least the first twelve digits of its hash.`;

/** `ebb approve`: a person's yes to a staged policy set. */
export function approveCommand(): Command {
  return withAccessFlags(new Command('approve'))
    .description('approve a staged policy set, so that it becomes current')
    .argument('<HASH>', 'hash of the policy set, or its beginning')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(approve);
}

async function approve(hash: string, flags: AccessFlags & { owner?: string }): Promise<void> {
  const owner = ownerOf(flags);
  const approved = await withOperator(flags, ({ operator }) => answered(operator.approve({ hash, owner })));
  if (flags.json) printJson(approved);
  else printLines([`policy set ${approved.hash} is approved`]);
}
