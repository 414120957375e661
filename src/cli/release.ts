import type { Command } from 'commander';
import { LOST_HOLD } from '../domain/overrides/holds.ts';
import { UserError } from './fail.ts';
import { actingCommand, actorOf, answered, withOperator } from './operator/access.ts';
import { agreedCount, type ConfirmFlags, withConfirmFlags } from './operator/confirm.ts';
import { inFlightLines, printAnswer } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb release ep-cool-sea-12345678          its holds, a stopped fight, manual changes
  $ ebb release h-0a1b2c3d4e                  one hold
  $ ebb release ep-cool-sea-12345678 --guard  what guards have taken back may be lowered again
  $ ebb release --budget dev-budget           the steps of a budget that limit now, for this month

After that policies decide again, and gates still apply. Manual changes are no longer respected, and ebb manages a
field again that it had left alone because it was changed back too often. With --budget it asks you to type how many
computes the budget limits; without a terminal it needs --confirm NUMBER or --yes.`;

export function releaseCommand(): Command {
  return withConfirmFlags(actingCommand('release'))
    .argument('[COMPUTE|HOLD_ID]', 'id of a compute or of a hold, or a project that has only one compute')
    .option('--budget <name>', 'a budget instead: its steps that limit now end, and do not begin again this month')
    .option('--guard', 'of a compute: only what guards have taken back, which may then be lowered again')
    .addHelpText('after', EXAMPLES)
    .action(release);
}

interface ReleaseFlags extends ConfirmFlags {
  budget?: string;
  guard?: true;
}

async function release(id: string | undefined, flags: ReleaseFlags): Promise<void> {
  const target = targetOf(id, flags);
  const owner = actorOf(flags);
  const { guard } = flags;
  const { via, ...released } = await withOperator(flags, async ({ operator, via: source }) => {
    const isBudget = flags.budget !== undefined;
    const { count } = isBudget ? await answered(operator.release({ target, owner, preview: true })) : { count: 1 };
    const confirm = await agreedCount(count, flags);
    const request = { target, owner, ...(isBudget && { confirm }), ...(guard && { guard }) };
    return { ...(await answered(operator.release(request))), via: source };
  });
  const effect = guard
    ? 'what guards have taken back may be lowered again'
    : 'stopped fights and manual changes no longer count';
  const lines = [
    ...released.holds.map((hold) => `hold ${hold} is released`),
    ...released.computes.map(({ compute_id }) => `${compute_id}: ${effect}`),
    ...(released.budgets ?? []).map(
      (name) => `budget ${name}: its steps end within a minute, and computes follow over six hours`,
    ),
  ];
  const nothing = `${target} has no hold, no stopped fight, no manual change and no step that limits: nothing to do`;
  const none = via === 'daemon' ? nothing : `${nothing}. ${LOST_HOLD}`;
  printAnswer(flags, released, lines.length > 0 ? [...lines, ...inFlightLines(released)] : [none]);
}

function targetOf(id: string | undefined, { budget, guard }: ReleaseFlags): string {
  if (guard && budget !== undefined) throw new UserError('give the id of a compute with --guard, without --budget');
  if (id !== undefined && budget === undefined) return id;
  if (id === undefined && budget !== undefined) return `budget:${budget}`;
  throw new UserError('give the id of a compute or of a hold, or --budget and the name of a budget');
}
