import { printable } from './safe-text.ts';

/** A text, a number, or nothing where a value is not known. */
export type CsvCell = string | number | null | undefined;

/** Characters that begin a formula in spreadsheets. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One line of CSV, without its end. This is the only encoder of CSV: a text that a spreadsheet would run as a formula begins with an
 * apostrophe, and control characters are replaced, so that a record is always one line. Numbers stay numbers.
 */
export function csvLine(cells: readonly CsvCell[]): string {
  return cells.map((cell) => (typeof cell === 'string' ? textCell(cell) : String(cell ?? ''))).join(',');
}

function textCell(text: string): string {
  const shown = (FORMULA.test(text) ? "'" : '') + printable(text);
  return /[",]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}
