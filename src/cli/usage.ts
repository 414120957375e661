import { Command, InvalidArgumentError } from 'commander';
import { UserError } from './fail.ts';
import { type LiveFlag, withLiveFlag } from './live-flag.ts';
import { writeErrLine, writeWhole } from './output.ts';

interface ExportFlags extends LiveFlag {
  out: string;
  days: number;
  config?: string;
  apiUrl?: string;
  queueUrl?: string;
}

const MOST_DAYS = 180;

const EXAMPLES = `
Examples:
  $ ebb usage export --out past
  $ ebb cost --usage past/usage.csv --fleet fleet.yaml
  $ ebb awake --operations past/operations.csv --usage past/usage.csv --fleet fleet.yaml

usage.csv has the hours of the last week and the days of the last two months, by project and branch; an empty field is
unknown. Where daemons have collected more, it has that: hours of two weeks, days of 400. operations.csv has what happened to
computes. It asks the control API, wakes nothing, and needs no daemon.`;

/** `ebb usage`: exports usage as files. */
export function usageCommand(): Command {
  const command = new Command('usage')
    .description('write usage and operations to files that other commands read')
    .addHelpText('after', EXAMPLES);
  withLiveFlag(command.command('export'))
    .description('write usage.csv and operations.csv into a folder')
    .requiredOption('--out <dir>', 'the folder; it is made if it is not there')
    .option('--days <n>', `how far operations go back, 1 to ${MOST_DAYS} days`, parseDays, 28)
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)')
    .option('--queue-url <url>', 'where daemons store what they know (EBB_QUEUE_URL; default: embedded:.ebb)')
    .addHelpText('after', EXAMPLES)
    .action(exportUsage);
  return command;
}

function parseDays(text: string): number {
  const days = Number(text);
  if (/^\d{1,3}$/.test(text) && days >= 1 && days <= MOST_DAYS) return days;
  throw new InvalidArgumentError(`write whole days from 1 to ${MOST_DAYS}`);
}

async function exportUsage({ out, days, config, apiUrl, queueUrl, live }: ExportFlags): Promise<void> {
  const [{ settingsOrFail }, { readFleetUsage }, { usageCsvLines }, { withProgress }, { join }, { mkdir }] =
    await Promise.all([
      import('./or-fail.ts'),
      import('../compose/situation.ts'),
      import('./usage/usage-csv.ts'),
      import('./past/progress.ts'),
      import('node:path'),
      import('node:fs/promises'),
    ]);
  const settings = settingsOrFail({ configFile: config, flags: { apiUrl, queueUrl } });
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
  if (!found.ok) throw new UserError(found.problem);
  const { usages, missing, notes } = found.value;
  await mkdir(out, { recursive: true });
  const series = usages.flatMap((usage) => usage.series);
  await writeWhole(join(out, 'usage.csv'), [...usageCsvLines(series)].join(''));
  await writeWhole(join(out, 'operations.csv'), `${operations.join('\n')}\n`);
  for (const line of notes) writeErrLine(`note: ${line}`);
  for (const line of missing) writeErrLine(`left out: ${line}`);
  writeErrLine(`${out}: usage of ${series.length} units, ${operations.length - 1} operations`);
  if (missing.length > 0) process.exitCode = 1;
}
