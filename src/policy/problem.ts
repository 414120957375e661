import { createColors } from 'picocolors';
import { printable } from '../common/safe-text.ts';

/** Stable, for programs that read `--json`. */
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

/** A problem that prevents the loading of a policy set, or a warning. */
export interface PolicyProblem {
  code: ProblemCode;
  /** The name of the file, or the requested path if there is no such file. */
  file: string;
  /** From 1; absent if the problem concerns the whole file. */
  line?: number;
  /** From 1, in UTF-16 code units. */
  column?: number;
  message: string;
  /** The team whose files the problem concerns. */
  team?: string | undefined;
  /** The line, or the part of it around the place, with the range to underline. Secrets are masked. */
  excerpt?: { text: string; from: number; length: number };
}

/** Formats a problem as `file:line:column: message`, then its line with a caret under the place. Plain text unless `color` is set. */
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
