import { NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { LimitsPolicy } from '../../domain/policy/kinds/limits.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { FIELDS, type Field } from './schedules.ts';

interface Bounds {
  min: number;
  max: number;
}

/** Limits that leave nothing where they meet: the later one wins then. An error if a compute is known to be under both. */
export const disjointLimits: LintRule = function* (context) {
  const limits = policiesOfKind(context.policies, 'limits');
  for (const field of FIELDS) {
    const bounded = limits.map((policy) => ({ policy, bounds: boundsOf(policy, field) }));
    for (const [index, later] of bounded.entries()) {
      const earlier = bounded
        .slice(0, index)
        .find(
          ({ policy, bounds }) =>
            (bounds.max < later.bounds.min || later.bounds.max < bounds.min) &&
            context.overlap.mayMeet(later.policy, policy),
        );
      if (earlier) yield remark(later.policy, earlier.policy, field, context);
    }
  }
};

function remark(later: LimitsPolicy, earlier: LimitsPolicy, field: Field, context: LintContext): Remark {
  const compute = context.overlap.shared(later, earlier)?.computeId;
  const where = compute === undefined ? 'a compute under both' : compute;
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

function boundsOf(policy: LimitsPolicy, field: Field): Bounds {
  if (field === 'size') {
    return { min: policy.size?.minCu ?? 0, max: policy.size?.maxCu ?? Number.POSITIVE_INFINITY };
  }
  const { minSeconds, maxSeconds } = policy.suspendTimeout ?? {};
  return { min: length(minSeconds ?? 0), max: length(maxSeconds ?? NEVER_SUSPENDS) };
}

function length(seconds: number): number {
  return seconds === NEVER_SUSPENDS ? Number.POSITIVE_INFINITY : seconds;
}

function show(policy: LimitsPolicy, field: Field): string {
  const { min, max } = boundsOf(policy, field);
  const text = (value: number) => {
    if (field === 'size') return `${value}`;
    return formatSuspendTimeout(Number.isFinite(value) ? value : NEVER_SUSPENDS);
  };
  if (min === 0) return `up to ${text(max)}`;
  return Number.isFinite(max) ? `${text(min)}-${text(max)}` : `from ${text(min)}`;
}
