/** Commands and flags as completion scripts need them. */
import type { Argument, Command, Option } from 'commander';

/** A value: one of these words, a path, a compute's id, or free text. */
export type Value = { kind: 'words'; words: readonly string[] } | { kind: 'path' | 'compute' | 'other' };

/** The shell command that prints the ids of computes; it prints nothing if there is neither a daemon nor a `baseline.json`. */
export const LIST_COMPUTES = 'ebb completion computes 2>/dev/null';

export interface Flag {
  /** With its dashes. */
  long: string;
  short?: string;
  description: string;
  /** Absent for a switch. */
  value?: Value;
  isValueOptional: boolean;
}

export interface CommandTree {
  name: string;
  description: string;
  flags: readonly Flag[];
  /** The kind of the arguments, which is the same for all arguments of a command. Absent if the command takes none. */
  argument?: Value;
  commands: readonly CommandTree[];
}

/** Placeholders of flags and arguments that stand for paths. */
const PATHS = /^(file|paths?|dir|old|new)$/i;
/** Placeholders that stand for computes. */
const COMPUTES = /^COMPUTE\b/;

export function commandTree(command: Command): CommandTree {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    flags: command.createHelp().visibleOptions(command).map(flagOf),
    ...(argument && { argument: kindOfValue(argument.name(), argument) }),
    commands: command.commands.map(commandTree),
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
    isValueOptional: optional,
  };
}

function kindOfValue(placeholder: string, { argChoices }: Pick<Argument | Option, 'argChoices'>): Value {
  if (argChoices) return { kind: 'words', words: argChoices };
  const name = placeholder.replace(/\.+$/, '');
  if (COMPUTES.test(name)) return { kind: 'compute' };
  return { kind: PATHS.test(name) ? 'path' : 'other' };
}

/** A command and its subcommands, each with its path: `['keys', 'create']`. The path of the program is empty. */
export function commandsIn(
  tree: CommandTree,
  path: readonly string[] = [],
): { path: readonly string[]; tree: CommandTree }[] {
  return [{ path, tree }, ...tree.commands.flatMap((command) => commandsIn(command, [...path, command.name]))];
}
