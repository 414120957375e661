export interface Range {
  low: number;
  high: number;
}

/** An expected value and its range. Whether the ends are bounds, or those of an interval with a probability, depends on the figure. */
export interface Estimate extends Range {
  mid: number;
}

/** An estimate whose middle may be unknown. */
export interface PartialEstimate extends Range {
  mid?: number | undefined;
}

export const ZERO: Estimate = { low: 0, mid: 0, high: 0 };

export function exactly(value: number): Range {
  return { low: value, high: value };
}

/** An estimate whose middle is that of its range. */
export function withMiddle({ low, high }: Range): Estimate {
  return { low, mid: (low + high) / 2, high };
}

export function mapEstimate({ low, mid, high }: Estimate, change: (value: number) => number): Estimate {
  return { low: change(low), mid: change(mid), high: change(high) };
}

export function mapRange({ low, high }: Range, change: (value: number) => number): Range {
  return { low: change(low), high: change(high) };
}

/** Orders the ends after a change that may have swapped them, so that the middle lies between them. */
export function inOrder({ low, mid, high }: Estimate): Estimate {
  return { low: Math.min(low, mid, high), mid, high: Math.max(low, mid, high) };
}

/** Splits a saving into its amount and `isCost`. It is a cost if its middle is negative or, without a middle, if the sum of its ends is. */
export function savingOrCost(saving: Estimate): Estimate & { isCost: boolean };
export function savingOrCost(saving: PartialEstimate): PartialEstimate & { isCost: boolean };
export function savingOrCost({ low, mid, high }: PartialEstimate): PartialEstimate & { isCost: boolean } {
  if ((mid ?? low + high) >= 0) return { isCost: false, low, mid, high };
  // Not `-high`, which may be -0.
  return { isCost: true, low: 0 - high, mid: mid === undefined ? undefined : 0 - mid, high: 0 - low };
}

/** Text for a saving: `2 h`, `2 to 5 h`; for a cost: `2 to 5 h more`; if both are possible: `2 h more to 5 h saved`. `unit` begins with a space. */
export function savedRange(saving: PartialEstimate, format: (value: number) => string, unit = ''): string {
  const { isCost, low, high } = savingOrCost(saving);
  if (low < 0) return `${format(0 - saving.low)}${unit} more to ${format(saving.high)}${unit} saved`;
  const range = low === high ? format(high) : `${format(low)} to ${format(high)}`;
  return `${range}${unit}${isCost ? ' more' : ''}`;
}

/** Combines the ends of two estimates, and their middles. */
export function combineEstimates(a: Estimate, b: Estimate, combine: (a: number, b: number) => number): Estimate {
  return { low: combine(a.low, b.low), mid: combine(a.mid, b.mid), high: combine(a.high, b.high) };
}

export function sumEstimates(all: readonly Estimate[]): Estimate {
  return all.reduce((total, estimate) => combineEstimates(total, estimate, (a, b) => a + b), ZERO);
}
