import { Argument, Command } from 'commander';
import type { Words } from './completion/words.ts';
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
/** Internal: the scripts call it. */
const COMPUTES = 'computes';

export function completionCommand(entries: readonly CommandEntry[]): Command {
  return new Command('completion')
    .addArgument(
      new Argument('<SHELL>', 'which shell; computes: the ids that the scripts offer').choices([...SHELLS, COMPUTES]),
    )
    .addHelpText('after', EXAMPLES)
    .action((what: Shell | typeof COMPUTES) => (what === COMPUTES ? printComputes() : printScript(what, entries)));
}

async function printComputes(): Promise<void> {
  const { computeIds } = await import('./completion/compute-ids.ts');
  const ids = await computeIds(process.cwd());
  writeOut(ids.map((id) => `${id}\n`).join(''));
}

async function printScript(shell: Shell, entries: readonly CommandEntry[]): Promise<void> {
  const { wordsOf } = await import('./completion/words.ts');
  const program = rootCommand();
  for (const { load } of entries) program.addCommand(await load());
  writeOut(await render(shell, wordsOf(program)));
}

async function render(shell: Shell, words: Words): Promise<string> {
  switch (shell) {
    case 'bash':
      return (await import('./completion/scripts.ts')).bashScript(words);
    case 'zsh':
      return (await import('./completion/scripts.ts')).zshScript(words);
    case 'fish':
      return (await import('./completion/scripts.ts')).fishScript(words);
  }
}
