import type { Log, Metrics } from '../../ports/telemetry.ts';
import { resultOf } from './answers.ts';
import type { ApiCall, SendOnce } from './api-call.ts';
import type { SendExchange } from './exchanges.ts';
import type { Exchange } from './http-transport.ts';
import type { KeyGate } from './key-gate.ts';
import { createRedactor } from './redaction.ts';

/** Which key is wanted. */
export interface KeyQuestion {
  /** The project that the call is about, if it is about one. */
  projectId?: string;
  /** The key that was just refused: look again, whatever was remembered. */
  refusedKey?: string;
}

/** Gives a key, or throws an Error whose message says why there is none; the message must not hold a key. */
export type KeySource = (question: KeyQuestion) => Promise<string> | string;

export interface ApiAccount {
  name: string;
  /** Asked before every request, so that a key can change. */
  key: KeySource;
  /** The organization whose projects these must be; a project of another one is not shown, and is an error. */
  organization?: string;
  /** For an account that has one key for each project: the projects that have one. */
  projectIds?: () => Promise<readonly string[]>;
}

/** Whether an account can be used. Unknown until it was first asked. */
export interface AccountStatus {
  account: string;
  key: 'valid' | 'refused' | 'unknown';
  /** One line for people when the key is refused. */
  message?: string;
}

export interface AccountKeys {
  send: SendOnce;
  status(): AccountStatus[];
}

/**
 * Puts the account's key on a call, keeps every key that was ever used out of what comes back, and stops calling under a key
 * that is refused: it is read again at once, and the refused one is tried again only now and then.
 */
export function withAccountKeys(
  send: SendExchange,
  options: { accounts: readonly ApiAccount[]; gate: KeyGate; metrics: Metrics; log: Log | undefined },
): AccountKeys {
  const { gate, metrics, log } = options;
  const accounts = new Map(options.accounts.map((account) => [account.name, account]));
  const redactor = createRedactor();
  const states = new Map<string, AccountStatus['key']>();

  function note(account: ApiAccount, slot: string, key: string, exchange: Exchange): void {
    const accepted = showsAccepted(exchange);
    if (accepted === undefined) return;
    if (accepted) gate.accepted(slot);
    else gate.refused(slot, key, performance.now());
    const state = refusedSlotsOf(gate, account.name).length === 0 ? 'valid' : 'refused';
    const before = states.get(account.name);
    states.set(account.name, state);
    metrics.set('ebb_api_key_valid', { account: account.name }, state === 'valid' ? 1 : 0);
    if (state === before) return;
    const fields = { event: `ebb.api_key_${state}`, account: account.name };
    if (state === 'refused') log?.error(fields, refusalMessage(gate, account.name));
    else if (before === 'refused') log?.info(fields, `the API key of account ${account.name} is accepted again`);
  }

  async function exchangeUnder(
    account: ApiAccount,
    call: ApiCall,
    key: string,
    signal: AbortSignal,
  ): Promise<Exchange> {
    const slot = slotOf(account, call);
    redactor.hide(key);
    if (!gate.mayPass(slot, key, performance.now())) {
      return notSent('its API key was refused, and is tried again later');
    }
    const exchange = await send(call, key, signal);
    note(account, slot, key, exchange);
    return exchange;
  }

  return {
    async send(call, signal) {
      const account = accounts.get(call.account);
      if (account === undefined) return resultOf(call, notSent('there is no such account'), redactor);
      const question = call.projectId === undefined ? {} : { projectId: call.projectId };
      const key = await readKey(account, question);
      if (!key.ok) return resultOf(call, notSent(key.message), redactor);
      const exchange = await exchangeUnder(account, call, key.value, signal);
      if (exchange.kind !== 'answer' || exchange.status !== 401) return resultOf(call, exchange, redactor);
      // A 401 was not carried out, so under a key that has changed meanwhile even a write may be sent again.
      const fresh = await readKey(account, { ...question, refusedKey: key.value });
      if (!fresh.ok || fresh.value === key.value) return resultOf(call, exchange, redactor);
      return resultOf(call, await exchangeUnder(account, call, fresh.value, signal), redactor);
    },
    status: () =>
      options.accounts.map(({ name }) => {
        const key = states.get(name) ?? 'unknown';
        return { account: name, key, ...(key === 'refused' ? { message: refusalMessage(gate, name) } : {}) };
      }),
  };
}

const HEADER_SAFE = /^[\x21-\x7e]+$/;

type ReadKey = { ok: true; value: string } | { ok: false; message: string };

async function readKey(account: ApiAccount, question: KeyQuestion): Promise<ReadKey> {
  try {
    const value = (await account.key(question)).trim();
    if (HEADER_SAFE.test(value)) return { ok: true, value };
    return { ok: false, message: 'the API key is empty or holds characters that no key has' };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : 'the API key can not be read' };
  }
}

function notSent(message: string): Exchange {
  return { kind: 'failure', code: 'unauthorised', mayHaveArrived: false, message: `not sent: ${message}` };
}

/** An account has one key, or one for each project. */
function slotOf(account: ApiAccount, call: ApiCall): string {
  return account.projectIds === undefined ? account.name : `${account.name}/${call.projectId ?? ''}`;
}

function refusedSlotsOf(gate: KeyGate, account: string): string[] {
  return gate.refusedSlots().filter((slot) => slot === account || slot.startsWith(`${account}/`));
}

function refusalMessage(gate: KeyGate, account: string): string {
  const projects = refusedSlotsOf(gate, account).filter((slot) => slot !== account);
  const which =
    projects.length === 0 ? '' : ` for ${projects.map((slot) => slot.slice(account.length + 1)).join(', ')}`;
  return `the control API refuses the API key of account ${account}${which}; replace it`;
}

/** A 401 says no; what was understood, even if it was refused, says yes; trouble and throttling say nothing. */
function showsAccepted(exchange: Exchange): boolean | undefined {
  if (exchange.kind === 'failure') return undefined;
  if (exchange.status === 401) return false;
  return exchange.status < 500 && exchange.status !== 429 ? true : undefined;
}
