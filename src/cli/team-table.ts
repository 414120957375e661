import { printable } from '../common/safe-text.ts';
import { groupAlike } from './group-alike.ts';
import { plainTable } from './terminal.ts';

/** More computes than this are summed up by team, unless the reader asks for each. */
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
