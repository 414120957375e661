import { FIELD_GROUPS } from '../field-groups.ts';
import type { LimitsPolicy } from '../policy.ts';
import { rangeOf } from '../stages/limits.ts';
import type { Rule } from './rule.ts';
import { timeless } from './timeless.ts';

/** `kind: limits`: bounds of what schedules want. */
export const limitsRule: Rule<LimitsPolicy> = {
  ...timeless,
  statementsAt: (policy, policyIndex) => [{ says: 'bounds', policy, policyIndex }],
  mayChange: (policy) => FIELD_GROUPS.filter((group) => rangeOf(group, policy) !== undefined),
};
