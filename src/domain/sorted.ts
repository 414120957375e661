/** Compares for an ascending sort: texts by their code units, independent of the locale; two infinities are equal. */
export function ascending<T extends string | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The index of the first value in `sorted`, which ascends, that is at least `from`; its length if there is none. */
export function lowerBound<T extends string | number>(sorted: readonly T[], from: T): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as T) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
