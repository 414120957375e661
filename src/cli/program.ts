import { type Command, CommanderError, Help } from 'commander';
import { COMMANDS } from './commands.ts';
import { UserError } from './fail.ts';
import { writeErr, writeErrLine, writeOut } from './output.ts';
import { rootCommand } from './root.ts';

const EXAMPLES = `
Examples:
  $ ebb demo                        see it work, without a key or a service
  $ ebb validate policies           check policies before they are merged
  $ ebb run                         observe: log and metrics say what would be changed
  $ ebb run --mode enforce          change computes

ebb help all lists all commands. Settings come from ebb.yaml, from EBB_… variables and from flags: docs/settings.md.`;

/** Builds the program. To start fast, it loads only the commands that the arguments name. */
async function buildProgram(args: readonly string[]): Promise<Command> {
  const program = rootCommand()
    .addHelpText('after', EXAMPLES)
    .configureHelp({
      subcommandTerm: (command) => command.name(),
      visibleCommands: (command) => new Help().visibleCommands(command).filter((one) => one.name() !== 'help'),
    })
    // Errors are printed once, by main.
    .configureOutput({ writeOut, writeErr, outputError: () => {} })
    .exitOverride();
  const isShort = args.length < 2 && args.every((arg) => arg.startsWith('-') || arg === 'help');
  for (const { name, group, onlyInHelpAll = false, formerly, summary, load } of COMMANDS) {
    if (formerly !== undefined && args.includes(formerly)) {
      program.addCommand(asPartOf(program, formerCommand(formerly, await load())), { hidden: true });
    }
    if (args.includes(name)) program.addCommand(asPartOf(program, await load()));
    else
      program
        .command(name, { hidden: onlyInHelpAll && isShort })
        .description(summary)
        .helpGroup(`${group}:`);
  }
  return program;
}

function formerCommand(formerly: string, command: Command): Command {
  const warning = `warning: ebb ${formerly} is now called ebb ${command.name()}`;
  return command.name(formerly).hook('preAction', () => writeErrLine(warning));
}

/** Gives a command and its subcommands the output and error handling of the program. */
function asPartOf(program: Command, command: Command): Command {
  for (const subcommand of command.commands) asPartOf(program, subcommand);
  return command.copyInheritedSettings(program);
}

/** Runs one command line. Throws a UserError for invalid arguments. */
export async function runProgram(args: readonly string[]): Promise<void> {
  const program = await buildProgram(args);
  if (args.length === 0 || args.join(' ') === 'help all') return program.outputHelp();
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw new UserError(explain(error, program, args), { cause: error });
  }
}

/** Commander's message in one line, with the help to look at. */
function explain({ code, message }: CommanderError, program: Command, args: readonly string[]): string {
  const line = message
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/\.$/, '');
  // The message of `command.error()` already says what to do.
  if (code === 'commander.error') return line;
  const command = COMMANDS.find(({ name, formerly = name }) => args.includes(name) || args.includes(formerly));
  // Commander has printed the help, since no subcommand was named.
  if (code === 'commander.help') return `${['ebb', command?.name ?? []].flat().join(' ')}: name a command, as above`;
  // The missing value may have been given to a misspelt option, which commander's message does not name.
  const [unknown] = code === 'commander.missingMandatoryOptionValue' ? unknownOptions(program, args) : [];
  const wrongName = unknown === undefined ? '' : `unknown option '${unknown}'; `;
  return `${wrongName}${line}; see ${command === undefined ? 'ebb --help' : `ebb ${command.name} --help`}`;
}

/** The options that the named command does not have. */
function unknownOptions(command: Command, args: readonly string[]): string[] {
  const { operands, unknown } = command.parseOptions([...args]);
  const subcommand = command.commands.find((one) => one.name() === operands[0]);
  if (subcommand) return unknownOptions(subcommand, [...operands.slice(1), ...unknown]);
  return unknown.filter((one) => one.startsWith('-')).map((one) => one.replace(/=.*/s, ''));
}
