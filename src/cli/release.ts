import { Command } from 'commander';
import { type AccessFlags, answered, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb release ep-cool-sea-12345678          its holds, a stopped fight, manual changes
  $ ebb release h-0a1b2c3d4e                  one hold

After that policies decide again, and gates still apply. Manual changes are no longer respected, and ebb manages a
field again that it had left alone because it was changed back too often.`;

/** `ebb release`: takes back what keeps ebb from deciding. */
export function releaseCommand(): Command {
  return withAccessFlags(new Command('release'))
    .description('end holds, stopped fights and the respect for manual changes')
    .argument('<COMPUTE|HOLD_ID>', 'id of a compute or of a hold')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(release);
}

async function release(target: string, flags: AccessFlags & { owner?: string }): Promise<void> {
  const owner = ownerOf(flags);
  const released = await withOperator(flags, ({ operator }) => answered(operator.release({ target, owner })));
  if (flags.json) return printJson(released);
  const lines = [
    ...released.holds.map((id) => `hold ${id} is released`),
    ...released.computes.map((compute) => `${compute.compute_id}: stopped fights and manual changes no longer count`),
  ];
  printLines(
    lines.length > 0 ? lines : [`${target} has no hold, no stopped fight and no manual change: nothing to do`],
  );
}
