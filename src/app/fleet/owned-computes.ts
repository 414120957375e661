import { computeOwners } from '../../domain/policy/owners.ts';
import type { CurrentRules } from '../rules.ts';
import type { Fleet } from './fleet.ts';

export interface OwnedDeps {
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  rules: CurrentRules;
}

/** Returns all evaluated computes, and a function that returns the owner of one of them. */
export function ownedComputes({ fleet, rules }: OwnedDeps) {
  const { policies, costs } = rules.current;
  const computes = [...fleet.evaluatedComputes()].map(({ compute }) => compute);
  return { computes, ownerOf: computeOwners({ rules: costs.owners, policies, computes }) };
}

/**
 * Returns the owners of the computes in these accounts. If no such compute is known yet, as in an outage since the start, returns all owners
 * that receivers name.
 */
export function ownersInAccounts(deps: OwnedDeps, isConcerned: (account: string) => boolean): readonly string[] {
  const { computes, ownerOf } = ownedComputes(deps);
  const owners = new Set(computes.filter(({ account }) => isConcerned(account)).map(ownerOf));
  return owners.size > 0
    ? [...owners]
    : deps.rules.current.notify.receivers.flatMap((receiver) => receiver.owners ?? []);
}
