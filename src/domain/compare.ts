/** Ascending, for sorting: texts by their code units, whatever the locale; two infinities are equal. */
export function ascending<T extends string | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
