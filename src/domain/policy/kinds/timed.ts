import type { TimeSpec } from '../../time/time-spec.ts';
import { mayChangeAfter, mayHaveChangedUntil } from '../../time/windows.ts';

/** For kinds of policies that say the same whenever one of their times, `at`, is open, and nothing while none is. */
export const timed = {
  times: ({ at }: { at: readonly TimeSpec[] }) => at,
  nextChangeAfter: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayChangeAfter(at, instantMs),
  lastChangeUntil: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayHaveChangedUntil(at, instantMs),
};
