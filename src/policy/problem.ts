import { createColors } from 'picocolors';
import { printable } from '../common/safe-text.ts';

/** The kind of a problem; stable, for programs that read `--json`. */
export type ProblemCode =
  | 'files'
  | 'no-files'
  | 'limit'
  | 'yaml'
  | 'structure'
  | 'unknown-key'
  | 'missing-key'
  | 'value'
  | 'duplicate-name'
  | 'not-supported'
  | 'team';

/** Something that keeps a policy set from being loaded, or (as a warning) that its author should know. */
export interface PolicyProblem {
  code: ProblemCode;
  /** The file's name as given; or the requested path, if there is no such file. */
  file: string;
  /** From 1; absent when the problem is the file itself. */
  line?: number;
  /** From 1, in UTF-16 code units. */
  column?: number;
  message: string;
  /** The team whose files it concerns. */
  team?: string;
  /** The offending line, or the part of it around the place, with the range to underline. Secrets are masked. */
  excerpt?: { text: string; from: number; length: number };
}

/**
 * The problem as people read it: `file:line:column: message`, then the offending line with a caret under the place.
 * Plain text unless `color` is set.
 */
export function formatProblem(
  problem: Omit<PolicyProblem, 'code'>,
  { color = false }: { color?: boolean } = {},
): string {
  const paint = createColors(color);
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  const head = `${paint.bold(`${printable(place)}:`)} ${printable(problem.message)}`;
  if (!problem.excerpt || problem.line === undefined) return head;
  const { text, from, length } = problem.excerpt;
  const number = String(problem.line);
  const indent = text.slice(0, from).replaceAll(/[^\t]/g, ' ');
  const caret = paint.red('^'.repeat(Math.max(1, length)));
  return [head, `  ${number} | ${text}`, `  ${' '.repeat(number.length)} | ${indent}${caret}`].join('\n');
}
