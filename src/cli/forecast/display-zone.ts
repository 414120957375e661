import { IANAZone } from 'luxon';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { UserError } from '../fail.ts';

/** In which days and hours are shown: `--zone`, else that of the first window of the policies that has one, else UTC. */
export function displayZone(flag: string | undefined, sets: readonly PolicySet[]): string {
  if (flag === undefined)
    return (
      sets
        .flatMap(({ policies }) => policies.flatMap((policy) => ruleOf(policy).times(policy)))
        .map(zoneOf)
        .find(Boolean) ?? 'UTC'
    );
  if (IANAZone.isValidZone(flag)) return flag;
  throw new UserError(`--zone: "${flag}" is not a time zone; write an IANA name such as Europe/Berlin, or UTC`);
}

function zoneOf(spec: TimeSpec): string | undefined {
  return 'zone' in spec ? spec.zone : undefined;
}
