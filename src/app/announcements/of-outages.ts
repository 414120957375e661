/** Notifications of outages that last, and of their ends. There is none of the store itself: then nothing can be queued. */
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { OutageDeps } from '../telemetry/outages.ts';
import { createLastingStates, type StateNotifications } from './lasting-states.ts';

interface OutageNotificationDeps extends OutageDeps {
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

export function createOutageNotifications(deps: OutageNotificationDeps): StateNotifications {
  return createLastingStates(deps, {
    collection: 'outages',
    version: 1,
    settledMs: 5 * MINUTE_MS,
    present: () => deps.outages.current(),
    notificationOf({ name, sinceMs, isSinceAtLeast, foundAtMs, overSinceMs, text: cause }, endedAtMs) {
      const id = `outage:${name}:${foundAtMs}`;
      const since = `${isSinceAtLeast ? 'at least ' : ''}${isoInstant(sinceMs)}`;
      if (endedAtMs !== undefined) {
        const over = overSinceMs === undefined ? '' : ` since ${isoInstant(overSinceMs)}`;
        const text = `${name} is available again${over}; it was not since ${since}`;
        return { id: `${id}:ended`, kind: 'outage', atMs: endedAtMs, text };
      }
      const text = `${name} has not been available since ${since}: ${cause}`;
      return { id, kind: 'outage', atMs: foundAtMs, text, command: 'ebb status' };
    },
  });
}
