import type { LintRule, Remark } from './rule.ts';
import { isKind } from './schedules.ts';
import { placeInSource } from './sources.ts';

/** A query that gives every compute the same count, or that of its whole project or branch. */
export const queryWithoutCompute: LintRule = function* (context) {
  const told = new Set<string>();
  for (const policy of context.policies.filter(isKind('headroom'))) {
    const source = context.sources.get(policy.connections);
    if (source?.from !== 'prometheus' || source.query.includes('$compute') || told.has(source.name)) continue;
    told.add(source.name);
    const scope = ['$branch', '$project'].find((name) => source.query.includes(name));
    const counted = scope
      ? `counts all computes of a ${scope.slice(1)} together`
      : 'gives every compute the same count';
    const message = `the query of "${source.name}" names no $compute, so it ${counted}; write for example {endpoint_id="$compute"}`;
    yield {
      code: 'query-without-compute',
      policy,
      ...placeInSource(policy, 'query', context),
      message,
    } satisfies Remark;
  }
};
