/** Notifications that the key of an account is refused or missing, once a day, and that one works again. */
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { type OwnedDeps, ownersInAccounts } from '../fleet/owned-computes.ts';
import { createLastingStates, describeSpan, type StateNotifications } from './lasting-states.ts';

interface KeyDeps extends OwnedDeps {
  api: Pick<ControlApi, 'accountStatus'>;
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

export function createKeyNotifications({ api, ...deps }: KeyDeps): StateNotifications {
  const statusOf = (name: string) => api.accountStatus().find(({ account }) => account === name);
  const isMissing = (name: string) => statusOf(name)?.key === 'missing';
  return createLastingStates(deps, {
    collection: 'keys-refused',
    version: 1,
    // A refused key is told at once, a missing one after a minute, since its file may just be being replaced. A key counts as working again
    // after a minute without a refusal, since answers may alternate.
    settledMs: MINUTE_MS,
    beginsAfterMs: (name) => (isMissing(name) ? MINUTE_MS : 0),
    isToldAgain: ({ foundAtMs }) => deps.clock.now() - foundAtMs >= DAY_MS,
    present: () => {
      const troubled = api.accountStatus().filter(({ key }) => key === 'refused' || key === 'missing');
      return new Map(
        troubled.map(({ account, key, message = `the API key of account ${account} is ${key}` }) => [account, message]),
      );
    },
    // If each project has a key of its own, a refused one concerns no other project.
    concernedOwners: (name) =>
      statusOf(name)?.keyTrouble ? ownersInAccounts(deps, (account) => account === name) : [],
    // A key that has not been tried since the daemon's start does not count as working again.
    isUnknown: (name) => statusOf(name)?.key === 'unknown',
    isGone: (name) => statusOf(name) === undefined,
    notificationOf(state, endedAtMs) {
      const { name, foundAtMs, text } = state;
      const id = `key_refused:${name}:${foundAtMs}`;
      if (endedAtMs === undefined) return { id, kind: 'key_refused', atMs: foundAtMs, text };
      const { since, over } = describeSpan(state);
      const works = `the API key of account ${name} works again${over}; it had failed ${since}`;
      return { id: `${id}:ended`, kind: 'key_refused', atMs: endedAtMs, text: works };
    },
  });
}
