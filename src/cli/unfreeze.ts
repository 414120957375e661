import { Command } from 'commander';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, everyPage, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { describeFreeze, printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb unfreeze                  the only freeze; lists them if there are several
  $ ebb unfreeze f-0a1b2c3d4e
  $ ebb unfreeze --all

Only freezes that people have set. A freeze policy ends with its window, or when the policy is changed.`;

type UnfreezeFlags = AccessFlags & { all?: boolean; owner?: string };

/** `ebb unfreeze`: ends freezes before their time. */
export function unfreezeCommand(): Command {
  return withAccessFlags(new Command('unfreeze'))
    .description('end a freeze early')
    .argument('[ID]', 'id of the freeze')
    .option('--all', 'every freeze')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(unfreeze);
}

async function unfreeze(given: string | undefined, flags: UnfreezeFlags): Promise<void> {
  if (given !== undefined && flags.all) throw new UserError('give an ID, or --all: one of them');
  const owner = ownerOf(flags);
  await withOperator(flags, async ({ operator }) => {
    const id = flags.all ? 'all' : (given ?? (await theOnlyOne(everyPage((query) => operator.freezes(query)))));
    const ended = await answered(operator.unfreeze({ id, owner }));
    if (flags.json) return printJson(ended);
    printLines(ended.freezes.length > 0 ? ended.freezes.map((one) => `freeze ${one} is over`) : ['nothing is frozen']);
  });
}

async function theOnlyOne(listing: Promise<Parameters<typeof describeFreeze>[0][]>): Promise<string> {
  const freezes = await listing;
  const [only, second] = freezes;
  if (only === undefined) throw new UserError('there is no active freeze that a person has set');
  if (second === undefined) return only.id;
  const known = freezes.slice(0, 5).map((one) => `${one.id} (${describeFreeze(one)})`);
  throw new UserError(`${freezes.length} freezes are active, name one or give --all: ${known.join(', ')}`);
}
