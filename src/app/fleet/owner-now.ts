import type { Compute } from '../../domain/compute/compute.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';
import type { Fleet } from './fleet.ts';

interface OwnerRules {
  policies: CompiledRules['policies'];
  owners: CompiledRules['costs']['owners'];
}

/** Returns the present owner of a compute, for the audit and notifications. The owner may depend on the other computes of the project. */
export function ownerNow(
  fleet: Pick<Fleet, 'cachedProject'>,
  { owners, policies }: OwnerRules,
  compute: Compute,
): string {
  const read = fleet.cachedProject(compute.projectId)?.computes ?? [];
  const others = read.filter(({ computeId }) => computeId !== compute.computeId);
  return ownersOf({ rules: owners, policies, computes: [...others, compute] })(compute);
}

/** Returns a function for the present owner of a compute by the current rules, see {@link ownerNow}. */
export function ownerByCurrentRules({ rules, fleet }: { rules: CurrentRules; fleet: Pick<Fleet, 'cachedProject'> }) {
  const { policies, costs } = rules.current;
  return (compute: Compute) => ownerNow(fleet, { policies, owners: costs.owners }, compute);
}
