import type { Command } from 'commander';
import { whenDisconnected } from '../app/rollout/impact-text.ts';
import { countedComputes } from '../common/names.ts';
import { actingCommand, actorOf, answered, withOperator } from './operator/access.ts';
import { agreedCount, type ConfirmFlags, withConfirmFlags } from './operator/confirm.ts';
import { printAnswer, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb status                      shows which policy set is staged, and what it would disconnect
  $ ebb approve 3f2a9c0d1e4b

A policy set that would disconnect many computes at once is staged: the previous one stays current until somebody
approves the new one. Give at least the first twelve digits of its hash. It asks you to type how many computes would
be disconnected, as a daemon has counted them; without a terminal it needs --confirm NUMBER or --yes.`;

export function approveCommand(): Command {
  return withConfirmFlags(actingCommand('approve'))
    .argument('<HASH>', 'hash of the policy set, or its beginning')
    .addHelpText('after', EXAMPLES)
    .action(approve);
}

async function approve(hash: string, flags: ConfirmFlags): Promise<void> {
  const owner = actorOf(flags);
  const approved = await withOperator(flags, async ({ operator }) => {
    const { count, later } = await answered(operator.approve({ hash, owner, preview: true }));
    if (!flags.json) printLines([impactText({ count, later })]);
    return answered(operator.approve({ hash, owner, confirm: await agreedCount(count, flags) }));
  });
  printAnswer(flags, approved, [`policy set ${approved.hash} is approved`]);
}

export function impactText({ count, later }: { count?: number | undefined; later?: number | undefined }): string {
  if (count !== undefined)
    return `disconnects ${countedComputes(count)}${whenDisconnected({ disconnected: count, later })}`;
  return 'how many computes it disconnects is not known: no daemon reports that it is staged';
}
