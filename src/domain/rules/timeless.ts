/** For kinds of policies that say the same at all times. */
export const timeless = {
  nextChangeAfter: () => undefined,
  lastChangeUntil: () => Number.NEGATIVE_INFINITY,
};
