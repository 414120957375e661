import Table from 'cli-table3';
import { createColors } from 'picocolors';
import { printable } from '../common/safe-text.ts';
import { groupAlike } from './group-alike.ts';

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

/** If a text is about more computes than this, it sums them up by team, unless the user asks for each compute. */
export const MAX_IN_DETAIL = 40;

/** A table with a row for each team, in the order of their names. */
export function teamTable<T>(
  all: readonly T[],
  options: {
    /** The heads of the columns after the team. */
    head: readonly string[];
    ownerOf(one: T): string;
    cellsOf(members: readonly T[], owner: string): readonly string[];
    /** Adds a row of all teams. */
    hasSum?: boolean;
  },
): string {
  const { head, ownerOf, cellsOf, hasSum = false } = options;
  const rows = groupAlike(all, ownerOf)
    .map(({ shared: owner, members }) => [printable(owner), ...cellsOf(members, owner)])
    .toSorted(([a = ''], [b = '']) => a.localeCompare(b));
  if (hasSum) rows.push(['all', ...cellsOf(all, 'all')]);
  return plainTable(['team', ...head], rows, ['left', ...head.map(() => 'right' as const)]);
}

export type Colors = ReturnType<typeof createColors>;

/** Colors for a stream. They are off unless the stream is a terminal with colors, and if NO_COLOR is set. */
export function colorsOf(stream: { isTTY?: boolean; hasColors?(): boolean }): Colors {
  return createColors(stream.isTTY === true && stream.hasColors?.() === true);
}
