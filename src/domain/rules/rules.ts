import type { Policy } from '../policy.ts';
import type { Rule } from './rule.ts';
import { scheduleRule } from './schedule.ts';

/** Every kind of policy and the rule that speaks for it: a new kind is one file and one line here. */
export const RULES: { [K in Policy['kind']]: Rule<Extract<Policy, { kind: K }>> } = {
  schedule: scheduleRule,
};
