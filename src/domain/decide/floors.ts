/** Which floors hold. They follow from what guards found, not from policies; instants are milliseconds since the epoch. */

import { FIELD_GROUPS } from '../compute/compute.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { asKind } from '../policy/kinds/kinds.ts';
import { termsDigest } from '../policy/policy-set.ts';
import type { Floor, Floors } from '../records/compute-record.ts';

/** The floors whose lowering still has the same policy. */
export function validFloors({ set }: CompiledPolicies, floors: Floors | undefined): Floors | undefined {
  if (!floors) return undefined;
  const isValid = ({ policy: name, terms }: Floor) =>
    set.policies.some((policy) => policy.name === name && termsDigest(policy) === terms);
  return Object.fromEntries(Object.entries(floors).filter(([, floor]) => isValid(floor)));
}

/** The instants at which floors begin or end. */
export function floorInstants({ set }: CompiledPolicies, floors: Floors | undefined): number[] {
  return FIELD_GROUPS.flatMap((group) => {
    const floor = floors?.[group];
    if (!floor) return [];
    const guard = asKind(
      set.policies.find(({ name }) => name === floor.guard),
      'guard',
    );
    return [floor.sinceMs, ...(guard?.retryMs === undefined ? [] : [floor.sinceMs + guard.retryMs])];
  });
}
