/** Finds what at present keeps announced changes from being made. */
import { isoInstant } from '../../domain/time/units.ts';
import { type ControlApi, isKeyInTrouble } from '../../ports/control-api.ts';
import { CONTROL_API, controlApiFor, type OutageDeps } from '../telemetry/outages.ts';

export interface ObstacleDeps extends OutageDeps {
  api: Pick<ControlApi, 'accountStatus'>;
}

/** Returns what stops changes of these computes at present: an outage of the control API, or a key that is refused or missing. */
export function obstacleTo(
  { api, outages }: ObstacleDeps,
  computes: readonly { account: string }[],
): string | undefined {
  const outageOf = (name: string) => {
    const sinceMs = outages.current().has(name) ? outages.sinceMs(name) : undefined;
    return sinceMs === undefined ? undefined : `the ${name} has not been available since ${isoInstant(sinceMs)}`;
  };
  const ofAll = outageOf(CONTROL_API);
  if (ofAll !== undefined) return `${ofAll}: they can't be made until it is available`;
  const accounts = new Set(computes.map(({ account }) => account));
  const found = [...accounts].flatMap((account) => {
    const whose = accounts.size === 1 ? 'they' : 'its changes';
    const outage = outageOf(controlApiFor(account));
    if (outage !== undefined) return `${outage}: ${whose} can't be made until it is available`;
    const status = api.accountStatus().find((one) => one.account === account);
    if (!status || !isKeyInTrouble(status)) return [];
    return `the API key of account ${account} is ${status.keyTrouble?.state}: ${whose} can't be made until it works`;
  });
  return found.length === 0 ? undefined : found.join('; ');
}
