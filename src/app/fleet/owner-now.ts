import type { Compute } from '../../domain/compute/compute.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';
import type { Fleet } from './fleet.ts';

interface OwnedBy {
  policies: CompiledRules['policies'];
  owners: CompiledRules['costs']['owners'];
}

/** The present owner of a compute, known together with the others of its project; for the audit and for notifications. */
export function ownerNow(fleet: Pick<Fleet, 'cachedProject'>, { owners, policies }: OwnedBy, compute: Compute): string {
  const read = fleet.cachedProject(compute.projectId)?.computes ?? [];
  const others = read.filter(({ computeId }) => computeId !== compute.computeId);
  return ownersOf({ rules: owners, policies, computes: [...others, compute] })(compute);
}

/** The same by the rules that are current. */
export function ownersNow({
  rules,
  fleet,
}: {
  rules: CurrentRules;
  fleet: Pick<Fleet, 'cachedProject'>;
}): (compute: Compute) => string {
  const { policies, costs } = rules.current;
  return (compute) => ownerNow(fleet, { policies, owners: costs.owners }, compute);
}
