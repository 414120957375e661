import type { TrialTerms } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, timeless, withoutOwnership, withoutQuestions, withoutWindows } from './kind.ts';

/** Withdraws policies from a control group that rotates, so that what they save can be measured. */
export interface TrialPolicy extends PolicyBase, TrialTerms {
  kind: 'trial';
}

/** `kind: trial`: who is control at an instant depends on the unit; see decide/control-group.ts. */
export const trialRule: Rule<TrialPolicy> = {
  ...timeless,
  ...withoutWindows,
  ...withoutQuestions,
  ...withoutOwnership,
  decides: 'nothing',
  directivesAt: (policy, policyIndex) => [{ type: 'trial', policy, policyIndex, terms: policy, groups: [] }],
  // It gives back what policies have changed that select the compute as well.
  guard: () => undefined,
  mayChange: () => [],
};
