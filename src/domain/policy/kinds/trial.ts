import type { TrialTerms } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timeless } from './kind.ts';

/** Withdraws policies from a control group that rotates, so that their saving can be measured. */
export interface TrialPolicy extends PolicyBase, TrialTerms {
  kind: 'trial';
}

/** `kind: trial`: the control group at an instant depends on the unit; see decide/control-group.ts. */
export const trialRule: Rule<TrialPolicy> = {
  ...timeless,
  ...supporting,
  decides: 'nothing',
  directivesAt: (policy, policyIndex) => [{ type: 'trial', policy, policyIndex, terms: policy, groups: [] }],
  // A trial changes no field itself; it withdraws changes of other policies.
  protectionNoun: () => undefined,
  mayChange: () => [],
};
