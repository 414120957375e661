import { timeoutOfLength } from '../../domain/compute/compute.ts';
import { formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { Range } from '../../domain/estimate.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { type LimitsPolicy, rangesOf } from '../../domain/policy/kinds/limits.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { FIELDS, type Field } from './schedules.ts';

/** Finds limits of the same compute without a common value: the later policy wins. An error if the fleet has such a compute. */
export const disjointLimits: LintRule = function* (context) {
  const limits = policiesOfKind(context.policies, 'limits');
  for (const field of FIELDS) {
    const bounded = limits.map((policy) => ({ policy, bounds: boundsOf(policy, field) }));
    for (const [index, later] of bounded.entries()) {
      const earlier = bounded
        .slice(0, index)
        .find(
          ({ policy, bounds }) =>
            (bounds.high < later.bounds.low || later.bounds.high < bounds.low) &&
            context.overlap.mayMeet(later.policy, policy),
        );
      if (earlier) yield remark(later.policy, earlier.policy, field, context);
    }
  }
};

function remark(later: LimitsPolicy, earlier: LimitsPolicy, field: Field, context: LintContext): Remark {
  const compute = context.overlap.shared(later, earlier)?.computeId;
  const where = compute ?? 'a compute under both';
  return {
    code: 'disjoint-limits',
    policy: later,
    at: [field],
    severity: compute === undefined ? 'warning' : 'error',
    message: [
      `${field} ${show(later, field)} and ${show(earlier, field)} of ${nameOf(context, earlier)} leave nothing for ${where}`,
      '; let them meet, or keep their computes apart',
    ].join(''),
  };
}

function boundsOf(policy: LimitsPolicy, field: Field): Range {
  const { size, suspend_timeout: timeout } = rangesOf(policy);
  return (field === 'size' ? size : timeout) ?? { low: 0, high: Number.POSITIVE_INFINITY };
}

function show(policy: LimitsPolicy, field: Field): string {
  const { low, high } = boundsOf(policy, field);
  const text = (value: number) => (field === 'size' ? `${value}` : formatSuspendTimeout(timeoutOfLength(value)));
  if (low === 0) return `up to ${text(high)}`;
  return Number.isFinite(high) ? `${text(low)}-${text(high)}` : `from ${text(low)}`;
}
