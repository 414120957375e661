import { computeOwners } from '../../domain/policy/owners.ts';
import type { CurrentRules } from '../rules.ts';
import type { Fleet } from './fleet.ts';

export interface OwnedDeps {
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  rules: CurrentRules;
}

/** The known computes, and whose they are. */
export function ownedComputes({ fleet, rules }: OwnedDeps) {
  const { policies, costs } = rules.current;
  const computes = [...fleet.evaluatedComputes()].map(({ compute }) => compute);
  return { computes, ownerOf: computeOwners({ rules: costs.owners, policies, computes }) };
}

/**
 * The owners of the computes of an account. If none is known, as in trouble that has lasted since the start, all that receivers name: it may
 * concern each of them.
 */
export function ownersInAccounts(deps: OwnedDeps, isConcerned: (account: string) => boolean): readonly string[] {
  const { computes, ownerOf } = ownedComputes(deps);
  const owners = new Set(computes.filter(({ account }) => isConcerned(account)).map(ownerOf));
  return owners.size > 0
    ? [...owners]
    : deps.rules.current.notify.receivers.flatMap((receiver) => receiver.owners ?? []);
}
