import type { TimeSpec } from '../../time/time-spec.ts';
import { anyOpenAt, nextChangeOfAny } from '../../time/windows.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timed } from './kind.ts';

/** Stops writes while a window is open, except raises if `allowRaise` is set. */
export interface FreezePolicy extends PolicyBase {
  kind: 'freeze';
  at: readonly TimeSpec[];
  allowRaise: boolean;
}

/** `kind: freeze`: stops writes while a window is open. */
export const freezeRule: Rule<FreezePolicy> = {
  ...timed,
  stopsWrites: true,
  directivesAt(policy, policyIndex, instantMs) {
    if (!anyOpenAt(policy.at, instantMs)) return [];
    const untilMs = nextChangeOfAny(policy.at, instantMs);
    const { allowRaise } = policy;
    return [{ type: 'freeze', policy, policyIndex, allowRaise, ...(untilMs !== undefined && { untilMs }) }];
  },
  ...supporting,
  decides: 'nothing',
  protectionNoun: () => 'freeze',
  mayChange: () => [],
};
