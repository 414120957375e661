import { Command } from 'commander';
import { countedComputes } from '../common/names.ts';
import { UserError } from './fail.ts';
import { printLines } from './operator/show.ts';
import { writeErrLine, writeWhole } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb store dump --out store.jsonl
  $ EBB_QUEUE_URL=postgres://… ebb store load store.jsonl           # shows what it would write
  $ EBB_QUEUE_URL=postgres://… ebb store load store.jsonl --yes

The file has a line of JSON for each hold, freeze, record (with the baseline of its compute), unit of usage, and entry of history
and audit. It is the same for each kind of store. Approvals, connection counts and notifications are not in it. Only you can read the file: it
has names and reasons of people, and no secrets. An embedded store can be dumped while no daemon uses it. Load while no daemon runs.`;

interface StoreFlags {
  config?: string;
  queueUrl?: string;
}

/** `ebb store`: writes the contents of the store to a file, and loads them. */
export function storeCommand(): Command {
  const command = new Command('store')
    .description('copy holds, freezes, baselines, usage, history and audit to a file, and back')
    .addHelpText('after', EXAMPLES);
  withStoreFlags(command.command('dump'))
    .description('write what the store has to a file')
    .requiredOption('--out <file>', 'the file')
    .addHelpText('after', EXAMPLES)
    .action(dump);
  withStoreFlags(command.command('load'))
    .description('write a dump to the store')
    .argument('<FILE>', 'what ebb store dump has written')
    .option('--yes', 'write it; otherwise only show what would be written')
    .option('--keep', 'leave what the store has, and add what it does not have')
    .addHelpText('after', EXAMPLES)
    .action(load);
  return command;
}

function withStoreFlags(command: Command): Command {
  return command
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--queue-url <url>', 'the store of the daemons, as for ebb run (EBB_QUEUE_URL)');
}

async function settingsOf({ config, queueUrl }: StoreFlags) {
  const { settingsOrFail } = await import('./or-fail.ts');
  return settingsOrFail({ configFile: config, flags: { queueUrl } });
}

async function dump({ out, ...flags }: StoreFlags & { out: string }): Promise<void> {
  const { openDump } = await import('../compose/store-dump.ts');
  const opened = await openDump(await settingsOf(flags));
  if (!opened.ok) throw new UserError(opened.problem);
  const { lines, counts, leftOut, close } = opened.value;
  try {
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
    throw new UserError(`the store: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function load(path: string, { yes, keep, ...flags }: StoreFlags & { yes?: boolean; keep?: boolean }) {
  const { loadDump } = await import('../compose/store-dump.ts');
  const settings = await settingsOf(flags);
  const loaded = await loadDump({ settings, path, write: yes === true, keep: keep === true });
  if (!loaded.ok) throw new UserError(loaded.problem);
  const { counts, left, restores } = loaded.value;
  printLines([
    ...left.map((key) => `left as it is: ${key}`),
    ...(restores > 0
      ? [`left out: requests to go back of ${countedComputes(restores)}; ask again with ebb restore`]
      : []),
    `${yes ? 'written' : 'would be written'}: ${describe(counts)}`,
  ]);
  if (!yes) throw new UserError('nothing is written yet: load again with --yes');
}

function describe({ hold, freeze, record, usage, history, audit }: Record<string, number>): string {
  return `holds ${hold}, freezes ${freeze}, records ${record}, usage ${usage}, history ${history}, audit ${audit}`;
}
