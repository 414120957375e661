/** Prints documents for people. Text from outside is escaped, so it can't control the terminal. */

import { countedComputes } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import { writeJson, writeOut } from '../output.ts';
import { plainTable } from '../terminal.ts';
import type { Answer } from './access.ts';

type Hold = Answer<'holds'>['items'][number];
export type Freeze = Answer<'freezes'>['items'][number];

export function printAnswer({ json }: { json?: boolean }, document: object, lines: readonly string[]): void {
  if (json) writeJson(document);
  else printLines(lines);
}

export function printLines(lines: readonly string[]): void {
  writeOut(lines.map((line) => `${printable(line)}\n`).join(''));
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const shown = rows.map((row) => row.map(printable));
  writeOut(`${plainTable(head, shown)}\n`);
}

/** Describes a hold in the form that `ebb hold` takes. */
export function describeHold({ size, suspend_timeout_seconds: timeout, freeze, limited }: Hold): string {
  const parts = [
    ...(size ? [`size ${sizeText(size)}`] : []),
    ...(timeout === null ? [] : [`suspend-after ${formatSuspendTimeout(timeout)}`]),
    ...(freeze ? ['as it is'] : []),
    // Older daemons do not send `limited`.
    ...(limited ? [limited] : []),
  ];
  return parts.join(', ');
}

/** A line for each change that was already on its way when a hold, a freeze or the end of one was stored. */
export function inFlightLines({ in_flight = [] }: Pick<Hold, 'in_flight'>): string[] {
  return in_flight.map(({ compute_id, to, restart, since }) => {
    const size =
      to.min_cu === null || to.max_cu === null ? [] : [`size ${sizeText({ min_cu: to.min_cu, max_cu: to.max_cu })}`];
    const { suspend_timeout_seconds: timeout } = to;
    const rest = timeout === null ? [] : [`suspend-after ${formatSuspendTimeout(timeout)}`];
    const what = [...size, ...rest, ...(restart ? ['restart'] : [])].join(', ');
    return `${compute_id}: a change was already on its way when this was stored: ${what} (since ${since})`;
  });
}

export function describeFreeze({ select, allow_raise }: Freeze): string {
  const what = select === 'all' ? 'all computes' : selectorText(select);
  return allow_raise ? `${what}, raises allowed` : what;
}

/** Says how many computes a freeze covers, so that a typo in its selector is noticed. */
export function coverText({ covers, partial }: Pick<Freeze, 'covers' | 'partial'>): string {
  if (covers === undefined) return '';
  const yet = partial ? '; not all projects are read yet' : '';
  if (covers > 0) return `; ${countedComputes(covers)}${yet}`;
  return partial
    ? `; it matches no compute that is known yet${yet}`
    : '; it matches no compute now, and applies to new ones';
}

export function sizeText({ min_cu, max_cu }: { min_cu: number; max_cu: number }): string {
  return `${formatSize({ minCu: min_cu, maxCu: max_cu })} CU`;
}

function selectorText(select: Exclude<Freeze['select'], 'all'>): string {
  const { minAgeMs: _age, ...keys } = select;
  return Object.entries(keys)
    .map(([key, value]) => `${key}=${Array.isArray(value) ? value.join(',') : value}`)
    .join(' ');
}
