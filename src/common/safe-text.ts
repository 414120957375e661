/** Makes text safe to show: names and messages of others must not control a terminal, a page or the log of a workflow. */

/** Control characters, and marks that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu;

/** Text without control characters, which can be shown in the terminals of other people. */
const SHOWABLE = /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u;

/** Control sequences that may stay, since they do no harm. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape begins a color
const COLOR_OR_TAB = /\u001b\[[\d;]*m|\t/g;

/** Commands of a workflow runner: `::` at the start of a line and, in its old form, `##[` anywhere. */
const COMMAND = /^(\s*):(?=:)|##(?=\[)/g;

/** True for one plain line that is not empty. */
export function isShowable(text: string): boolean {
  return SHOWABLE.test(text);
}

/** Replaces unprintable characters by `?`, line breaks included. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '?');
}

/** Makes text one printable line: line breaks become spaces. */
export function oneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' '));
}

/** Makes lines printable. Line breaks, colors and tabs stay; no line is a command of a workflow. */
export function printableLines(text: string): string {
  return text.split('\n').map(printableLine).join('\n');
}

function printableLine(line: string): string {
  const kept = line.match(COLOR_OR_TAB) ?? [];
  const parts = line.split(COLOR_OR_TAB).map((part, index) => printable(part) + (kept[index] ?? ''));
  return parts.join('').replace(COMMAND, (found) => `${found} `);
}

/** Escapes the characters of JSON text that could control a terminal; it parses to the same value. */
export function printableJson(text: string): string {
  return text.replace(UNPRINTABLE, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
