import type { AccountStatus } from '../../ports/control-api.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import type { KeyGate } from './key-gate.ts';

/** A slot is what has one key: an account, or a project of an account that has one key for each. */
export interface AccountStates {
  accepted(account: string, slot: string): void;
  refused(account: string, slot: string, key: string): void;
  /** There is no key to send; `message` says why, without a key. */
  missing(account: string, slot: string, message: string): void;
  /** There is a key to send; whether it is a good one is not known by that. */
  found(account: string, slot: string): void;
  /** Forgets slots that are no longer there: their keys can't be in trouble any more. */
  keepOnly(account: string, slots: ReadonlySet<string>): void;
  status(): AccountStatus[];
}

type State = AccountStatus['key'];

/** Keeps what is known of each account's keys, shows it as a metric, and tells each change once. */
export function createAccountStates(options: {
  accounts: readonly string[];
  gate: KeyGate;
  metrics: Metrics;
  log: Log | undefined;
}): AccountStates {
  const { gate, metrics, log } = options;
  const states = new Map<string, State>();
  const missing = new Map<string, string>();

  const slotsOf = (account: string, slots: Iterable<string>) =>
    [...slots].filter((slot) => slot === account || slot.startsWith(`${account}/`));
  const refusedSlots = (account: string) => slotsOf(account, gate.refusedSlots());
  const missingSlots = (account: string) => slotsOf(account, missing.keys());

  function stateOf(account: string, otherwise: State): State {
    if (refusedSlots(account).length > 0) return 'refused';
    return missingSlots(account).length > 0 ? 'missing' : otherwise;
  }

  function messageOf(account: string): string {
    const refused = refusedSlots(account);
    if (refused.length > 0) {
      const projects = refused.filter((slot) => slot !== account).map((slot) => slot.slice(account.length + 1));
      const which = projects.length === 0 ? '' : ` for ${projects.join(', ')}`;
      return `the control API refuses the API key of account ${account}${which}; replace it`;
    }
    const [slot = account] = missingSlots(account);
    return `account ${account} has no API key to send: ${missing.get(slot)}; put it there`;
  }

  function review(account: string, otherwise: State): void {
    const before = states.get(account) ?? 'unknown';
    const state = stateOf(account, otherwise);
    states.set(account, state);
    if (state !== 'unknown') metrics.set('ebb_api_key_valid', { account }, state === 'valid' ? 1 : 0);
    if (state === before) return;
    const fields = { event: `ebb.api_key_${state}`, account };
    if (isTrouble(state)) log?.error(fields, messageOf(account));
    else if (isTrouble(before)) log?.info(fields, `the API key of account ${account} is no longer in trouble`);
  }

  return {
    accepted(account, slot) {
      gate.accepted(slot);
      review(account, 'valid');
    },
    refused(account, slot, key) {
      gate.refused(slot, key, performance.now());
      review(account, 'valid');
    },
    missing(account, slot, message) {
      missing.set(slot, message);
      review(account, 'valid');
    },
    found(account, slot) {
      if (missing.delete(slot)) review(account, 'unknown');
    },
    keepOnly(account, slots) {
      const gone = [...refusedSlots(account), ...missingSlots(account)].filter((slot) => !slots.has(slot));
      for (const slot of gone) {
        gate.accepted(slot);
        missing.delete(slot);
      }
      if (gone.length > 0) review(account, 'unknown');
    },
    status: () =>
      options.accounts.map((account) => {
        const key = states.get(account) ?? 'unknown';
        return { account, key, ...(isTrouble(key) ? { message: messageOf(account) } : {}) };
      }),
  };
}

function isTrouble(state: State): boolean {
  return state === 'refused' || state === 'missing';
}
