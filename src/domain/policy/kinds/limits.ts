import { FIELD_GROUPS, type FieldGroup, timeoutLength } from '../../compute/compute.ts';
import type { Range } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, timeless } from './kind.ts';

/** Clamps what schedules want. Absent bounds do not bound. */
export interface LimitsPolicy extends PolicyBase {
  kind: 'limits';
  size?: { minCu?: number; maxCu?: number };
  /** Canonical seconds; −1, never, is longer than any other. */
  suspendTimeout?: { minSeconds?: number; maxSeconds?: number };
  /** Wins over headroom and over what a person set. */
  hard: boolean;
}

/** `kind: limits`: bounds of what schedules want. */
export const limitsRule: Rule<LimitsPolicy> = {
  ...timeless,
  directivesAt(policy, policyIndex) {
    const [size, timeout] = [rangeOf('size', policy), rangeOf('suspend_timeout', policy)];
    const ranges = { ...(size && { size }), ...(timeout && { suspend_timeout: timeout }) };
    return [{ type: 'bounds', policy, policyIndex, hard: policy.hard, ranges }];
  },
  need: () => undefined,
  guard: ({ hard }) => (hard ? 'hard limit' : undefined),
  mayChange: (policy) => FIELD_GROUPS.filter((group) => rangeOf(group, policy) !== undefined),
};

/** The bounds that a policy sets to a group; undefined if it sets none. */
function rangeOf(group: FieldGroup, { size, suspendTimeout }: LimitsPolicy): Range | undefined {
  if (group === 'size') return size && { low: size.minCu ?? 0, high: size.maxCu ?? Number.POSITIVE_INFINITY };
  if (suspendTimeout === undefined) return undefined;
  const { minSeconds = 0, maxSeconds } = suspendTimeout;
  const high = maxSeconds === undefined ? Number.POSITIVE_INFINITY : timeoutLength(maxSeconds);
  return { low: timeoutLength(minSeconds), high };
}
