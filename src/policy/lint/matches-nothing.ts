import { keysFor } from '../../domain/guards/guard.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';

/** A policy that selects no compute of the fleet, or a guard whose labels match none. */
export const matchesNothing: LintRule = function* (context) {
  for (const policy of context.policies) {
    if (context.overlap.computesOf(policy)?.length === 0) {
      const message = 'selects no compute of the fleet; check its names, or remove the policy';
      yield { code: 'matches-nothing', policy, at: ['select'], message } satisfies Remark;
    } else yield* unmatchedComputes(policy, context);
  }
};

/** Computes of projects that a mapping in `match` does not name: the guard never finds a value for them. */
function* unmatchedComputes(policy: Policy, { overlap }: LintContext): Iterable<Remark> {
  const guard = asKind(policy, 'guard');
  const computes = overlap.computesOf(policy);
  const hasMapping = guard && Object.values(guard.match).some((rule) => typeof rule !== 'string');
  if (!hasMapping || !computes) return;
  const [first, ...more] = computes.filter((compute) => keysFor(guard.match, compute).length === 0);
  if (!first) return;
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  const effect = guard.noData === 'healthy' ? 'always count as healthy' : 'stay unknown';
  const message = `has no value for ${first.projectName} / ${first.computeId}${others}, so they ${effect}; add their projects, or leave them out of select`;
  yield { code: 'matches-nothing', policy, at: ['match'], message };
}
