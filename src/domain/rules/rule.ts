import type { Opinion } from '../opinion.ts';
import type { Policy } from '../policy.ts';

/** What a kind of policy must answer. One file in this folder for each kind. */
export interface Rule<P extends Policy> {
  /** What the policy says at an instant (milliseconds since the epoch), in any order. */
  opinionsAt(policy: P, policyIndex: number, instantMs: number): Opinion[];
  /** The next instant strictly after at which {@link opinionsAt} may say something else; undefined if never. */
  nextChangeAfter(policy: P, instantMs: number): number | undefined;
}
