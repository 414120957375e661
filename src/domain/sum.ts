/** The sum of these numbers; 0 if there are none. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Rounds to two decimals. */
export function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
