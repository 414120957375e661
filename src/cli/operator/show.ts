/** Documents for people: what comes from others can't steer the terminal. */
import type { Operator } from '../../compose/operator-access.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/settings-text.ts';
import { plainTable } from '../plain-table.ts';
import { printable } from '../printable.ts';

type Item<Pages> = Pages extends { ok: true; value: { items: (infer T)[] } } ? T : never;
export type Hold = Item<Awaited<ReturnType<Operator['holds']>>>;
export type Freeze = Item<Awaited<ReturnType<Operator['freezes']>>>;

export function printJson(document: object): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${printable(line)}\n`).join(''));
}

/** Columns without lines between them, for terminals and for `grep`. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const shown = rows.map((row) => row.map(printable));
  process.stdout.write(`${plainTable(head, shown)}\n`);
}

/** What a hold sets, as `ebb hold` takes it. */
export function describeHold({ size, suspend_timeout_seconds: timeout, freeze }: Hold): string {
  const parts = [
    ...(size ? [`size ${sizeText(size)}`] : []),
    ...(timeout === null ? [] : [`suspend-after ${formatSuspendTimeout(timeout)}`]),
    ...(freeze ? ['as it is'] : []),
  ];
  return parts.join(', ');
}

export function describeFreeze({ select, allow_raise }: Freeze): string {
  const what = select === 'all' ? 'all computes' : selectorText(select);
  return allow_raise ? `${what}, raises allowed` : what;
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
