import type { GuardTerms } from '../../guards/guard.ts';
import type { WatchTerms } from '../../guards/watch.ts';
import type { GuardRemedy } from '../../records/compute-record.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, timeless, withoutOwnership, withoutQuestions, withoutWindows } from './kind.ts';

/** Is asked before a lowering that would restart an awake compute, and watches computes after each lowering. */
export interface GuardPolicy extends PolicyBase, GuardTerms, WatchTerms {
  kind: 'guard';
  remedy: GuardRemedy;
  /** A lowering that was taken back is tried again after so long; absent: not before its policy changes. */
  retryMs?: number;
}

/**
 * `kind: guard`: proposes nothing. Its verdict holds changes back, see plan/gates/guard.ts, and what it takes back stays, see
 * decide/stages/floors.ts.
 */
export const guardRule: Rule<GuardPolicy> = {
  ...timeless,
  ...withoutWindows,
  ...withoutQuestions,
  ...withoutOwnership,
  decides: 'nothing',
  directivesAt: (policy, policyIndex) => [
    { type: 'guard', policy, policyIndex, remedy: policy.remedy, retryMs: policy.retryMs ?? Number.POSITIVE_INFINITY },
  ],
  // A match may name the branch, whose name is read only if it is asked for.
  asksForRoles: ({ match }) => JSON.stringify(match).includes('{branch_name}'),
  guard: () => 'guard',
  mayChange: () => [],
};
