/** The flags that several commands have, spelt once. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UserError } from './fail.ts';

/** The flags that several commands share. Each command adds only some of them. */
export interface CommonFlags {
  config?: string;
  apiUrl?: string;
  queueUrl?: string;
  policies?: string;
  fleet?: string;
  live?: boolean;
  usage?: string;
  operations?: string;
  at?: string;
  zone?: string;
  json?: boolean;
}

/** The arguments of `command.option(...)` for each flag, as in `command.option(...FLAGS.config)`. */
export const FLAGS = {
  config: ['--config <file>', 'settings file (default: ebb.yaml if it is there)'],
  apiUrl: ['--api-url <url>', 'control API (EBB_API_URL)'],
  queueUrl: ['--queue-url <url>', 'where daemons store what they know (EBB_QUEUE_URL; default: embedded:.ebb)'],
  storeUrl: ['--queue-url <url>', 'the store of the daemons, as for ebb run (EBB_QUEUE_URL)'],
  policies: ['--policies <paths>', 'files, folders, globs, separated by commas (EBB_POLICIES; default: policies)'],
  fleet: ['--fleet <file>', 'a snapshot, YAML or JSON, instead of the live fleet: no key is needed'],
  live: ['--live', 'read the API instead of the fleet that daemons have stored (the default, if that is recent)'],
  at: ['--at <iso>', 'decide for this instant, e.g. 2026-03-02T08:00:00+01:00 (without offset: UTC; default: now)'],
  expectedUsage: [
    '--usage <file>',
    'usage.csv of `ebb usage export`, for what is expected (default: what daemons have collected)',
  ],
  timeoutOperations: ['--operations <file>', 'operations.csv of `ebb usage export`, for what timeouts save'],
  days: ['--days <n>', 'how many days, 1 to 366 (default: 7)'],
  from: ['--from <iso>', 'where it starts; without offset local time of --zone (default: now)'],
  to: ['--to <iso>', 'where it ends, instead of --days'],
  zone: ['--zone <name>', 'IANA zone of days and hours (default: that of the first window, else UTC)'],
  json: ['--json', 'print it as JSON'],
} as const satisfies Record<string, readonly [string, string]>;

export const SELECTED_COMPUTES = [
  '[COMPUTE...]',
  'ids of computes, ids or names of projects, also globs (default: all)',
] as const;

/** An option with a fixed list of values, of which the first is the default. */
export function choiceOption(flags: string, description: string, choices: readonly string[]): Option {
  return new Option(flags, description).choices(choices).default(choices[0]);
}

/** Adds `--format` with these values, of which the first is the default, and `--json`, which is short for one of them. */
export function withFormat(command: Command, ...formats: string[]): Command {
  return command
    .addOption(choiceOption('--format <format>', 'how to print', formats))
    .addOption(new Option('--json', 'the same as --format json').implies({ format: 'json' }))
    .hook('preAction', (_, action) => {
      const { json, format } = action.opts<{ json?: boolean; format: string }>();
      if (json && format !== 'json')
        throw new UserError(`--json contradicts --format ${format}: leave one of them out`);
    });
}

/** Adds the flags that say where settings, policies and stored facts come from. */
export function withSourceFlags(command: Command): Command {
  return command
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .option(...FLAGS.queueUrl)
    .option(...FLAGS.policies);
}

/** Flags of commands that read the past of a fleet. */
export interface PastFlags extends CommonFlags {
  days: number;
}

/** The control API keeps operations for about half a year. */
export const MAX_PAST_DAYS = 180;

export function withPastFlags(command: Command): Command {
  return command
    .option(...FLAGS.live)
    .option('--days <n>', `how far to look back, 2 to ${MAX_PAST_DAYS} days`, pastDays(2), 28)
    .option('--operations <file>', 'operations.csv instead of the API; needs --fleet, and no key')
    .option('--usage <file>', 'usage.csv: CU-seconds by hours')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, for --operations')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl);
}

/** Returns a parser of whole days, of which there must be `least` or more. */
export function pastDays(least: number): (text: string) => number {
  return (text) => {
    const days = Number(text);
    if (/^\d{1,3}$/.test(text) && days >= least && days <= MAX_PAST_DAYS) return days;
    throw new InvalidArgumentError(`write whole days from ${least} to ${MAX_PAST_DAYS}`);
  };
}
