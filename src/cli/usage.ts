import { Command } from 'commander';
import { orFail } from './fail.ts';
import { FLAGS, MAX_PAST_DAYS, type PastFlags, pastDays } from './flags.ts';
import { writeErrLine, writeNotes, writeWhole } from './output.ts';

interface ExportFlags extends PastFlags {
  out: string;
}

const EXAMPLES = `
Examples:
  $ ebb usage export --out past
  $ ebb cost --usage past/usage.csv --fleet fleet.yaml
  $ ebb awake --operations past/operations.csv --usage past/usage.csv --fleet fleet.yaml

usage.csv has the hours of the last week and the days of the last two months, by project and branch; an empty field is
unknown. Where daemons have collected more, it has the hours of two weeks and 400 days. operations.csv has the operations of
computes. The command asks the control API, wakes nothing, and needs no daemon.`;

export function usageCommand(): Command {
  const command = new Command('usage').addHelpText('after', EXAMPLES);
  command
    .command('export')
    .option(...FLAGS.live)
    .description('write usage.csv and operations.csv into a folder')
    .requiredOption('--out <dir>', 'the folder; it is made if it is not there')
    .option('--days <n>', `how far operations go back, 1 to ${MAX_PAST_DAYS} days`, pastDays(1), 28)
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .option(...FLAGS.queueUrl)
    .addHelpText('after', EXAMPLES)
    .action(exportUsage);
  return command;
}

async function exportUsage({ out, days, live, ...flags }: ExportFlags): Promise<void> {
  const [{ settingsOrFail }, { readFleetUsage }, { usageCsvLines }, { withProgress }, { join }, { mkdir }] =
    await Promise.all([
      import('./or-fail.ts'),
      import('../compose/situation.ts'),
      import('./usage/usage-csv.ts'),
      import('./past/progress.ts'),
      import('node:path'),
      import('node:fs/promises'),
    ]);
  const settings = settingsOrFail(flags);
  const nowMs = Date.now();
  const operations: string[] = [];
  const found = await withProgress((progress) =>
    readFleetUsage({
      settings,
      live,
      nowMs,
      onProgress: progress.fleet,
      operations: { days, lines: operations, monotonicMs: () => performance.now(), onProgress: progress.operations },
    }),
  );
  const { usages, missing, notes } = orFail(found);
  await mkdir(out, { recursive: true });
  const series = usages.flatMap((usage) => usage.series);
  await writeWhole(join(out, 'usage.csv'), [...usageCsvLines(series)].join(''));
  await writeWhole(join(out, 'operations.csv'), `${operations.join('\n')}\n`);
  writeNotes({ notes });
  for (const line of missing) writeErrLine(`left out: ${line}`);
  writeErrLine(`${out}: usage of ${series.length} units, ${operations.length - 1} operations`);
  if (missing.length > 0) process.exitCode = 1;
}
