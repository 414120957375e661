import { Command } from 'commander';
import { didYouMean } from '../common/names.ts';
import { printable } from '../common/safe-text.ts';
import type { Operator } from '../compose/operator-access.ts';
import { UserError } from './fail.ts';
import { type AccessFlags, answered, everyPage, withAccessFlags, withOperator } from './operator/access.ts';
import { parseCount } from './operator/parse-flags.ts';
import { printAnswer, printTable } from './operator/show.ts';

const EXAMPLES = `
Examples:
  $ ebb history
  $ ebb history ep-cool-sea-12345678
  $ ebb history --json --limit 1000 | jq '.decisions[] | select(.kind == "write")'

It lists changes, blocked changes with their reason, failed operations, and what people did, newest first. ebb keeps the last
200 entries of each compute for 90 days, and about 50,000 in total.`;

type HistoryFlags = AccessFlags & { limit: number };

export function historyCommand(): Command {
  return withAccessFlags(new Command('history'))
    .argument('[COMPUTE]', 'id of a compute, or a project that has only one')
    .option('--limit <n>', 'the maximum number of entries, 1 to 1000', parseCount, 30)
    .addHelpText('after', EXAMPLES)
    .action(history);
}

async function history(compute: string | undefined, flags: HistoryFlags): Promise<void> {
  const query = { limit: flags.limit, ...(compute !== undefined && { compute }) };
  const decisions = await withOperator(flags, async ({ operator, via }) => {
    const found = await answered(operator.decisions(query));
    if (found.length === 0 && compute !== undefined) await refuseUnknown(operator, via, compute);
    return found;
  });
  const nothing = [
    `the history has nothing ${compute ? `of ${compute} ` : ''}yet; it begins anew when the store loses its data`,
  ];
  if (flags.json || decisions.length === 0) return printAnswer(flags, { decisions }, nothing);
  const rows = decisions.map(({ at, compute_id, kind, policy, who, reasons }) => [
    at,
    compute_id === '' ? '–' : compute_id,
    kind,
    who ?? policy ?? '',
    reasons.map(({ message }) => message).join('; '),
  ]);
  printTable(['at', 'compute', 'what', 'by', 'why'], rows);
}

/** An empty history is fine for a known compute. Throws a UserError for an unknown name. */
async function refuseUnknown(operator: Operator, via: 'daemon' | 'store', name: string): Promise<void> {
  const [computeId = ''] = name.split('/').toReversed();
  const projects = await everyPage((query) => operator.records(query));
  const knownIds = projects.flatMap(({ records }) => Object.keys(records));
  if (knownIds.includes(computeId) || projects.some(({ project_id }) => project_id === name)) return;
  const computes = via === 'daemon' ? await everyPage((query) => operator.computes(query)) : [];
  if (computes.some(({ project_name }) => project_name === name)) return;
  throw new UserError(`ebb does not know a compute ${printable(name)}${didYouMean(computeId, knownIds)}`);
}
