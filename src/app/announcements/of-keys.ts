/** Notifications that the control API refuses the key of an account, once a day, and that it accepts one again. */
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { createLastingStates, describeSpan, type StateNotifications } from './lasting-states.ts';

interface KeyDeps {
  api: Pick<ControlApi, 'accountStatus'>;
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

export function createKeyNotifications({ api, ...deps }: KeyDeps): StateNotifications {
  const stateOf = (name: string) => api.accountStatus().find(({ account }) => account === name)?.key;
  return createLastingStates(deps, {
    collection: 'keys-refused',
    version: 1,
    // A refused key is told at once. That it works again is told once it has for a minute, however often the answers change.
    settledMs: MINUTE_MS,
    beginsAfterMs: 0,
    isToldAgain: ({ foundAtMs }) => deps.clock.now() - foundAtMs >= DAY_MS,
    present: () => {
      const refused = api.accountStatus().filter(({ key }) => key === 'refused');
      return new Map(
        refused.map(({ account, message = `the control API refuses the API key of account ${account}` }) => [
          account,
          message,
        ]),
      );
    },
    // A key that is missing, or was not tried since the start, does not work again.
    isUnknown: (name) => stateOf(name) === 'missing' || stateOf(name) === 'unknown',
    isGone: (name) => stateOf(name) === undefined,
    notificationOf(state, endedAtMs) {
      const { name, foundAtMs, text } = state;
      const id = `key_refused:${name}:${foundAtMs}`;
      if (endedAtMs === undefined) return { id, kind: 'key_refused', atMs: foundAtMs, text };
      const { since, over } = describeSpan(state);
      const works = `the API key of account ${name} works again${over}; it was refused ${since}`;
      return { id: `${id}:ended`, kind: 'key_refused', atMs: endedAtMs, text: works };
    },
  });
}
