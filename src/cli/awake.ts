import { Command } from 'commander';
import { type FilterFlags, filtered, filtersByBranch, withFilterFlags } from './filter.ts';
import { jsonText, writeOut } from './output.ts';
import { type PastFlags, printPastAsides, withPastFlags } from './past/flags.ts';

const EXAMPLES = `
Examples:
  $ ebb awake                                        the last 28 days of the whole fleet
  $ ebb awake 'web-*' --days 60
  $ ebb awake --owner team-web
  $ ebb awake --operations operations.csv --fleet fleet.yaml --usage usage.csv

For each compute that is awake far more than its clients explain: the cause, the evidence, what it costs a month, and what
to do. It only reads, needs neither a daemon nor policies, and wakes no compute. Without clear evidence the cause is
"unknown". Prices need the plan of the account: "plan: launch" in ebb.yaml. docs/recommend.md explains the causes.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

/** `ebb awake`: what keeps computes awake. */
export function awakeCommand(): Command {
  return withFilterFlags(withPastFlags(new Command('awake')))
    .description('show what keeps computes awake, and what that costs')
    .argument('[COMPUTE...]', 'ids or names of computes or projects, also globs (default: all)')
    .option('--json', 'print it as JSON')
    .addHelpText('after', EXAMPLES)
    .action(awake);
}

async function awake(names: string[], flags: PastFlags & FilterFlags): Promise<void> {
  const { findCauses, readablePolicies, readPast, settingsOrFail, selectComputes, awakeJson, awakeText } =
    await parts();
  const settings = settingsOrFail({ configFile: flags.config, flags: { apiUrl: flags.apiUrl } });
  const policies = flags.owner === undefined ? undefined : await readablePolicies(settings);
  const past = await readPast(settings, flags, { branches: flags.owner !== undefined || filtersByBranch(flags) });
  const computes = filtered(selectComputes(past.computes, names), flags, { settings, policies });
  const findings = findCauses(computes);
  printPastAsides(past);
  writeOut(`${flags.json ? jsonText(findings.map(awakeJson)) : awakeText(findings, past)}\n`);
}

async function parts() {
  const [
    { findCauses },
    { readablePolicies },
    { readPast },
    { settingsOrFail },
    { selectComputes },
    { awakeJson, awakeText },
  ] = await Promise.all([
    import('./past/awake-output.ts'),
    import('./recommend/facts.ts'),
    import('./past/read-past.ts'),
    import('./or-fail.ts'),
    import('./select-named.ts'),
    import('./past/awake-output.ts'),
  ]);
  return { findCauses, readablePolicies, readPast, settingsOrFail, selectComputes, awakeJson, awakeText };
}
