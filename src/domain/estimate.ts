export interface Range {
  low: number;
  high: number;
}

/** A value that is expected, with the ends of its interval. */
export interface Estimate extends Range {
  mid: number;
}

export const ZERO: Estimate = { low: 0, mid: 0, high: 0 };

export function mapEstimate({ low, mid, high }: Estimate, change: (value: number) => number): Estimate {
  return { low: change(low), mid: change(mid), high: change(high) };
}

export function mapRange({ low, high }: Range, change: (value: number) => number): Range {
  return { low: change(low), high: change(high) };
}

/** Combines the ends of two estimates, and their middles. */
export function combineEstimates(one: Estimate, two: Estimate, combine: (a: number, b: number) => number): Estimate {
  return { low: combine(one.low, two.low), mid: combine(one.mid, two.mid), high: combine(one.high, two.high) };
}
