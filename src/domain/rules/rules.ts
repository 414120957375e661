import type { Policy } from '../policy.ts';
import { freezeRule } from './freeze.ts';
import { headroomRule } from './headroom.ts';
import { limitsRule } from './limits.ts';
import { restartRule } from './restart.ts';
import type { Rule } from './rule.ts';
import { scheduleRule } from './schedule.ts';

/** Every kind of policy and the rule that speaks for it: a new kind is one file and one line here. */
const RULES: { [K in Policy['kind']]: Rule<Extract<Policy, { kind: K }>> } = {
  schedule: scheduleRule,
  limits: limitsRule,
  headroom: headroomRule,
  restart: restartRule,
  freeze: freezeRule,
};

/** The rule that speaks for a policy. */
export function ruleOf<P extends Policy>(policy: P): Rule<P> {
  return RULES[policy.kind] as unknown as Rule<P>;
}
