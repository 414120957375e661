import type { Size } from '../compute/compute.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import type { PolicyBase } from './policy-base.ts';

/** A value, or "what the compute had when ebb first saw it". */
export type ProposedValue<T> = T | 'baseline';

/** What one policy proposes at one instant, to every compute that it selects. */
export interface ProposedValues {
  says: 'values';
  policy: PolicyBase;
  /** Place of the policy in its set; a later one wins a tie. */
  policyIndex: number;
  /** What speaks: an open absolute interval, an open recurring window, or the policy's `otherwise`. */
  source: 'absolute' | 'recurring' | 'otherwise';
  /** Place of the window in its policy; −1 for `otherwise`. */
  windowIndex: number;
  /** Times of the window; absent for `otherwise`. */
  at?: readonly TimeSpec[];
  /** When the window opened, milliseconds since the epoch; absent for `otherwise`. */
  openSinceMs?: number;
  /** It opens only at {@link openSinceMs}, and raises are already begun. */
  leads?: true;
  size?: ProposedValue<Size>;
  suspendTimeoutSeconds?: ProposedValue<number>;
}

const SOURCE_RANK = { absolute: 1, recurring: 0, otherwise: 0 } as const;

/**
 * The order of the language, first wins: an open window over any `otherwise`, then the highest priority, then an absolute
 * interval over a recurring window, then the later policy, and within a policy the later window.
 */
export function compareProposals(a: ProposedValues, b: ProposedValues): number {
  return (
    Number(b.source !== 'otherwise') - Number(a.source !== 'otherwise') ||
    b.policy.priority - a.policy.priority ||
    SOURCE_RANK[b.source] - SOURCE_RANK[a.source] ||
    b.policyIndex - a.policyIndex ||
    b.windowIndex - a.windowIndex
  );
}
