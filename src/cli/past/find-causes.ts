import { type AwakeFinding, findCause, type Range } from '../../domain/awake/causes.ts';
import type { PastCompute } from './read-past.ts';

/** A cause with what it costs; without a price the dollars are unknown. */
export interface PricedCause extends AwakeFinding {
  usdMonth: Range | undefined;
}

/** The causes of all computes that have one, the most expensive first. */
export function findCauses(computes: readonly PastCompute[]): PricedCause[] {
  const found = computes.flatMap(({ price, readHistory, ...facts }) => {
    const finding = findCause({ ...facts, history: readHistory() });
    return finding
      ? [{ ...finding, usdMonth: price === undefined ? undefined : priced(finding.cuHoursMonth, price) }]
      : [];
  });
  return found.toSorted((a, b) => middle(b) - middle(a));
}

function priced({ low, high }: Range, price: number): Range {
  return { low: low * price, high: high * price };
}

/** By dollars where all have a price; by CU-hours these are in the same order within an account. */
function middle({ usdMonth, cuHoursMonth }: PricedCause): number {
  const { low, high } = usdMonth ?? cuHoursMonth;
  return low + high;
}
