import { Command } from 'commander';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, everyPage, ownerOf, withAccessFlags, withOperator } from './operator/access.ts';
import { describeFreeze, printJson, printLines } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb thaw                  the only freeze; lists them if there are several
  $ ebb thaw f-0a1b2c3d4e
  $ ebb thaw --all

Only freezes that people have set. A freeze policy ends with its window, or when the policy is changed.`;

type ThawFlags = AccessFlags & { all?: boolean; owner?: string };

/** `ebb thaw`: ends freezes before their time. */
export function thawCommand(): Command {
  return withAccessFlags(new Command('thaw'))
    .description('unfreeze: end a freeze early')
    .argument('[ID]', 'id of the freeze')
    .option('--all', 'every freeze')
    .option('--owner <name>', 'who (default: the user)')
    .addHelpText('after', EXAMPLES)
    .action(thaw);
}

async function thaw(given: string | undefined, flags: ThawFlags): Promise<void> {
  if (given !== undefined && flags.all) throw new UserError('give an ID, or --all: one of them');
  const owner = ownerOf(flags);
  await withOperator(flags, async ({ operator }) => {
    const id = flags.all ? 'all' : (given ?? (await theOnlyOne(everyPage((query) => operator.freezes(query)))));
    const thawed = await answered(operator.thaw({ id, owner }));
    if (flags.json) return printJson(thawed);
    printLines(
      thawed.freezes.length > 0 ? thawed.freezes.map((one) => `freeze ${one} is over`) : ['nothing is frozen'],
    );
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
