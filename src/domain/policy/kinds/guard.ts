import type { GuardTerms } from '../../guards/guard.ts';
import type { WatchTerms } from '../../guards/watch.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, timeless, withoutOwnership, withoutQuestions, withoutWindows } from './kind.ts';

/** Is asked before a lowering that would restart an awake compute, and watches computes after each lowering. */
export interface GuardPolicy extends PolicyBase, GuardTerms, WatchTerms {
  kind: 'guard';
}

/** `kind: guard`: proposes nothing; its verdict holds changes back, see plan/gates/guard.ts. */
export const guardRule: Rule<GuardPolicy> = {
  ...timeless,
  ...withoutWindows,
  ...withoutQuestions,
  ...withoutOwnership,
  decides: 'nothing',
  directivesAt: () => [],
  // A match may name the branch, whose name is read only if it is asked for.
  asksForRoles: ({ match }) => JSON.stringify(match).includes('{branch_name}'),
  guard: () => 'guard',
  mayChange: () => [],
};
