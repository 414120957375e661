/** For kinds of policies that say the same at all times, and set values. */
export const timeless = {
  stopsWrites: false,
  times: () => [],
  nextChangeAfter: () => undefined,
  lastChangeUntil: () => Number.NEGATIVE_INFINITY,
};
