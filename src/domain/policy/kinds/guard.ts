import type { GuardTerms } from '../../guards/guard.ts';
import type { WatchTerms } from '../../guards/watch.ts';
import type { GuardRemedy } from '../../records/compute-record.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timeless } from './kind.ts';

/** Must be healthy before a lowering that restarts an awake compute, and watches computes after each lowering. */
export interface GuardPolicy extends PolicyBase, GuardTerms, WatchTerms {
  kind: 'guard';
  remedy: GuardRemedy;
  /** The time after which a lowering that was undone is tried again. Absent: not before the lowering policy changes. */
  retryMs?: number;
}

/**
 * `kind: guard`: proposes nothing. Its verdict delays changes, see plan/gates/guard.ts; lowerings that it has undone stay undone, see
 * decide/stages/floors.ts.
 */
export const guardRule: Rule<GuardPolicy> = {
  ...timeless,
  ...supporting,
  decides: 'nothing',
  directivesAt: (policy, policyIndex) => [
    { type: 'guard', policy, policyIndex, remedy: policy.remedy, retryMs: policy.retryMs ?? Number.POSITIVE_INFINITY },
  ],
  asksForBranches: ({ match }) => JSON.stringify(match).includes('{branch_name}'),
  protectionNoun: () => 'guard',
  mayChange: () => [],
};
