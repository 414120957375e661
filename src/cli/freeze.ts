import type { Command } from 'commander';
import { countedComputes } from '../common/names.ts';
import { UserError } from './fail.ts';
import { type ActingFlags, actingCommand, actorOf, answered, everyPage, withOperator } from './operator/access.ts';
import { agreedCount, type ConfirmFlags, withConfirmFlags } from './operator/confirm.ts';
import { collectValues, parseDurationSeconds, selectorOf } from './operator/parse-flags.ts';
import { coverText, describeFreeze, type Freeze, inFlightLines, printAnswer, printLines } from './operator/show.ts';

interface FreezeFlags extends ActingFlags {
  all?: boolean;
  select?: string[];
  /** Seconds. */
  for: number;
  reason: string;
  allowRaise?: boolean;
}

const EXAMPLES = `
Examples:
  $ ebb freeze --all --for 4h --reason 'incident 42'
  $ ebb freeze --select 'projects=web-*,!web-legacy' --for 1d --reason 'sale' --allow-raise
  $ ebb freeze --select 'branch_roles=protected' --select 'regions=aws-eu-*' --for 2h --reason 'migration'

While a freeze is active no daemon of the group writes to these computes; they check before each write. Decisions
are still made and shown. If --select is given several times, all must match, like the keys of select in a policy.
To end it early: ebb unfreeze.`;

export function freezeCommand(): Command {
  return actingCommand('freeze')
    .option('--all', 'all computes')
    .option('--select <key=globs>', 'only these; can be given several times', collectValues)
    .requiredOption('--for <duration>', 'how long: 1s to 90d', parseDurationSeconds)
    .requiredOption('--reason <text>', 'why, for the others')
    .option('--allow-raise', 'raises are still written')
    .addHelpText('after', EXAMPLES)
    .action(freeze);
}

async function freeze(flags: FreezeFlags): Promise<void> {
  const { all, select, for: forSeconds, reason, allowRaise = false } = flags;
  if ((all === true) === (select !== undefined)) throw new UserError('give either --all or --select KEY=GLOBS');
  const selected = select === undefined ? ('all' as const) : selectorOf(select);
  const request = { select: selected, owner: actorOf(flags), reason, forSeconds, allowRaise };
  await withOperator(flags, async ({ operator }) => {
    const set = await answered(operator.freeze(request));
    const line = `frozen until ${set.expires_at}: ${describeFreeze(set)} (${set.id})${coverText(set)}`;
    printAnswer(flags, set, [line, ...inFlightLines(set)]);
  });
}

const UNFREEZE_EXAMPLES = `
Examples:
  $ ebb unfreeze                  the only freeze; lists them if there are several
  $ ebb unfreeze f-0a1b2c3d4e
  $ ebb unfreeze --all --yes      without a question

It asks you to type how many computes have changes that the freeze holds back; without a terminal it needs
--confirm NUMBER or --yes. Only freezes that people have set. A freeze policy ends with its window, or when the policy is changed.`;

export function unfreezeCommand(): Command {
  return withConfirmFlags(actingCommand('unfreeze'))
    .argument('[ID]', 'id of the freeze')
    .option('--all', 'every freeze')
    .addHelpText('after', UNFREEZE_EXAMPLES)
    .action(unfreeze);
}

async function unfreeze(freezeId: string | undefined, flags: ConfirmFlags & { all?: boolean }): Promise<void> {
  if (freezeId !== undefined && flags.all) throw new UserError('give either an ID or --all');
  const owner = actorOf(flags);
  await withOperator(flags, async ({ operator }) => {
    const id = flags.all ? 'all' : (freezeId ?? onlyIdOf(await everyPage((query) => operator.freezes(query))));
    const { count, freezes } = await answered(operator.unfreeze({ id, owner, preview: true }));
    if (count !== undefined && freezes.length > 0 && !flags.json)
      printLines([`${countedComputes(count)} with changes that wait for the end of ${freezes.join(', ')}`]);
    const confirm = freezes.length === 0 ? 0 : await agreedCount(count, flags);
    const ended = await answered(operator.unfreeze({ id, owner, confirm }));
    const lines = ended.freezes.map((one) => `freeze ${one} is over`);
    printAnswer(flags, ended, lines.length > 0 ? [...lines, ...inFlightLines(ended)] : ['nothing is frozen']);
  });
}

/** Returns the id of the only freeze. Throws a UserError that lists the freezes if there are several. */
function onlyIdOf(freezes: readonly Freeze[]): string {
  const [only, second] = freezes;
  if (only === undefined) throw new UserError('there is no active freeze that a person has set');
  if (second === undefined) return only.id;
  const first = freezes.slice(0, 5).map((one) => `${one.id} (${describeFreeze(one)})`);
  throw new UserError(`${freezes.length} freezes are active, name one or give --all: ${first.join(', ')}`);
}
