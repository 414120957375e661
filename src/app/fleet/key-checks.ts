import type { Clock } from '../../ports/clock.ts';
import { type AccountStatus, type ControlApi, isKeyInTrouble } from '../../ports/control-api.ts';
import { type RunInBackground, type Running, StoppedError } from '../background.ts';
import type { TriggerDeps } from '../triggers.ts';
import { readProjectList } from './cached-projects.ts';
import type { Fleet } from './fleet.ts';

/** Interval between checks, in real milliseconds. With a refused key, the API client itself sends only few of these requests. */
const CHECK_EVERY_MS = 5_000;

interface KeyCheckDeps extends TriggerDeps {
  api: ControlApi;
  fleet: Fleet;
  clock: Clock;
  runInBackground: RunInBackground;
}

/**
 * Lists the projects of accounts whose key is refused or missing, so that a new key is noticed soon even if no other request is due. Once a
 * key works, the inventory runs.
 */
export function startKeyChecks(deps: KeyCheckDeps): Running {
  const { clock, runInBackground } = deps;
  const stop = new AbortController();
  const rounds = clock.every(CHECK_EVERY_MS, () => runInBackground('key_check', () => checkKeys(deps, stop.signal)));
  return {
    close() {
      stop.abort(new StoppedError());
      return rounds.close();
    },
  };
}

async function checkKeys(deps: KeyCheckDeps, signal: AbortSignal): Promise<void> {
  const { api, queue } = deps;
  const check = async ({ account }: AccountStatus) => {
    await readProjectList(deps, { account, signal, deadlineMs: CHECK_EVERY_MS });
    const isStillInTrouble = api.accountStatus().some((status) => status.account === account && isKeyInTrouble(status));
    if (!isStillInTrouble) await queue.add('inventory', { key: 'key-works', data: {} });
  };
  await Promise.all(api.accountStatus().filter(isKeyInTrouble).map(check));
}
