/** Commands and flags as completion scripts need them. */
import type { Argument, Command, Option } from 'commander';

/** A value: one of these words, a path, a compute's id, or free text. */
export type Value = { kind: 'words'; words: readonly string[] } | { kind: 'path' | 'compute' | 'other' };

/** Prints the ids of computes for a completion script; nothing where no daemon answers. */
export const LIST_COMPUTES = 'ebb completion computes 2>/dev/null';

export interface Flag {
  /** With its dashes. */
  long: string;
  short?: string;
  description: string;
  /** Absent for a switch. */
  value?: Value;
  /** The value may be left out. */
  optional: boolean;
}

export interface Words {
  name: string;
  description: string;
  flags: readonly Flag[];
  /** The value of every argument; absent if the command takes none. */
  argument?: Value;
  commands: readonly Words[];
}

/** Placeholders of flags and arguments that stand for paths. */
const PATHS = /^(file|paths?|dir|old|new)$/i;
/** Those that stand for computes. */
const COMPUTES = /^COMPUTE\b/;

export function wordsOf(command: Command): Words {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    flags: command.createHelp().visibleOptions(command).map(flagOf),
    ...(argument && { argument: kindOfValue(argument.name(), argument) }),
    commands: command.commands.map(wordsOf),
  };
}

function flagOf(option: Option): Flag {
  const { long, short, description, required, optional, flags } = option;
  const placeholder = /[<[]([^>\]]+)/.exec(flags)?.[1];
  return {
    long: long ?? flags,
    ...(short !== undefined && { short }),
    description,
    ...((required || optional) && { value: kindOfValue(placeholder ?? '', option) }),
    optional,
  };
}

function kindOfValue(placeholder: string, { argChoices }: Pick<Argument | Option, 'argChoices'>): Value {
  if (argChoices) return { kind: 'words', words: argChoices };
  const name = placeholder.replace(/\.+$/, '');
  if (COMPUTES.test(name)) return { kind: 'compute' };
  return { kind: PATHS.test(name) ? 'path' : 'other' };
}

/** A command and its subcommands, each with its path: `['keys', 'create']`. The path of the program is empty. */
export function placesIn(words: Words, path: readonly string[] = []): { path: readonly string[]; words: Words }[] {
  return [{ path, words }, ...words.commands.flatMap((command) => placesIn(command, [...path, command.name]))];
}

/** One word for bash and zsh, whatever is in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
