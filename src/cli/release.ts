import { Command } from 'commander';
import { UserError } from './fail.ts';
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
import { inFlightLines, printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb release ep-cool-sea-12345678          its holds, a stopped fight, manual changes
  $ ebb release h-0a1b2c3d4e                  one hold
  $ ebb release ep-cool-sea-12345678 --guard  what guards have taken back may be lowered again
  $ ebb release --budget dev-budget           the steps of a budget that limit now, for this month

After that policies decide again, and gates still apply. Manual changes are no longer respected, and ebb manages a
field again that it had left alone because it was changed back too often. With --budget it asks you to type how many
computes the budget limits; without a terminal it needs --confirm NUMBER or --yes.`;

/** `ebb release`: ends holds, stopped fights, respected manual changes, or the steps of a budget. */
export function releaseCommand(): Command {
  return withConfirmFlags(withActorFlags(withAccessFlags(new Command('release'))))
    .description('end holds, stopped fights and the respect for manual changes')
    .argument('[COMPUTE|HOLD_ID]', 'id of a compute or of a hold, or a project that has only one compute')
    .option('--budget <name>', 'a budget instead: its steps that limit now end, and do not begin again this month')
    .option('--guard', 'of a compute: only what guards have taken back, which may then be lowered again')
    .addHelpText('after', EXAMPLES)
    .action(release);
}

async function release(
  id: string | undefined,
  flags: AccessFlags & ActorFlags & ConfirmFlags & ReleaseFlags,
): Promise<void> {
  const target = targetOf(id, flags);
  const owner = actorOf(flags);
  const released = await withOperator(flags, async ({ operator }) => {
    const isBudget = flags.budget !== undefined;
    const { count } = isBudget ? await answered(operator.release({ target, owner, preview: true })) : { count: 1 };
    const agreed = await agreedCount(count, flags);
    const { guard } = flags;
    return answered(operator.release({ target, owner, ...(isBudget && { confirm: agreed }), ...(guard && { guard }) }));
  });
  if (flags.json) return printJson(released);
  const lines = [
    ...released.holds.map((id) => `hold ${id} is released`),
    ...released.computes.map(
      ({ compute_id }) =>
        `${compute_id}: ${flags.guard ? 'what guards have taken back may be lowered again' : 'stopped fights and manual changes no longer count'}`,
    ),
  ];
  lines.push(...(released.budgets ?? []).map((name) => `budget ${name}: its steps end within a minute`));
  printLines(
    lines.length > 0
      ? [...lines, ...inFlightLines(released)]
      : [`${target} has no hold, no stopped fight, no manual change and no step that limits: nothing to do`],
  );
}

interface ReleaseFlags {
  budget?: string;
  guard?: true;
}

function targetOf(id: string | undefined, { budget, guard }: ReleaseFlags): string {
  if (guard && budget !== undefined) throw new UserError('give the id of a compute with --guard, without --budget');
  if (id !== undefined && budget === undefined) return id;
  if (id === undefined && budget !== undefined) return `budget:${budget}`;
  throw new UserError('give the id of a compute or of a hold, or --budget and the name of a budget');
}
