import { Argument, Command } from 'commander';
import type { CommandEntry } from './commands.ts';
import type { Words } from './completion/words.ts';
import { rootCommand } from './root.ts';

const EXAMPLES = `
Examples:
  $ eval "$(ebb completion bash)"                                       in ~/.bashrc
  $ ebb completion zsh > ~/.zfunc/_ebb                                  a folder of $fpath, before compinit
  $ ebb completion fish > ~/.config/fish/completions/ebb.fish

It completes commands, flags, their values where there are only so many, and paths. The script asks nobody and starts
nothing; make it anew after an upgrade.`;

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** `ebb completion SHELL`: a script that completes the commands that there are. */
export function completionCommand(entries: readonly CommandEntry[]): Command {
  return new Command('completion')
    .description('print a script that completes commands and flags in a shell')
    .addArgument(new Argument('<SHELL>', 'which shell').choices(SHELLS))
    .addHelpText('after', EXAMPLES)
    .action((shell: Shell) => printScript(shell, entries));
}

async function printScript(shell: Shell, entries: readonly CommandEntry[]): Promise<void> {
  const { wordsOf } = await import('./completion/words.ts');
  const program = rootCommand();
  for (const { load } of entries) program.addCommand(await load());
  process.stdout.write(await render(shell, wordsOf(program)));
}

async function render(shell: Shell, words: Words): Promise<string> {
  switch (shell) {
    case 'bash':
      return (await import('./completion/bash.ts')).bashScript(words);
    case 'zsh':
      return (await import('./completion/zsh.ts')).zshScript(words);
    case 'fish':
      return (await import('./completion/fish.ts')).fishScript(words);
  }
}
