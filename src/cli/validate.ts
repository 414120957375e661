import { Command } from 'commander';
import { UserError } from './fail.ts';
import { FLAGS, withFormat } from './flags.ts';
import { writeCommands, writeErr, writeOut } from './output.ts';
import type { ValidateFlags } from './validate/examine.ts';

const EXAMPLES = `
Examples:
  $ ebb validate                           the paths of ebb.yaml or EBB_POLICIES, otherwise the folder policies
  $ ebb validate policies/web.yaml
  $ ebb validate 'teams/*/policies.yaml' --json
  $ ebb validate --strict --fleet fleet.yaml   fails on any warning, such as a policy that selects nothing
  $ ebb validate --format github           in a workflow: marks the lines of a pull request
  $ ebb validate --matches                 what each policy selects; reads the API, so NEON_API_KEY is enough
  $ ebb validate --matches --fleet fleet.yaml

Without --matches and --fleet it needs no key and no API; warnings are then based on the selectors alone. With them they are exact.
docs/lints.md explains each warning by its code.
Exit code 0: no problems; warnings are allowed unless --strict is given. 1: a problem, with file, line and
column; or a part of the fleet can't be read.`;

export function validateCommand(): Command {
  const command = new Command('validate')
    .option(...FLAGS.live)
    .argument('[PATHS...]', 'files, folders and globs')
    .option(...FLAGS.config)
    .option('--api-url <url>', 'control API (EBB_API_URL), for --matches');
  return withFormat(command, 'text', 'json', 'github')
    .option('--strict', 'every warning is an error, for CI')
    .option('--matches', 'list what each policy selects')
    .option(...FLAGS.fleet)
    .option('--at <iso>', 'start of the two years that are checked (default: now)')
    .addHelpText('after', EXAMPLES)
    .action(validate);
}

async function validate(
  paths: string[],
  { format, ...flags }: ValidateFlags & { format: 'text' | 'json' | 'github' },
): Promise<void> {
  const [{ examine }, { reportAs }] = await Promise.all([
    import('./validate/examine.ts'),
    import('./validate/report.ts'),
  ]);
  const examined = await examine(paths, flags);
  const color = process.stderr.isTTY === true && process.stderr.hasColors();
  const { commands = [], stdout, stderr, errors = [] } = reportAs(format, examined, { color });
  for (const line of stderr) writeErr(`${line}\n`);
  writeCommands(commands);
  for (const line of stdout) writeOut(`${line}\n`);
  const isPartial = examined.fleet !== undefined && examined.fleet.missing.length > 0;
  if (isPartial || examined.problems.length > 0) process.exitCode = 1;
  if (errors.length > 0) throw new UserError(errors.join('\n'));
}
