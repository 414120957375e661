import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { UserError } from '../fail.ts';

/** The guard with this name. Throws a UserError that lists the guards if there is none. */
export function guardNamed({ policies }: PolicySet, name: string): GuardPolicy {
  const guards = policiesOfKind(policies, 'guard');
  const guard = guards.find((one) => one.name === name);
  const names = guards.map((one) => one.name).join(', ');
  if (!guard) throw new UserError(`no guard is called ${name}; ${names ? `there are ${names}` : 'there is none'}`);
  return guard;
}
