import { type Command, InvalidArgumentError } from 'commander';
import { type LiveFlag, withLiveFlag } from '../live-flag.ts';
import { writeErrLine } from '../output.ts';

/** Flags of commands that read the past of a fleet. */
export interface PastFlags extends LiveFlag {
  config?: string;
  apiUrl?: string;
  fleet?: string;
  operations?: string;
  usage?: string;
  days: number;
  json?: boolean;
}

/** Operations are kept for about half a year. */
const MOST_DAYS = 180;

/** Adds the flags that say where the past comes from. */
export function withPastFlags(command: Command): Command {
  return withLiveFlag(command)
    .option('--days <n>', `how far to look back, 2 to ${MOST_DAYS} days`, parsePastDays, 28)
    .option('--operations <file>', 'operations.csv instead of the API; needs --fleet, and no key')
    .option('--usage <file>', 'usage.csv: CU-seconds by hours')
    .option('--fleet <file>', 'a snapshot, YAML or JSON, for --operations')
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--api-url <url>', 'control API (EBB_API_URL)');
}

export function parsePastDays(text: string): number {
  const days = Number(text);
  if (/^\d{1,3}$/.test(text) && days >= 2 && days <= MOST_DAYS) return days;
  throw new InvalidArgumentError(`write whole days from 2 to ${MOST_DAYS}`);
}

/** Prints notes and unread parts on standard error, never on standard output. */
export function printPastAsides({ missing, notes }: { missing: readonly string[]; notes: readonly string[] }): void {
  for (const line of [...notes, ...missing.map((one) => `left out: ${one}`)]) writeErrLine(`note: ${line}`);
  if (missing.length > 0) process.exitCode = 1;
}
