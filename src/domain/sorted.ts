/** Compares for an ascending sort: texts by their code units, independent of the locale; two infinities are equal. */
export function ascending<T extends string | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The index of the first value of an ascending list that is at least `from`; the length of the list if there is none. */
export function lowerBound<T extends string | number>(sorted: readonly T[], from: T): number {
  return firstIndex(sorted.length, (index) => (sorted[index] as T) >= from);
}

/** The value below which a share of the values lies, in any order; undefined without values. 0.5 is the (upper) median. */
export function quantile(values: readonly number[], share: number): number | undefined {
  return new Float64Array(values).sort()[Math.min(values.length - 1, Math.floor(values.length * share))];
}

/** The first index below `length` from which on a condition is true; `length` if there is none. */
export function firstIndex(length: number, isTrue: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isTrue(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
