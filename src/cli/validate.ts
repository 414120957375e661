import { Command, Option } from 'commander';
import { UserError } from './fail.ts';

const EXAMPLES = `
Examples:
  $ ebb validate                           what ebb.yaml or EBB_POLICIES name, else the folder policies
  $ ebb validate policies/web.yaml
  $ ebb validate 'teams/*/policies.yaml' --json
Exit code 0: all is well, also with warnings. 1: something is broken; each problem says file, line and column.`;

interface ValidateFlags {
  config?: string;
  format: 'text' | 'json';
  json?: boolean;
}

/** `ebb validate [PATHS]`: needs no key and no service, so it fits into a pull request's checks. */
export function validateCommand(): Command {
  return new Command('validate')
    .description('check policies and say where they are wrong')
    .argument('[PATHS...]', 'files, folders and globs')
    .option('--config <FILE>', 'settings file (default: ebb.yaml if it is there)')
    .addOption(new Option('--format <FORMAT>', 'how to print').choices(['text', 'json']).default('text'))
    .option('--json', 'the same as --format json')
    .addHelpText('after', EXAMPLES)
    .action(validate);
}

async function validate(paths: string[], { config, format, json }: ValidateFlags): Promise<void> {
  const [{ loadPolicySet }, { formatProblem }] = await Promise.all([
    import('../policy/load.ts'),
    import('../policy/problem.ts'),
  ]);
  const loaded = await loadPolicySet({ paths: paths.length > 0 ? paths : await pathsOfSettings(config) });
  if (json || format === 'json') {
    const report = loaded.ok
      ? { ok: true, policies: loaded.set.policies.length, hash: loaded.set.hash, warnings: loaded.warnings }
      : { ok: false, problems: loaded.problems };
    process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    if (!loaded.ok) process.exitCode = 1;
    return;
  }
  const color = process.stderr.isTTY === true && process.stderr.hasColors();
  if (!loaded.ok) throw new UserError(loaded.problems.map((problem) => formatProblem(problem, { color })).join('\n'));
  for (const warning of loaded.warnings) process.stderr.write(`warning: ${formatProblem(warning, { color })}\n`);
  const { policies } = loaded.set;
  const files = new Set(policies.map(({ file }) => file));
  process.stdout.write(
    `no problems: ${count(policies.length, 'policy', 'policies')} enabled, in ${count(files.size, 'file', 'files')}\n`,
  );
}

async function pathsOfSettings(configFile: string | undefined): Promise<readonly string[]> {
  const { readSettings } = await import('../settings.ts');
  const read = readSettings({ configFile });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  return read.settings.policies;
}

function count(many: number, one: string, more: string): string {
  return `${many} ${many === 1 ? one : more}`;
}
