/** The only encoder of Markdown: text from outside can't become markup or end a table cell. */
import { printable } from '../common/safe-text.ts';

/** A name as code: nothing in code is markup. */
export function markdownCode(text: string): string {
  return `\`${printable(text).replaceAll('|', '/').replaceAll('`', "'")}\``;
}

/** A sentence that may hold names: no HTML, code, link or image. */
export function markdownText(text: string): string {
  return printable(text).replaceAll('|', '/').replaceAll('`', "'").replaceAll('<', '‹').replaceAll('[', '\\[');
}
