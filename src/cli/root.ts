import { Command } from 'commander';
import { readVersion } from './version.ts';

/** `ebb` itself, without its commands. */
export function rootCommand(): Command {
  return new Command('ebb')
    .description('Sizes managed-Postgres computes by policy.')
    .version(readVersion())
    .option('--verbose', 'show stacks of errors');
}
