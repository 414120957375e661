import type { Budget } from './budget.ts';
import { earliest } from './instants.ts';

/** When windows are open, within the time that lint looks at. */
export interface Openings {
  isOpenAt(instantMs: number): boolean;
  /** The first start strictly after an instant; undefined if there is none in that time. */
  nextStartAfter(instantMs: number): number | undefined;
  /** The first start or end strictly after an instant; undefined if there is none in that time. */
  nextChangeAfter(instantMs: number): number | undefined;
}

export const ALWAYS_OPEN: Openings = {
  isOpenAt: () => true,
  nextStartAfter: () => undefined,
  nextChangeAfter: () => undefined,
};

/** Of windows whose openings are known already, so many can be asked for one step. */
const WINDOWS_PER_STEP = 100;

/** Open while any of the parts is. Where one ends and another begins nothing changes. */
export function unionOf(parts: readonly Openings[], { endMs }: { endMs: number }, budget: Budget): Openings {
  const isOpenAt = (instantMs: number) => parts.some((part) => part.isOpenAt(instantMs));
  const firstStart = (instantMs: number) => earliest(parts.map((part) => part.nextStartAfter(instantMs)));

  /** The end of what is open at an instant, from one part to the next; undefined if it is not within the period. */
  function endOf(instantMs: number): number | undefined {
    let atMs = instantMs;
    while (budget.spend(parts.length / WINDOWS_PER_STEP)) {
      const ends = parts.filter((part) => part.isOpenAt(atMs)).map((part) => part.nextChangeAfter(atMs) ?? endMs);
      if (ends.length === 0) return atMs;
      atMs = Math.max(...ends);
      if (atMs >= endMs) return undefined;
    }
    return undefined;
  }

  return {
    isOpenAt,
    nextStartAfter(instantMs) {
      const closedMs = isOpenAt(instantMs) ? endOf(instantMs) : instantMs;
      return closedMs === undefined ? undefined : firstStart(closedMs);
    },
    nextChangeAfter: (instantMs) => (isOpenAt(instantMs) ? endOf(instantMs) : firstStart(instantMs)),
  };
}
