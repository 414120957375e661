import { Command } from 'commander';
import { messageOf } from '../common/errors.ts';
import { countedComputes } from '../common/names.ts';
import { orFail, UserError } from './fail.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { printLines } from './operator/show.ts';
import { writeErrLine, writeWhole } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb store dump --out store.jsonl
  $ EBB_QUEUE_URL=postgres://… ebb store load store.jsonl           # shows what it would write
  $ EBB_QUEUE_URL=postgres://… ebb store load store.jsonl --yes

The file has a line of JSON for each hold, freeze, record (with the baseline of its compute), unit of usage, and entry of history
and audit. It is the same for each kind of store. Approvals, connection counts and notifications are not in it. Only you can read the file: it
has names and reasons of people, and no secrets. Dump while daemons run, an embedded store too; load while none runs.`;

export function storeCommand(): Command {
  const command = new Command('store').addHelpText('after', EXAMPLES);
  command
    .command('dump')
    .option(...FLAGS.config)
    .option(...FLAGS.storeUrl)
    .description('write what the store has to a file')
    .requiredOption('--out <file>', 'the file')
    .addHelpText('after', EXAMPLES)
    .action(dump);
  command
    .command('load')
    .option(...FLAGS.config)
    .option(...FLAGS.storeUrl)
    .description('write a dump to the store')
    .argument('<FILE>', 'what ebb store dump has written')
    .option('--yes', 'write it; otherwise only show what would be written')
    .option('--keep', 'leave what the store has, and add what it does not have')
    .addHelpText('after', EXAMPLES)
    .action(load);
  return command;
}

async function dump({ out, ...flags }: CommonFlags & { out: string }): Promise<void> {
  const [{ openDump }, { settingsOrFail }] = await Promise.all([
    import('../compose/store-dump.ts'),
    import('./or-fail.ts'),
  ]);
  const { lines, counts, unusedNote, leftOut, close } = orFail(await openDump(settingsOrFail(flags)));
  try {
    if (unusedNote !== undefined) writeErrLine(`note: ${unusedNote}`);
    await writeWhole(out, orUserError(lines), '--out', 0o600);
    printLines([`${out}: ${describe(counts)}`]);
    const missing = await leftOut();
    for (const record of missing) writeErrLine(`left out: record ${record} can't be read`);
    if (missing.length > 0) process.exitCode = 1;
  } finally {
    await close();
  }
}

async function* orUserError(lines: AsyncIterable<string>): AsyncGenerator<string> {
  try {
    yield* lines;
  } catch (error) {
    throw new UserError(`the store: ${messageOf(error)}`);
  }
}

async function load(path: string, flags: CommonFlags & { yes?: boolean; keep?: boolean }): Promise<void> {
  const [{ loadDump }, { settingsOrFail }] = await Promise.all([
    import('../compose/store-dump.ts'),
    import('./or-fail.ts'),
  ]);
  const { yes = false, keep = false } = flags;
  const loaded = await loadDump({ settings: settingsOrFail(flags), path, isWritten: yes, acceptsEntries: keep });
  const { counts, skipped, expired, restores, problem } = orFail(loaded);
  printLines([
    ...skipped.map((key) => `left as it is: ${key}`),
    ...(expired > 0 ? [`left out: holds and freezes that have expired: ${expired}`] : []),
    ...(restores > 0
      ? [`left out: requests to go back of ${countedComputes(restores)}; ask again with ebb restore`]
      : []),
    `${yes ? 'written' : 'would be written'}: ${describe(counts)}`,
  ]);
  if (problem !== undefined) throw new UserError(problem);
  if (!yes) throw new UserError('nothing is written yet: load again with --yes');
}

function describe({ hold, freeze, record, usage, history, audit }: Record<string, number>): string {
  return `holds ${hold}, freezes ${freeze}, records ${record}, usage ${usage}, history ${history}, audit ${audit}`;
}
