/** The question before a command that changes several computes: a person types their number. */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { countedComputes } from '../../common/names.ts';
import { UserError } from '../fail.ts';
import type { ActingFlags } from './access.ts';
import { parseComputes } from './parse-flags.ts';

export interface ConfirmFlags extends ActingFlags {
  yes?: boolean;
  confirm?: number;
}

export function withConfirmFlags(command: Command): Command {
  return command
    .option('--yes', 'do not ask')
    .option('--confirm <number>', 'do not ask, but go on only if it is this number of computes', parseComputes);
}

interface Streams {
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  output: NodeJS.WritableStream;
}

/**
 * Returns the number of computes to send with the command, after a person has agreed to it. Undefined stands for any number: with `--yes`, or
 * if the number is unknown. With `--yes` or `--confirm`, or for 0 or 1 computes, it does not ask; with `--json` it asks on standard error.
 * Throws a UserError if the person does not agree, `--confirm` names another number, or there is no terminal to ask on.
 */
export async function agreedCount(
  count: number | undefined,
  { yes = false, confirm, json = false }: ConfirmFlags,
  { input, output }: Streams = { input: process.stdin, output: json ? process.stderr : process.stdout },
): Promise<number | undefined> {
  const computes = count === undefined ? 'an unknown number of computes' : countedComputes(count);
  if (confirm !== undefined && confirm !== count) {
    throw new UserError(`this changes ${computes}, not ${confirm}: nothing was changed`);
  }
  // A number may change until the command is carried out: `--yes` agrees to any.
  if (yes && confirm === undefined) return undefined;
  if (confirm !== undefined || (count !== undefined && count <= 1)) return count;
  if (input.isTTY !== true) {
    const number = count === undefined ? '' : `--confirm ${count} or `;
    throw new UserError(`this changes ${computes}, and there is no terminal to ask on: add ${number}--yes`);
  }
  const typed = count === undefined ? 'yes' : String(count);
  if (!(await hasTyped(typed, computes, { input, output }))) throw new UserError('not confirmed: nothing was changed');
  return count;
}

/** Asks a person to type the number. Any other answer means no, also the end of the input. */
export function confirmCount(count: number, streams: Streams): Promise<boolean> {
  return hasTyped(String(count), countedComputes(count), streams);
}

async function hasTyped(typed: string, computes: string, { input, output }: Streams): Promise<boolean> {
  const reader = createInterface({ input, output });
  const closed = new Promise<undefined>((resolve) => {
    reader.once('close', () => resolve(undefined));
  });
  try {
    const answer = await Promise.race([reader.question(`Type ${typed} to change ${computes} now: `), closed]);
    return answer?.trim() === typed;
  } finally {
    reader.close();
  }
}
