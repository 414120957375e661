import type { Clock } from '../../ports/clock.ts';
import type { AccountStatus, ControlApi } from '../../ports/control-api.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { TriggerDeps } from '../triggers.ts';
import { readProjectList } from './cached-projects.ts';
import type { Fleet } from './fleet.ts';

/** Interval between checks, in real milliseconds. Under a refused key the client sends few of the requests. */
const CHECK_EVERY_MS = 5_000;

interface KeyCheckDeps extends TriggerDeps {
  api: ControlApi;
  fleet: Fleet;
  clock: Clock;
  runInBackground: RunInBackground;
}

/**
 * Lists the projects of accounts whose key is refused or missing: a new key is noticed at once, also where nothing else is to be asked. Once a
 * key works, the inventory runs.
 */
export function startKeyChecks(deps: KeyCheckDeps): Running {
  const { clock, runInBackground } = deps;
  return clock.every(CHECK_EVERY_MS, () => runInBackground('key_check', () => checkKeys(deps)));
}

export async function checkKeys(deps: Omit<KeyCheckDeps, 'runInBackground'>): Promise<void> {
  const { api, queue } = deps;
  for (const { account } of api.accountStatus().filter(isInTrouble)) {
    await readProjectList(deps, { account });
    const isStill = api.accountStatus().some((status) => status.account === account && isInTrouble(status));
    if (!isStill) await queue.add('inventory', { key: 'key-works', data: {} });
  }
}

/** False where each project has a key of its own: one that is refused says nothing of the others. */
function isInTrouble({ keyTrouble }: AccountStatus): boolean {
  return keyTrouble !== undefined && keyTrouble.endedAgoMs === undefined;
}
