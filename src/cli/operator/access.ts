import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import type { Operator } from '../../compose/operator-access.ts';
import { UserError } from '../fail.ts';
import { writeErrLine } from '../output.ts';

/** Flags of every command that talks to a daemon or to its store. */
export interface AccessFlags {
  config?: string;
  queueUrl?: string;
  url?: string;
  json?: boolean;
}

export function withAccessFlags(command: Command): Command {
  return command
    .option('--config <file>', 'settings file (default: ebb.yaml if it is there)')
    .option('--queue-url <url>', 'the store of the daemons, as for ebb run (EBB_QUEUE_URL)')
    .option('--url <url>', 'ask the daemon there instead, with the token in EBB_TOKEN')
    .option('--json', 'print JSON');
}

/** The person who acts. `--owner`, which means a team elsewhere, was its name in 0.1.0. */
export interface ActorFlags {
  by?: string;
  owner?: string;
}

export function withActorFlags(command: Command): Command {
  return command
    .option('--by <name>', 'who (default: the user)')
    .addOption(new Option('--owner <name>', 'the former name of --by').hideHelp());
}

/** The name of the person who acts. Throws a UserError where it is not clear. */
export function actorOf({ by, owner }: ActorFlags): string {
  if (owner !== undefined) {
    if (by !== undefined && by !== owner)
      throw new UserError('--by and its former name --owner differ: give --by only');
    writeErrLine('warning: here --owner is now called --by; it is accepted for two more releases');
  }
  const given = by ?? owner;
  if (given !== undefined) return given;
  try {
    return userInfo().username;
  } catch {
    throw new UserError('the system has no name for this user: give --by');
  }
}

interface Asked {
  operator: Operator;
  via: 'daemon' | 'store';
}

/** Opens the connection to the daemon or to its store, and always closes it again. */
export async function withOperator<T>(flags: AccessFlags, work: (asked: Asked) => Promise<T>): Promise<T> {
  const [{ settingsOrFail }, { openOperator }] = await Promise.all([
    import('../or-fail.ts'),
    import('../../compose/operator-access.ts'),
  ]);
  const { config, queueUrl, url } = flags;
  const settings = settingsOrFail({ configFile: config, flags: { queueUrl } });
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) throw new UserError('--url: write http://HOST:PORT');
  const opened = await openOperator({ settings, url });
  if (!opened.ok) throw new UserError(opened.problem);
  try {
    return await work(opened.value);
  } finally {
    await opened.value.close();
  }
}

type Result<T> = { ok: true; value: T } | { ok: false; error: { message: string } };

/** The value of a result. Throws a UserError with the message of a failed one. */
export async function answered<T>(result: Promise<Result<T>>): Promise<T> {
  const given = await result;
  if (!given.ok) throw new UserError(given.error.message);
  return given.value;
}

/** All pages of a list, whose length the daemon bounds. */
export async function everyPage<T>(
  ask: (query: { after?: string; limit: number }) => Promise<Result<{ items: T[]; next: string | null }>>,
): Promise<T[]> {
  const all: T[] = [];
  let after: string | undefined;
  do {
    const page = await answered(ask({ limit: 1000, ...(after !== undefined && { after }) }));
    all.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return all;
}
