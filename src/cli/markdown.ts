/** The only encoder of Markdown: text from outside can't become markup or end a table cell. */
import { printable } from '../common/safe-text.ts';

/** A name as code: nothing in code is markup. */
export function markdownCode(text: string): string {
  return `\`${printable(text).replaceAll('|', '/').replaceAll('`', "'")}\``;
}

/** The lines of a table, whose cells must be encoded. `firstIs: 'number'` aligns the first column to the right. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  firstIs: 'text' | 'number' = 'text',
): string[] {
  const marks = head.map((_, index) => (index === 0 && firstIs === 'number' ? '--:' : '---'));
  return [head, ...rows].map((cells) => `| ${cells.join(' | ')} |`).toSpliced(1, 0, `|${marks.join('|')}|`);
}

/** A sentence that may hold names: no HTML, code, link or image. */
export function markdownText(text: string): string {
  return printable(text).replaceAll('|', '/').replaceAll('`', "'").replaceAll('<', '‹').replaceAll('[', '\\[');
}
