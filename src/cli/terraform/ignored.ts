import { type Compute, FIELD_GROUPS, type FieldGroup } from '../../domain/compute/compute.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';

/** A compute of which policies may change something, at any time. */
export interface Ignored {
  compute: Compute;
  /** The policies that may change it, in the order of the language; also those that write nothing as long as they only observe. */
  policies: readonly Policy[];
  /** Attributes of the provider's resource for a compute, never none. */
  attributes: readonly string[];
}

/** Names of the provider kislerdm/neon. A size is written as a whole, so both of its ends change. */
const ATTRIBUTES: Record<FieldGroup, readonly string[]> = {
  size: ['autoscaling_limit_min_cu', 'autoscaling_limit_max_cu'],
  suspend_timeout: ['suspend_timeout_seconds'],
};

/**
 * Of each compute what policies may change, however young it is. A compute that none selects, or only policies that restart
 * or freeze, is left out.
 */
export function ignoredOf(computes: readonly Compute[], { set, selecting }: CompiledPolicies): Ignored[] {
  const groupsOf = new Map(set.policies.map((policy) => [policy, ruleOf(policy).mayChange(policy)]));
  const mayChange = (policy: Policy) => groupsOf.get(policy) ?? [];
  return computes.flatMap((compute) => {
    const places = new Set(selecting(compute));
    const policies = set.policies.filter((policy, place) => places.has(place) && mayChange(policy).length > 0);
    const changed = new Set(policies.flatMap(mayChange));
    const attributes = FIELD_GROUPS.filter((group) => changed.has(group)).flatMap((group) => ATTRIBUTES[group]);
    return attributes.length > 0 ? [{ compute, policies, attributes }] : [];
  });
}

/** What `ebb terraform --json` prints. */
export function ignoredJson(all: readonly Ignored[]) {
  return all.map(({ compute, policies, attributes }) => ({
    project_id: compute.projectId,
    compute_id: compute.computeId,
    branch: compute.branchName ?? compute.branchId,
    policies: policies.map(({ name }) => name),
    ignore_changes: attributes,
  }));
}
