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
