import { userInfo } from 'node:os';
import { Command, Option } from 'commander';
import { type AskForPage, itemsOfAllPages } from '../../app/pages.ts';
import type { Operator, OperatorAccess } from '../../compose/operator-access.ts';
import { orFail, UserError } from '../fail.ts';
import { type CommonFlags, FLAGS } from '../flags.ts';
import { writeErrLine } from '../output.ts';

export interface AccessFlags extends Pick<CommonFlags, 'config' | 'queueUrl' | 'json'> {
  url?: string;
}

export function withAccessFlags(command: Command): Command {
  return command
    .option(...FLAGS.config)
    .option(...FLAGS.storeUrl)
    .option('--url <url>', 'ask the daemon there instead, with the token in EBB_TOKEN')
    .option('--json', 'print JSON');
}

/** Flags of commands that change something. `--owner`, which means a team elsewhere, was the name of `--by` in 0.1.0. */
export interface ActingFlags extends AccessFlags {
  by?: string;
  owner?: string;
}

export function actingCommand(
  name: string,
  owner = new Option('--owner <name>', 'the former name of --by').hideHelp(),
): Command {
  return withAccessFlags(new Command(name)).option('--by <name>', 'who (default: the user)').addOption(owner);
}

/** Returns the name of the person who acts. Throws a UserError if the name is unknown, or if the flags contradict each other. */
export function actorOf({ by, owner }: Pick<ActingFlags, 'by' | 'owner'>): string {
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

/** Opens the connection to the daemon or to its store, and always closes it again. */
export async function withOperator<T>(flags: AccessFlags, work: (access: OperatorAccess) => Promise<T>): Promise<T> {
  const [{ settingsOrFail }, { openOperator }] = await Promise.all([
    import('../or-fail.ts'),
    import('../../compose/operator-access.ts'),
  ]);
  const { url } = flags;
  const settings = settingsOrFail(flags);
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) throw new UserError('--url: write http://HOST:PORT');
  const access = orFail(await openOperator({ settings, url }));
  try {
    if (access.unusedNote !== undefined) writeErrLine(`note: ${access.unusedNote}`);
    return await work(access);
  } finally {
    await access.close();
  }
}

/** The document with which a method of the operator answers. */
export type Answer<Method extends keyof Operator> = Extract<
  Awaited<ReturnType<Operator[Method]>>,
  { ok: true }
>['value'];

type Reply<T> = { ok: true; value: T } | { ok: false; error: { message: string } };

/** Returns the document of an answer, or throws the message of a refusal as a UserError. */
export async function answered<T>(asking: Reply<T> | Promise<Reply<T>>): Promise<T> {
  const answer = await asking;
  if (!answer.ok) throw new UserError(answer.error.message);
  return answer.value;
}

/** Returns all items of a list, or throws the message of a refusal as a UserError. */
export function everyPage<T>(ask: AskForPage<T>): Promise<T[]> {
  return answered(itemsOfAllPages(ask));
}
