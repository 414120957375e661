/** The earliest of some instants, of which any may be unknown. */
export function earliest(instants: readonly (number | undefined)[]): number | undefined {
  let first: number | undefined;
  for (const ms of instants) if (ms !== undefined && (first === undefined || ms < first)) first = ms;
  return first;
}
