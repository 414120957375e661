import type { Clock } from '../../ports/clock.ts';
import type { AccountStatus } from '../../ports/control-api.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import { createRedactor, resultOf } from './answers.ts';
import type { ApiCall, SendOnce } from './api-call.ts';
import type { SendExchange } from './exchanges.ts';
import type { Exchange } from './http-transport.ts';

export interface KeyQuestion {
  /** The project that the call is about, if it is about one. */
  projectId?: string;
  /** The key that was just refused, if one was. The source must then not answer from its cache. */
  refusedKey?: string;
}

/** Returns a key, or throws an Error whose message says why there is none; the message must not contain a key. */
export type KeySource = (question: KeyQuestion) => Promise<string> | string;

export interface ApiAccount {
  name: string;
  /** Asked before every request, so that a key can change. */
  key: KeySource;
  /** The organization to which all projects must belong. A project of another one is left out and reported as an error. */
  organization?: string;
  /** For an account that has one key for each project: the projects that have one. */
  projectIds?: () => Promise<readonly string[]>;
}

/**
 * Adds the account's key to a call, redacts every key that was ever used from answers, and stops calls under a refused key. When a key is
 * refused, its source is read again at once. A key that stays the same is tried again now and then.
 */
export function withAccountKeys(
  send: SendExchange,
  options: {
    accounts: readonly ApiAccount[];
    gate: KeyGate;
    clock: Pick<Clock, 'monotonicMs' | 'realDelayMs'>;
    metrics: Metrics;
    log: Log | undefined;
  },
): { send: SendOnce; accounts: readonly ApiAccount[]; status(): AccountStatus[] } {
  const { gate, clock } = options;
  const accounts = new Map(options.accounts.map((account) => [account.name, account]));
  const states = createAccountStates(options);
  const redactor = createRedactor();
  const asResult = (call: ApiCall, exchange: Exchange) => {
    const result = resultOf(call, exchange, { redactor, clock });
    const { sentAtMonotonicMs: beganAtMonotonicMs } = exchange;
    if (result.ok || beganAtMonotonicMs === undefined) return result;
    return { ok: false as const, error: { ...result.error, beganAtMonotonicMs } };
  };

  async function exchangeUnder(
    account: ApiAccount,
    call: ApiCall,
    key: string,
    signal: AbortSignal,
  ): Promise<Exchange> {
    const slot = slotOf(account, call.projectId);
    redactor.hide(key);
    if (!gate.mayPass(slot, key, clock.monotonicMs())) {
      return notSent('its API key was refused, and is tried again later');
    }
    const exchange = await send(call, key, signal);
    const accepted = isKeyAccepted(exchange);
    if (accepted === true) states.accepted(account.name, slot);
    if (accepted === false) states.refused(account.name, slot, key);
    return exchange;
  }

  /** The key for a call. A project key that was removed on purpose is not reported as missing. */
  async function keyFor(account: ApiAccount, call: ApiCall): Promise<ReadKey> {
    const key = await readKey(account, questionOf(call));
    const slot = slotOf(account, call.projectId);
    if (key.ok) states.found(account.name, slot);
    else if (await shouldHaveKey(account, call.projectId))
      states.missing(account.name, slot, redactor.clean(key.message));
    return key;
  }

  return {
    async send(call, signal) {
      const account = accounts.get(call.account);
      if (account === undefined) return asResult(call, notSent('there is no such account'));
      const key = await keyFor(account, call);
      if (!key.ok) return asResult(call, notSent(key.message));
      const exchange = await exchangeUnder(account, call, key.value, signal);
      if (exchange.kind !== 'answer' || exchange.status !== 401) return asResult(call, exchange);
      // A request that was answered 401 had no effect. If the key has changed meanwhile, even a write may be sent again.
      const fresh = await readKey(account, { ...questionOf(call), refusedKey: key.value });
      if (!fresh.ok || fresh.value === key.value) return asResult(call, exchange);
      return asResult(call, await exchangeUnder(account, call, fresh.value, signal));
    },
    accounts: options.accounts.map((account) => watchedKeys(account, states)),
    status: states.status,
  };
}

/** An account whose `projectIds` also forgets the states of project keys that are gone, and notes when the list can't be read. */
function watchedKeys(account: ApiAccount, states: AccountStates): ApiAccount {
  const { name, projectIds } = account;
  if (projectIds === undefined) return account;
  const wholeList = slotOf(account, undefined);
  return {
    ...account,
    async projectIds() {
      try {
        const ids = await projectIds();
        states.found(name, wholeList);
        states.keepOnly(name, new Set(ids.map((id) => slotOf(account, id))));
        return ids;
      } catch (error) {
        states.missing(name, wholeList, messageOf(error));
        throw error;
      }
    },
  };
}

