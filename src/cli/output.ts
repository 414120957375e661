/** Commands write through these functions, so that text from others can't control a terminal or a workflow. */

import { errorCode } from '../common/errors.ts';
import { replaceFile } from '../common/replace-file.ts';
import { printable, printableJson, printableLines } from '../common/safe-text.ts';
import { UserError } from './fail.ts';

export function writeOut(text: string): void {
  process.stdout.write(printableLines(text));
}

export function writeErr(text: string): void {
  process.stderr.write(printableLines(text));
}

export function writeErrLine(line: string): void {
  writeErr(`${printable(line)}\n`);
}

/** Writes notes and missing parts of the fleet to standard error. A missing part sets the exit code 1. */
export function writeNotes({ notes, missing = [] }: { notes: readonly string[]; missing?: readonly string[] }): void {
  for (const line of [...notes, ...missing.map((one) => `left out: ${one}`)]) writeErrLine(`note: ${line}`);
  if (missing.length > 0) process.exitCode = 1;
}

/** A document as JSON that can't control a terminal; parsing it gives the same document. */
export function jsonText(document: unknown): string {
  return printableJson(JSON.stringify(document, null, 2));
}

export function writeJson(document: unknown): void {
  process.stdout.write(`${jsonText(document)}\n`);
}

/** Writes workflow commands, as `workflowCommand` makes them, for the runner of GitHub Actions. */
export function writeCommands(commands: readonly string[]): void {
  for (const command of commands) process.stdout.write(`${printable(command)}\n`);
}

/** Cuts a text to this many characters, and ends a text that was cut with an ellipsis. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}

/** Replaces a file atomically. Passes on a {@link UserError} that is thrown while the text is produced. */
export async function writeWhole(
  path: string,
  text: string | AsyncIterable<string>,
  flag = '--out',
  mode = 0o666,
): Promise<void> {
  try {
    await replaceFile(path, text, { mode });
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${flag}: ${path} cannot be written (${errorCode(error)}): check the path`);
  }
}
