import { Command } from 'commander';
import { countedComputes } from '../common/names.ts';
import {
  type AccessFlags,
  type ActorFlags,
  actorOf,
  answered,
  withAccessFlags,
  withActorFlags,
  withOperator,
} from './operator/access.ts';
import { agreedCount, type ConfirmFlags, withConfirmFlags } from './operator/confirm.ts';
import { printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb status                      shows which policy set is staged, and what it would disconnect
  $ ebb approve 3f2a9c0d1e4b

A policy set that would disconnect many computes at once is staged: the previous one stays current until somebody
approves the new one. Give at least the first twelve digits of its hash. It asks you to type how many computes would
be disconnected, as a daemon has counted them; without a terminal it needs --confirm NUMBER or --yes.`;

/** `ebb approve`: approves a staged policy set. */
export function approveCommand(): Command {
  return withConfirmFlags(withActorFlags(withAccessFlags(new Command('approve'))))
    .description('approve a staged policy set, so that it becomes current')
    .argument('<HASH>', 'hash of the policy set, or its beginning')
    .addHelpText('after', EXAMPLES)
    .action(approve);
}

async function approve(hash: string, flags: AccessFlags & ActorFlags & ConfirmFlags): Promise<void> {
  const owner = actorOf(flags);
  const approved = await withOperator(flags, async ({ operator }) => {
    const { count } = await answered(operator.approve({ hash, owner, preview: true }));
    if (count !== undefined && !flags.json) printLines([`disconnects ${countedComputes(count)} at once`]);
    return answered(operator.approve({ hash, owner, confirm: await agreedCount(count, flags) }));
  });
  if (flags.json) printJson(approved);
  else printLines([`policy set ${approved.hash} is approved`]);
}
