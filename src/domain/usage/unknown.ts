/** Estimates the usage of projects in hours without known usage. */
import { sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { HOUR_MS } from '../time/units.ts';
import type { BillLine } from './bill.ts';

/** The usage of a project in a span that ends today, by day and line. */
export interface PastOfProject extends Span {
  lines: readonly BillLine[];
}

/**
 * The expected usage of a project in its unknown hours, by line: as much per hour as in its known hours. Names may repeat. It is computed for
 * each project, since unknown hours often belong to the few projects that are always awake. Empty without known hours.
 */
export function expectedInUnknown(unknownHours: number, { fromMs, toMs, lines }: PastOfProject): BillLine[] {
  const knownHours = (toMs - fromMs) / HOUR_MS - sum(lines.map((line) => line.unknownHours));
  if (unknownHours === 0 || !(knownHours > 0)) return [];
  const times = unknownHours / knownHours;
  return lines.map(({ name, cuSeconds, usd }) => ({
    name,
    cuSeconds: cuSeconds * times,
    usd: usd === undefined ? undefined : usd * times,
    unknownHours: 0,
  }));
}
