import type { Size } from './compute.ts';
import type { SchedulePolicy } from './policy.ts';

/** A value, or "what the compute had when ebb first saw it". */
export type Wish<T> = T | 'baseline';

/** What one schedule says at one instant, to every compute that it selects. */
export interface Opinion {
  says: 'values';
  policy: SchedulePolicy;
  /** Place of the policy in its set; a later one wins a tie. */
  policyIndex: number;
  /** What speaks: an open absolute interval, an open recurring window, or the policy's `otherwise`. */
  source: 'absolute' | 'recurring' | 'otherwise';
  /** Place of the window in its policy; −1 for `otherwise`. */
  windowIndex: number;
  /** When the window opened, milliseconds since the epoch; absent for `otherwise`. */
  openSinceMs?: number;
  /** It opens only at {@link openSinceMs}, and raises are already begun. */
  leads?: true;
  size?: Wish<Size>;
  suspendTimeoutSeconds?: Wish<number>;
}

const SOURCE_RANK = { absolute: 1, recurring: 0, otherwise: 0 } as const;

/**
 * The order of the language, first wins: an open window over any `otherwise`, then the highest priority, then an absolute
 * interval over a recurring window, then the later policy, and within a policy the later window.
 */
export function compareOpinions(a: Opinion, b: Opinion): number {
  return (
    Number(b.source !== 'otherwise') - Number(a.source !== 'otherwise') ||
    b.policy.priority - a.policy.priority ||
    SOURCE_RANK[b.source] - SOURCE_RANK[a.source] ||
    b.policyIndex - a.policyIndex ||
    b.windowIndex - a.windowIndex
  );
}
