import type { ConnectionNeed } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timeless } from './kind.ts';

/** Raises the maximum, and the minimum if `mayRaiseMin` is set, so that connections stay free. */
export interface HeadroomPolicy extends PolicyBase, ConnectionNeed {
  kind: 'headroom';
}

/** `kind: headroom`: keeps connections free. The wanted size depends on counts, not on the time. */
export const headroomRule: Rule<HeadroomPolicy> = {
  ...timeless,
  directivesAt: (policy, policyIndex) => [{ type: 'need', policy, policyIndex, need: policy }],
  ...supporting,
  decides: 'bounds',
  need: (policy) => policy,
  protectionNoun: () => undefined,
  mayChange: () => ['size'],
};
