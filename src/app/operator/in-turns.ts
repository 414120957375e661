import { setImmediate as nextTurn } from 'node:timers/promises';

/** Entries of one turn: with the costliest selector these take some 10 ms. */
const PER_TURN = 200;

/** As `filter`, but other work, such as the renewal of leases, gets a turn in between. */
export async function filterInTurns<T>(all: readonly T[], test: (one: T) => boolean): Promise<T[]> {
  const found: T[] = [];
  for (let from = 0; from < all.length; from += PER_TURN) {
    if (from > 0) await nextTurn();
    found.push(...all.slice(from, from + PER_TURN).filter(test));
  }
  return found;
}
