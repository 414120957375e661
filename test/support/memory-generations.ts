import { isAsNew, stays } from '../../src/adapters/store/postgres.ts';
import type { Generation, Store } from '../../src/ports/store.ts';

/** Generations as a store has them, in memory; a test may set the current one, as if an older copy of the store had been put in its place. */
export function createMemoryGenerations(
  now: () => number,
  held: { current?: Generation | undefined } = {},
): Pick<Store, 'raiseGeneration' | 'restoreGeneration' | 'generation'> {
  return {
    async raiseGeneration(own, onlyReplacing) {
      const last = held.current;
      if (last && stays(last, own, onlyReplacing)) return last;
      held.current = { number: Math.max(now(), (last?.number ?? 0) + 1), ...own };
      return held.current;
    },
    async restoreGeneration(known) {
      if (!held.current || !isAsNew(held.current, known)) held.current = known;
      return held.current;
    },
    generation: async () => held.current,
  };
}
