import { Command } from 'commander';
import { versionText } from './version.ts';

export interface CommandEntry {
  name: string;
  /** An older name that is still accepted, with a warning. */
  formerly?: string;
  /** The command's own description, here so that `ebb --help` need not load it. */
  summary: string;
  load(): Promise<Command>;
}

/** `ebb` itself, without its commands. */
export function rootCommand(): Command {
  return new Command('ebb')
    .description('Sizes managed-Postgres computes by policy.')
    .version(versionText())
    .option('--verbose', 'show stacks of errors');
}
