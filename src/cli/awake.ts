import { Command } from 'commander';
import { UserError } from './fail.ts';
import { jsonText, writeErrLine, writeOut } from './output.ts';
import { type PastFlags, withPastFlags } from './past/flags.ts';
import type { Past } from './past/read-past.ts';

const EXAMPLES = `
Examples:
  $ ebb awake                                        the last 28 days of the whole fleet
  $ ebb awake 'web-*' --days 60
  $ ebb awake --operations operations.csv --fleet fleet.yaml --usage usage.csv

For each compute that is awake far more than its clients explain: the cause, the evidence, what it costs a month, and what
to do. It only reads, needs neither a daemon nor policies, and wakes no compute. Without clear evidence the cause is
"unknown". Prices need the plan of the account: "plan: launch" in ebb.yaml. docs/recommend.md explains the causes.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb awake`: what keeps computes awake. */
export function awakeCommand(): Command {
  return withPastFlags(new Command('awake'))
    .description('show what keeps computes awake, and what that costs')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .option('--json', 'print it as JSON')
    .addHelpText('after', EXAMPLES)
    .action(awake);
}

async function awake(names: string[], flags: PastFlags): Promise<void> {
  const { findCauses, readPast, readSettings, selectNamed, awakeJson, awakeText } = await parts();
  const read = readSettings({ configFile: flags.config, flags: { apiUrl: flags.apiUrl } });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  const past = await readPast(read.settings, flags, { branches: false });
  const computes = selectNamed(past.computes, {
    globs: names,
    namesOf: ({ compute }) => [compute.computeId, compute.projectId, compute.projectName],
    complaint: (name) => `no compute or project is called ${name}; give an id, a name or a glob such as web-*`,
  });
  const findings = findCauses(computes);
  printAsides(past);
  writeOut(`${flags.json ? jsonText(findings.map(awakeJson)) : awakeText(findings, past)}\n`);
}

async function parts() {
  const [{ findCauses }, { readPast }, { readSettings }, { selectNamed }, { awakeJson, awakeText }] = await Promise.all(
    [
      import('./past/find-causes.ts'),
      import('./past/read-past.ts'),
      import('../settings.ts'),
      import('./select-named.ts'),
      import('./past/awake-output.ts'),
    ],
  );
  return { findCauses, readPast, readSettings, selectNamed, awakeJson, awakeText };
}

/** What could not be read, and what the reader must know: never on standard output. */
function printAsides({ missing, notes }: Pick<Past, 'missing' | 'notes'>): void {
  for (const line of [...notes, ...missing.map((one) => `left out: ${one}`)]) writeErrLine(`note: ${line}`);
  if (missing.length > 0) process.exitCode = 1;
}
