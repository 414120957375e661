import { printable } from './safe-text.ts';

/** Null and undefined are written as empty cells. */
type CsvCell = string | number | null | undefined;

/** Characters that begin a formula in spreadsheets. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One line of CSV, without the line break. A text that a spreadsheet would run as a formula gets an apostrophe in front, and control
 * characters are replaced, so that a record is always one line.
 */
export function csvLine(cells: readonly CsvCell[]): string {
  return cells.map((cell) => (typeof cell === 'string' ? textCell(cell) : String(cell ?? ''))).join(',');
}

function textCell(text: string): string {
  const shown = (FORMULA.test(text) ? "'" : '') + printable(text);
  return /[",]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}
