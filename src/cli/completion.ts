import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Argument, Command } from 'commander';
import { writeOut } from './output.ts';
import { type CommandEntry, rootCommand } from './root.ts';

const EXAMPLES = `
Examples:
  $ eval "$(ebb completion bash)"                                       in ~/.bashrc
  $ ebb completion zsh > ~/.zfunc/_ebb                                  a folder of $fpath, before compinit
  $ ebb completion fish > ~/.config/fish/completions/ebb.fish

It completes commands, flags, values that are a fixed list, paths, and ids of computes. The ids come from the daemon on
this machine, or from baseline.json; no key is used and the control API is not called. Print the script again after an upgrade.`;

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];
/** Not a shell, but the argument with which the scripts ask for the ids of computes. */
const COMPUTES = 'computes';

export function completionCommand(entries: readonly CommandEntry[]): Command {
  return new Command('completion')
    .addArgument(
      new Argument('<SHELL>', 'which shell; computes: the ids that the scripts offer').choices([...SHELLS, COMPUTES]),
    )
    .addHelpText('after', EXAMPLES)
    .action((shell: Shell | typeof COMPUTES) => (shell === COMPUTES ? printComputes() : printScript(shell, entries)));
}

/** Shells expand completions: an id with any other character could be a command. */
const HARMLESS = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * Prints the ids of computes without using a key: from the daemon on this machine, otherwise from the `baseline.json` of `ebb init`. Prints no
 * error, since a person has only pressed Tab.
 */
async function printComputes(): Promise<void> {
  const [{ computeIdsFromDaemon }, { readSettings }] = await Promise.all([
    import('../compose/daemon-file.ts'),
    import('../settings/settings.ts'),
  ]);
  const cwd = process.cwd();
  const read = readSettings({ cwd });
  const fromDaemon = read.ok ? await computeIdsFromDaemon(read.settings).catch(() => undefined) : undefined;
  const ids = [...new Set(fromDaemon ?? idsInBaseline(cwd))].filter((id) => HARMLESS.test(id));
  writeOut(ids.map((id) => `${id}\n`).join(''));
}

function idsInBaseline(cwd: string): string[] {
  try {
    const { computes } = JSON.parse(readFileSync(resolve(cwd, 'baseline.json'), 'utf8'));
    return computes.map((compute: { compute_id: unknown }) => String(compute.compute_id));
  } catch {
    return [];
  }
}

async function printScript(shell: Shell, entries: readonly CommandEntry[]): Promise<void> {
  const [{ commandTree }, { SCRIPTS }] = await Promise.all([
    import('./completion/words.ts'),
    import('./completion/scripts.ts'),
  ]);
  const program = rootCommand();
  for (const { load } of entries) program.addCommand(await load());
  writeOut(SCRIPTS[shell](commandTree(program)));
}
