/** Notifications of outages that last, and of their ends. An outage of the store is not notified: nothing can be queued then. */
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { type OwnedDeps, ownersInAccounts } from '../fleet/owned-computes.ts';
import { CONTROL_API, controlApiFor, type OutageDeps } from '../telemetry/outages.ts';
import { createLastingStates, describeSpan, type StateNotifications } from './lasting-states.ts';

interface OutageNotificationDeps extends OutageDeps, OwnedDeps {
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

export function createOutageNotifications(deps: OutageNotificationDeps): StateNotifications {
  return createLastingStates(deps, {
    collection: 'outages',
    version: 1,
    settledMs: 5 * MINUTE_MS,
    present: () => deps.outages.current(),
    sinceMs: (name) => deps.outages.sinceMs(name),
    // Other outages stop no change of a compute at once: they concern only those who run ebb.
    concernedOwners: (name) =>
      name.startsWith(CONTROL_API)
        ? ownersInAccounts(deps, (account) => name === CONTROL_API || name === controlApiFor(account))
        : [],
    notificationOf(state, endedAtMs) {
      const { name, foundAtMs, text: cause } = state;
      const id = `outage:${name}:${foundAtMs}`;
      const { since, over } = describeSpan(state);
      if (endedAtMs !== undefined) {
        const text = `${name} is available again${over}; it was not ${since}`;
        return { id: `${id}:ended`, kind: 'outage', atMs: endedAtMs, text };
      }
      const text = `${name} has not been available ${since}: ${cause}`;
      return { id, kind: 'outage', atMs: foundAtMs, text, command: 'ebb status' };
    },
  });
}
