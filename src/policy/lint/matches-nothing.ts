import type { LintRule, Remark } from './rule.ts';

/** A policy that selects no compute of the fleet. */
export const matchesNothing: LintRule = function* ({ policies, overlap }) {
  for (const policy of policies) {
    if (overlap.computesOf(policy)?.length !== 0) continue;
    const message = 'selects no compute of the fleet; check its names, or remove the policy';
    yield { code: 'matches-nothing', policy, at: ['select'], message } satisfies Remark;
  }
};
