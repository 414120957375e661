import { Command } from 'commander';
import type { Operator } from '../compose/operator-access.ts';
import { didYouMean } from '../policy/suggest.ts';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, everyPage, withAccessFlags, withOperator } from './operator/access.ts';
import { parseCount } from './operator/parse-flags.ts';
import { printJson, printLines, printTable } from './operator/show.ts';
import { printable } from './printable.ts';

const EXAMPLES = `
Examples:
  $ ebb history
  $ ebb history ep-cool-sea-12345678
  $ ebb history --json --limit 1000 | jq '.decisions[] | select(.kind == "write")'

What was changed or held back and why, which operations ended badly, what people did: newest first. The last 20 entries
of each compute are kept, and some 10,000 in all.`;

type HistoryFlags = AccessFlags & { limit: number };

/** `ebb history`: the last decisions. */
export function historyCommand(): Command {
  return withAccessFlags(new Command('history'))
    .description('show the last decisions, and why')
    .argument('[COMPUTE]', 'id of a compute')
    .option('--limit <n>', 'at most so many, 1 to 1000', parseCount, 30)
    .addHelpText('after', EXAMPLES)
    .action(history);
}

async function history(compute: string | undefined, flags: HistoryFlags): Promise<void> {
  const query = { limit: flags.limit, ...(compute !== undefined && { compute }) };
  const decisions = await withOperator(flags, async ({ operator }) => {
    const found = await answered(operator.decisions(query));
    if (found.length === 0 && compute !== undefined) await refuseUnknown(operator, compute);
    return found;
  });
  if (flags.json) return printJson({ decisions });
  if (decisions.length === 0) return printLines([`nothing has happened ${compute ? `to ${compute} ` : ''}yet`]);
  const rows = decisions.map(({ at, compute_id, kind, policy, who, reasons }) => [
    ...[at, compute_id === '' ? 'all' : compute_id, kind, who ?? policy ?? ''],
    reasons.map(({ message }) => message).join('; '),
  ]);
  printTable(['at', 'compute', 'what', 'by', 'why'], rows);
}

/** A compute to which nothing has happened is one thing, a slip of the pen another. */
async function refuseUnknown(operator: Operator, written: string): Promise<void> {
  const [computeId = ''] = written.split('/').toReversed();
  const projects = await everyPage((query) => operator.records(query));
  const known = projects.flatMap(({ records }) => Object.keys(records));
  if (known.includes(computeId)) return;
  throw new UserError(`ebb has not met a compute ${printable(written)}${didYouMean(computeId, known)}`);
}
