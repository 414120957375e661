import type { HeadroomPolicy } from '../policy.ts';
import type { Rule } from './rule.ts';
import { timeless } from './timeless.ts';

/** `kind: headroom`: connections that must stay free. What is needed depends on what was counted, not on the time. */
export const headroomRule: Rule<HeadroomPolicy> = {
  ...timeless,
  statementsAt: (policy, policyIndex) => [{ says: 'need', policy, policyIndex }],
  mayChange: () => ['size'],
};
