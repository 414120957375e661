/** Makes text safe to show: names and messages come from others, and must not control a terminal, a page or the log of a workflow. */

/** Controls, and marks that turn the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu;

/** No control characters: text of people is shown in other people's terminals. */
const SHOWABLE = /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u;

/** Harmless control sequences: a color, its end, a tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape begins a color
const COLOR_OR_TAB = /\u001b\[[\d;]*m|\t/g;

/** Commands of a workflow runner: `::` at the start of a line and, in its old form, `##[` anywhere. */
const COMMAND = /^(\s*):(?=:)|##(?=\[)/g;

/** True for one plain line that is not empty. */
export function isShowable(text: string): boolean {
  return SHOWABLE.test(text);
}

/** Makes a name from outside printable in one line: other characters become `?`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '?');
}

/** Whole lines as they may be written. Line breaks, colors and tabs stay; nothing is a command of a workflow. */
export function printableLines(text: string): string {
  return text.split('\n').map(printableLine).join('\n');
}

function printableLine(line: string): string {
  const kept = line.match(COLOR_OR_TAB) ?? [];
  const parts = line.split(COLOR_OR_TAB).map((part, index) => printable(part) + (kept[index] ?? ''));
  return parts.join('').replace(COMMAND, (found) => `${found} `);
}

/** JSON text that reads back as the same, without a character that steers a terminal. */
export function printableJson(text: string): string {
  return text.replace(UNPRINTABLE, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