async function shouldHaveKey({ projectIds }: ApiAccount, projectId: string | undefined): Promise<boolean> {
  if (projectIds === undefined) return true;
  const ids = await projectIds().catch(() => undefined);
  return projectId !== undefined && ids?.includes(projectId) === true;
}

function questionOf({ projectId }: ApiCall): KeyQuestion {
  return projectId === undefined ? {} : { projectId };
}

const HEADER_SAFE = /^[\x21-\x7e]+$/;

type ReadKey = { ok: true; value: string } | { ok: false; message: string };

async function readKey(account: ApiAccount, question: KeyQuestion): Promise<ReadKey> {
  try {
    const value = (await account.key(question)).trim();
    if (HEADER_SAFE.test(value)) return { ok: true, value };
    return { ok: false, message: 'the API key is empty or holds characters that no key has' };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

function notSent(message: string): Exchange {
  return { kind: 'failure', code: 'unauthorised', mayHaveArrived: false, message: `not sent: ${message}` };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the API key cannot be read';
}

/** The place of one key: an account, or a project of an account that has one key for each project. */
function slotOf(account: ApiAccount, projectId: string | undefined): string {
  return account.projectIds === undefined ? account.name : `${account.name}/${projectId ?? ''}`;
}

/** A 401 shows that the key is refused. A 429, a 5xx and no answer show nothing. Any other answer, even a refusal, shows that it is accepted. */
function isKeyAccepted(exchange: Exchange): boolean | undefined {
  if (exchange.kind === 'failure') return undefined;
  if (exchange.status === 401) return false;
  return exchange.status < 500 && exchange.status !== 429 ? true : undefined;
}

type AccountStates = ReturnType<typeof createAccountStates>;
type State = AccountStatus['key'];
type Trouble = 'refused' | 'missing';

function recoveryMessage(account: string, before: Trouble, state: State): string {
  if (state === 'valid') return `the API key of account ${account} works again`;
  const change = before === 'missing' ? 'can be read again' : 'was replaced or removed after it was refused';
  return `the API key of account ${account} ${change}; no request has used it yet`;
}

/** Keeps the state of each account's keys, exports it as a metric, and logs when trouble begins, changes or ends. */
function createAccountStates(options: {
  accounts: readonly ApiAccount[];
  gate: KeyGate;
  clock: Pick<Clock, 'monotonicMs'>;
  metrics: Metrics;
  log: Log | undefined;
}) {
  const { gate, clock, metrics, log } = options;
  const states = new Map<string, State>();
  const missing = new Map<string, string>();
  const lastTroubles = new Map<string, { state: Trouble; endedAtMonotonicMs: number }>();

  const slotsOf = (account: string, slots: Iterable<string>) =>
    [...slots].filter((slot) => slot === account || slot.startsWith(`${account}/`));
  const refusedSlots = (account: string) => slotsOf(account, gate.refusedSlots());
  const missingSlots = (account: string) => slotsOf(account, missing.keys());

  function stateOf(account: string, withoutTrouble: State): State {
    if (refusedSlots(account).length > 0) return 'refused';
    return missingSlots(account).length > 0 ? 'missing' : withoutTrouble;
  }

  function troubleMessageOf(account: string): string {
    const refused = refusedSlots(account);
    if (refused.length > 0) {
      const projects = refused.filter((slot) => slot !== account).map((slot) => slot.slice(account.length + 1));
      const which = projects.length === 0 ? '' : ` for ${projects.join(', ')}`;
      return `the control API refuses the API key of account ${account}${which}; replace it`;
    }
    const [slot = account] = missingSlots(account);
    return `account ${account} has no API key to send: ${missing.get(slot)}; put it there`;
  }

  /** Stores and reports the state of an account: `withoutTrouble` if none of its keys is refused or missing. */
  function review(account: string, withoutTrouble: State): void {
    const before = states.get(account) ?? 'unknown';
    const state = stateOf(account, withoutTrouble);
    states.set(account, state);
    if (state !== 'unknown') metrics.set('ebb_api_key_valid', { account }, state === 'valid' ? 1 : 0);
    if (state === before) return;
    const fields = { event: `ebb.api_key_${state}`, account };
    if (isTrouble(state)) log?.error(fields, troubleMessageOf(account));
    else if (isTrouble(before)) {
      lastTroubles.set(account, { state: before, endedAtMonotonicMs: clock.monotonicMs() });
      log?.info(fields, recoveryMessage(account, before, state));
    }
  }

  function troubleOf(account: string, key: State): AccountStatus['keyTrouble'] {
    if (isTrouble(key)) return { state: key };
    const last = lastTroubles.get(account);
    return last && { state: last.state, endedAgoMs: clock.monotonicMs() - last.endedAtMonotonicMs };
  }

  return {
    accepted(account: string, slot: string) {
      gate.accepted(slot);
      review(account, 'valid');
    },
    refused(account: string, slot: string, key: string) {
      gate.refused(slot, key, clock.monotonicMs());
      review(account, 'valid');
    },
    /** Notes that there is no key to send; `message` says why, and contains no key. */
    missing(account: string, slot: string, message: string) {
      missing.set(slot, message);
      review(account, 'valid');
    },
    /** Notes that a key was read; it may still be refused. */
    found(account: string, slot: string) {
      if (missing.delete(slot)) review(account, 'unknown');
    },
    keepOnly(account: string, slots: ReadonlySet<string>) {
      const gone = [...refusedSlots(account), ...missingSlots(account)].filter((slot) => !slots.has(slot));
      for (const slot of gone) {
        gate.accepted(slot);
        missing.delete(slot);
      }
      if (gone.length > 0) review(account, 'unknown');
    },
    status: (): AccountStatus[] =>
      options.accounts.map(({ name: account, projectIds }) => {
        const key = states.get(account) ?? 'unknown';
        const keyTrouble = projectIds === undefined ? troubleOf(account, key) : undefined;
        const message = isTrouble(key) ? troubleMessageOf(account) : undefined;
        return { account, key, ...(message !== undefined && { message }), ...(keyTrouble && { keyTrouble }) };
      }),
  };
}

function isTrouble(state: State): state is Trouble {
  return state === 'refused' || state === 'missing';
}

/** Retries of a refused key: the first and the longest pause, milliseconds; the pause doubles in between. */
export interface KeyProbes {
  firstMs: number;
  longestMs: number;
}

export const DEFAULT_KEY_PROBES: KeyProbes = { firstMs: 5_000, longestMs: 60_000 };

/** Probes should take few requests: the longest pause is at least the number of other refused keys times this, in milliseconds. */
const PAUSE_FOR_EACH_MS = 1_000;

/** The longest pause is never longer than this, in milliseconds: only a probe notices that a key works again. */
const LONGEST_OF_MANY_MS = 300_000;

interface Refusal {
  key: string;
  waitMs: number;
  nextProbeAtMs: number;
  isProbing: boolean;
}

export interface KeyGate {
  /** True if a request may be sent under this key. Under a refused key only one may be sent in each pause: it is the probe. */
  mayPass(slot: string, key: string, nowMs: number): boolean;
  /** Notes a 401. */
  refused(slot: string, key: string, nowMs: number): void;
  accepted(slot: string): void;
  refusedSlots(): string[];
}

/** Stops calls under a refused key. */
export function createKeyGate(probes: KeyProbes): KeyGate {
  const refusals = new Map<string, Refusal>();
  return {
    mayPass(slot, key, nowMs) {
      const refusal = refusals.get(slot);
      if (refusal === undefined || refusal.key !== key) return true;
      if (nowMs < refusal.nextProbeAtMs) return false;
      // Other calls wait for the result of this probe.
      refusal.nextProbeAtMs = nowMs + refusal.waitMs;
      refusal.isProbing = true;
      return true;
    },
    refused(slot, key, nowMs) {
      const before = refusals.get(slot);
      const current = before?.key === key ? before : undefined;
      // Requests that were in flight together count as one refusal. The pause doubles only after a probe.
      if (current !== undefined && !current.isProbing) return;
      const longestMs = Math.max(
        probes.longestMs,
        Math.min((refusals.size - 1) * PAUSE_FOR_EACH_MS, LONGEST_OF_MANY_MS),
      );
      const waitMs = current === undefined ? probes.firstMs : Math.min(longestMs, current.waitMs * 2);
      refusals.set(slot, { key, waitMs, nextProbeAtMs: nowMs + waitMs, isProbing: false });
    },
    accepted: (slot) => void refusals.delete(slot),
    refusedSlots: () => [...refusals.keys()],
  };
}
