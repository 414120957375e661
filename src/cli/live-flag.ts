import type { Command } from 'commander';

/** The flag of commands that read the fleet. */
export interface LiveFlag {
  live?: boolean;
}

/** Adds the flag that reads the fleet from the control API, although daemons have stored what they read. */
export function withLiveFlag(command: Command): Command {
  return command.option(
    '--live',
    "read the API, not what daemons have stored of the fleet (the default, if it's recent)",
  );
}
