import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { LintRule, Remark } from './rule.ts';

/** Finds a `critical` below `target`: every raise then disconnects at once, and `target` has no effect. */
export const criticalBelowTarget: LintRule = function* ({ policies }) {
  for (const policy of policiesOfKind(policies, 'headroom')) {
    const { criticalShare, targetShare } = policy;
    if (criticalShare === undefined || criticalShare >= targetShare) continue;
    const [critical, target] = [criticalShare, targetShare].map((share) => `${Math.round(share * 100)}%`);
    const message = [
      `critical ${critical} is below target ${target}, so no raise ever waits for a good moment`,
      '; write a critical above the target, such as 90%',
    ].join('');
    yield { code: 'critical-below-target', policy, at: ['critical'], message } satisfies Remark;
  }
};
