import { readFileSync } from 'node:fs';
import { Command } from 'commander';

export interface CommandEntry {
  name: string;
  /** Its heading in `ebb --help`. */
  group: string;
  /** True: `ebb help all` lists the command, `ebb --help` does not. */
  onlyInHelpAll?: true;
  /** An older name that is still accepted, with a warning. */
  formerly?: string;
  /** The command's description. It is here so that `ebb --help` need not load the command. */
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

/** The version in package.json, which lies two folders up from src/cli as from dist/cli. */
export function readVersion(): string {
  return readJson<{ version: string }>('../../package.json').version;
}

/** Such as `0.1.0 (abc1234)`, with the commit that the build has noted. From source, only the version is known. */
function versionText(): string {
  const commit = builtFrom();
  return commit === null ? readVersion() : `${readVersion()} (${commit})`;
}

function builtFrom(): string | null {
  try {
    return readJson<{ commit: string | null }>('../build.json').commit;
  } catch {
    return null;
  }
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
