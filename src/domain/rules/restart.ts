import type { RestartPolicy } from '../policy.ts';
import { lastChangeOfAny, nextChangeOfAny, openSince } from '../windows.ts';
import type { Rule } from './rule.ts';

/** `kind: restart`: while a window is open, computes may be restarted. */
export const restartRule: Rule<RestartPolicy> = {
  statementsAt(policy, policyIndex, instantMs) {
    const openSinceMs = openSince(policy.at, instantMs);
    return openSinceMs === undefined ? [] : [{ says: 'restart', policy, policyIndex, openSinceMs }];
  },
  mayChange: () => [],
  nextChangeAfter: (policy, instantMs) => nextChangeOfAny(policy.at, instantMs),
  lastChangeUntil: (policy, instantMs) => lastChangeOfAny(policy.at, instantMs),
};
