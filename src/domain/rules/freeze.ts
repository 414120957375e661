import type { FreezePolicy } from '../policy.ts';
import { anyOpenAt, lastChangeOfAny, nextChangeOfAny } from '../windows.ts';
import type { Rule } from './rule.ts';

/** `kind: freeze`: while a window is open, nothing is written. */
export const freezeRule: Rule<FreezePolicy> = {
  statementsAt(policy, policyIndex, instantMs) {
    if (!anyOpenAt(policy.at, instantMs)) return [];
    const untilMs = nextChangeOfAny(policy.at, instantMs);
    return [{ says: 'freeze', policy, policyIndex, ...(untilMs !== undefined && { untilMs }) }];
  },
  mayChange: () => [],
  nextChangeAfter: (policy, instantMs) => nextChangeOfAny(policy.at, instantMs),
  lastChangeUntil: (policy, instantMs) => lastChangeOfAny(policy.at, instantMs),
};
