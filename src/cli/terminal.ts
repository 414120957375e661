import Table from 'cli-table3';
import { createColors } from 'picocolors';

const NO_LINES = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
  ].map((part) => [part, '']),
);

/** A table without lines, for terminals of 80 columns and for `grep`. Texts must be printable. */
export function plainTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  colAligns: readonly ('left' | 'right')[] = [],
): string {
  const table = new Table({
    head: [...head],
    colAligns: [...colAligns],
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] },
  });
  for (const row of rows) table.push([...row]);
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}

export type Colors = ReturnType<typeof createColors>;

/** Colors for a stream: only on a terminal that has them, and not where NO_COLOR is set. */
export function colorsOf(stream: { isTTY?: boolean; hasColors?(): boolean }): Colors {
  return createColors(stream.isTTY === true && stream.hasColors?.() === true);
}
