import { MINUTE_MS } from '../../domain/time/units.ts';
import type { LintRule, Remark } from './rule.ts';

/** The default of `min_age`; at this age, temporary computes of CI are usually gone. */
const DEFAULT_MIN_AGE_MS = 30 * MINUTE_MS;

/** `newly_discovered: act` with a `min_age` that excludes new computes. */
export const actBeforeMinAge: LintRule = function* ({ policies }) {
  for (const policy of policies) {
    if (policy.disruption?.newlyDiscovered !== 'act' || policy.select.minAgeMs < DEFAULT_MIN_AGE_MS) continue;
    const minutes = Math.round(policy.select.minAgeMs / MINUTE_MS);
    const message = [
      `newly_discovered: act has no effect on new computes: they are not selected before they are ${minutes} minutes old`,
      '; write min_age: 0s in its selector',
    ].join('');
    yield { code: 'act-before-min-age', policy, at: ['disruption'], message } satisfies Remark;
  }
};
