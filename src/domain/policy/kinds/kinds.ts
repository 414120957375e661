import type { PolicyBase } from '../policy-base.ts';
import { budgetRule } from './budget.ts';
import { freezeRule } from './freeze.ts';
import { guardRule } from './guard.ts';
import { headroomRule } from './headroom.ts';
import type { Rule } from './kind.ts';
import { limitsRule } from './limits.ts';
import { restartRule } from './restart.ts';
import { scheduleRule } from './schedule.ts';
import { trialRule } from './trial.ts';

/** The behaviour of each policy kind. A new kind is a file here and an entry in this table, and the same in src/policy/kinds for its YAML. */
const RULES = registered({
  schedule: scheduleRule,
  headroom: headroomRule,
  limits: limitsRule,
  restart: restartRule,
  freeze: freezeRule,
  trial: trialRule,
  budget: budgetRule,
  guard: guardRule,
});

export type PolicyKind = keyof typeof RULES;

export type PolicyOf<K extends PolicyKind> = { [J in K]: (typeof RULES)[J] extends Rule<infer P> ? P : never }[K];

/** The behaviour of a policy's kind. */
export function ruleOf<P extends PolicyOf<PolicyKind>>(policy: P): Rule<P> {
  return RULES[policy.kind] as unknown as Rule<P>;
}

/** Returns the policy if it is of this kind. Only for modules about that kind; all others use {@link ruleOf}. */
export function asKind<K extends PolicyKind>(
  policy: PolicyOf<PolicyKind> | undefined,
  kind: K,
): Extract<PolicyOf<PolicyKind>, { kind: K }> | undefined {
  return policy?.kind === kind ? (policy as Extract<PolicyOf<PolicyKind>, { kind: K }>) : undefined;
}

/** The policies of a kind; see {@link asKind}. */
export function policiesOfKind<K extends PolicyKind>(
  policies: readonly PolicyOf<PolicyKind>[],
  kind: K,
): Extract<PolicyOf<PolicyKind>, { kind: K }>[] {
  return policies.flatMap((policy) => asKind(policy, kind) ?? []);
}

/** Checks at compile time that each rule is registered under the kind of its own policies. */
function registered<Rules extends { [K in keyof Rules]: Rule<PolicyBase & { kind: K }> }>(rules: Rules): Rules {
  return rules;
}
