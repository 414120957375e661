/** The sum of these numbers; 0 if there are none. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Rounds to a number of digits, so that JSON, CSV and texts show no floating-point error. */
export function roundTo(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}

export function toHundredths(value: number): number {
  return roundTo(value, 2);
}

/** Rounds all numbers down, then those with the largest remainders up, so that the results sum to the rounded sum. */
export function roundToSum(values: readonly number[], digits: number): number[] {
  const factor = 10 ** digits;
  const down = values.map((value) => Math.floor(value * factor));
  const remainderOf = (index: number) => (values[index] ?? 0) * factor - (down[index] ?? 0);
  const byRemainder = [...values.keys()].sort((a, b) => remainderOf(b) - remainderOf(a));
  const up = new Set(byRemainder.slice(0, Math.round(sum(values) * factor) - sum(down)));
  return down.map((value, index) => (value + (up.has(index) ? 1 : 0)) / factor);
}
