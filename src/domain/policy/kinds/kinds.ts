import type { PolicyBase } from '../policy-base.ts';
import { budgetRule } from './budget.ts';
import { freezeRule } from './freeze.ts';
import { headroomRule } from './headroom.ts';
import type { Rule } from './kind.ts';
import { limitsRule } from './limits.ts';
import { restartRule } from './restart.ts';
import { scheduleRule } from './schedule.ts';
import { trialRule } from './trial.ts';

/**
 * Every kind of policy and the rule that speaks for it: a new kind is one file and one line here. The other half of a kind, its text,
 * is in src/policy/kinds; without it, this does not compile.
 */
const RULES = registered({
  schedule: scheduleRule,
  headroom: headroomRule,
  limits: limitsRule,
  restart: restartRule,
  freeze: freezeRule,
  trial: trialRule,
  budget: budgetRule,
});

/** The kinds of policies. Everything else that differs by kind is keyed by this union. */
export type PolicyKind = keyof typeof RULES;

/** The policy of a kind. */
export type PolicyOf<K extends PolicyKind> = { [One in K]: (typeof RULES)[One] extends Rule<infer P> ? P : never }[K];

/** The rule that speaks for a policy. */
export function ruleOf<P extends PolicyOf<PolicyKind>>(policy: P): Rule<P> {
  return RULES[policy.kind] as unknown as Rule<P>;
}

/** The policy if it is of a kind; for modules that are about that kind alone. All others ask its rule. */
export function asKind<K extends PolicyKind>(
  policy: PolicyOf<PolicyKind> | undefined,
  kind: K,
): Extract<PolicyOf<PolicyKind>, { kind: K }> | undefined {
  return policy?.kind === kind ? (policy as Extract<PolicyOf<PolicyKind>, { kind: K }>) : undefined;
}

/** The policies of a kind, as {@link asKind}. */
export function policiesOfKind<K extends PolicyKind>(
  policies: readonly PolicyOf<PolicyKind>[],
  kind: K,
): Extract<PolicyOf<PolicyKind>, { kind: K }>[] {
  return policies.flatMap((policy) => asKind(policy, kind) ?? []);
}

/** Each rule is registered under the kind of its own policies. */
function registered<Rules extends { [K in keyof Rules]: Rule<PolicyBase & { kind: K }> }>(rules: Rules): Rules {
  return rules;
}
