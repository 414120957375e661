import { FIELD_GROUPS, type FieldGroup, timeoutLength } from '../../compute/compute.ts';
import type { Range } from '../../estimate.ts';
import type { Ranges } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, timeless, withoutQuestions, withoutWindows } from './kind.ts';

/** Bounds of sizes and timeouts; absent ones do not restrict. */
export interface LimitBounds {
  size?: { minCu?: number; maxCu?: number };
  /** Canonical timeouts; −1, never, is the longest. */
  suspendTimeout?: { minSeconds?: number; maxSeconds?: number };
}

/** Clamps sizes and timeouts. */
export interface LimitsPolicy extends PolicyBase, LimitBounds {
  kind: 'limits';
  /** True for limits that take precedence over headroom and manual changes. */
  hard: boolean;
}

/** `kind: limits`: bounds for sizes and timeouts. */
export const limitsRule: Rule<LimitsPolicy> = {
  ...timeless,
  directivesAt(policy, policyIndex) {
    return [{ type: 'bounds', policy, policyIndex, hard: policy.hard, ranges: rangesOf(policy) }];
  },
  ...withoutWindows,
  ...withoutQuestions,
  decides: 'bounds',
  owns: true,
  notWithdrawable: ({ name, hard }) =>
    hard ? `"${name}" is a hard limit, which always holds; leave it out` : undefined,
  overridesHolds: ({ hard }) => hard,
  protectionNoun: ({ hard }) => (hard ? 'hard limit' : undefined),
  mayChange: (policy) => FIELD_GROUPS.filter((group) => rangeOf(group, policy) !== undefined),
};

/** The bounds as numeric ranges, for the bounded groups only. */
export function rangesOf(bounds: LimitBounds): Ranges {
  const size = rangeOf('size', bounds);
  const timeout = rangeOf('suspend_timeout', bounds);
  return { ...(size && { size }), ...(timeout && { suspend_timeout: timeout }) };
}

function rangeOf(group: FieldGroup, { size, suspendTimeout }: LimitBounds): Range | undefined {
  if (group === 'size') return size && { low: size.minCu ?? 0, high: size.maxCu ?? Number.POSITIVE_INFINITY };
  if (suspendTimeout === undefined) return undefined;
  const { minSeconds = 0, maxSeconds } = suspendTimeout;
  const high = maxSeconds === undefined ? Number.POSITIVE_INFINITY : timeoutLength(maxSeconds);
  return { low: timeoutLength(minSeconds), high };
}
