import { FIELD_GROUPS, type FieldGroup } from '../../compute/compute.ts';
import type { BudgetTerms } from '../../spend/terms.ts';
import { type PartialDisruption, waitsForQuiet } from '../disruption.ts';
import type { PolicyBase } from '../policy-base.ts';
import { type Rule, supporting, timeless } from './kind.ts';

/** A monthly amount, with steps that notify and limit. */
export interface BudgetPolicy extends PolicyBase, BudgetTerms<PartialDisruption> {
  kind: 'budget';
}

/** `kind: budget`: its active steps depend on the spending; see decide/stages/budget.ts. */
export const budgetRule: Rule<BudgetPolicy> = {
  ...timeless,
  directivesAt: (policy, policyIndex) => [{ type: 'budget', policy, policyIndex, terms: policy }],
  ...supporting,
  decides: 'nothing',
  asksForConnections: ({ steps }) => steps.some(({ disruption = {} }) => waitsForQuiet(disruption)),
  // Limits exempt default and protected branches unless `includeProtected` is set.
  asksForBranches: (policy) => !policy.includeProtected && groupsOf(policy).length > 0,
  protectionNoun: () => undefined,
  mayChange: groupsOf,
};

function groupsOf({ steps }: BudgetPolicy): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => steps.some(({ limits }) => limits?.[group] !== undefined));
}
