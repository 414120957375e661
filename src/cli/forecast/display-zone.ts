import { IANAZone } from 'luxon';
import type { PolicySet } from '../../domain/policy.ts';
import type { TimeSpec } from '../../domain/time-spec.ts';
import { UserError } from '../fail.ts';

/** In which days and hours are shown: `--zone`, else that of the first window of the policies that has one, else UTC. */
export function displayZone(flag: string | undefined, sets: readonly PolicySet[]): string {
  if (flag === undefined)
    return (
      sets
        .flatMap(({ policies }) => policies.flatMap(timesOf))
        .map(zoneOf)
        .find(Boolean) ?? 'UTC'
    );
  if (IANAZone.isValidZone(flag)) return flag;
  throw new UserError(`--zone: "${flag}" is not a time zone; write an IANA name such as Europe/Berlin, or UTC`);
}

function timesOf(policy: PolicySet['policies'][number]): readonly TimeSpec[] {
  if (policy.kind === 'schedule') return policy.windows.flatMap(({ at }) => at);
  return policy.kind === 'restart' || policy.kind === 'freeze' ? policy.at : [];
}

function zoneOf(spec: TimeSpec): string | undefined {
  return 'zone' in spec ? spec.zone : undefined;
}
