import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../ports/clock.ts';
import type { AccountStatus, Branch, Operation, Project } from '../../ports/control-api.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import { createRedactor, resultOf } from './answers.ts';
import type { ApiCall, SendOnce } from './api-call.ts';
import type { SendExchange } from './exchanges.ts';
import type { Exchange } from './http-transport.ts';
import type { KeyGate } from './key-gate.ts';
import type { WireCompute } from './wire.ts';

export interface KeyQuestion {
  /** The project that the call is about, if it is about one. */
  projectId?: string;
  /** The key that was just refused: read the file again, whatever was remembered. */
  refusedKey?: string;
}

/** Returns a key, or throws an Error whose message says why there is none; the message must not contain a key. */
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

export interface AccountKeys {
  send: SendOnce;
  /** The accounts; the client notes what their lists say of their keys. */
  accounts: readonly ApiAccount[];
  status(): AccountStatus[];
}

/**
 * Adds the account's key to a call, removes every key that was ever used from answers, and stops calls under a refused key. A refused key
 * is read again at once, and tried again now and then.
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
): AccountKeys {
  const { gate, clock } = options;
  const accounts = new Map(options.accounts.map((account) => [account.name, account]));
  const states = createAccountStates({ ...options, accounts: [...accounts.keys()] });
  const redactor = createRedactor();
  const asResult = (call: ApiCall, exchange: Exchange) => resultOf(call, exchange, { redactor, clock });

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
    const accepted = showsAccepted(exchange);
    if (accepted === true) states.accepted(account.name, slot);
    if (accepted === false) states.refused(account.name, slot, key);
    return exchange;
  }

  /** The key for a call. A project whose key was taken away on purpose is no trouble of its account. */
  async function keyFor(account: ApiAccount, call: ApiCall): Promise<ReadKey> {
    const key = await readKey(account, questionOf(call));
    const slot = slotOf(account, call.projectId);
    if (key.ok) states.found(account.name, slot);
    else if (await isWanted(account, call.projectId)) states.missing(account.name, slot, redactor.clean(key.message));
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
      // A 401 had no effect, so under a key that has changed meanwhile even a write may be sent again.
      const fresh = await readKey(account, { ...questionOf(call), refusedKey: key.value });
      if (!fresh.ok || fresh.value === key.value) return asResult(call, exchange);
      return asResult(call, await exchangeUnder(account, call, fresh.value, signal));
    },
    accounts: options.accounts.map((account) => watched(account, states)),
    status: states.status,
  };
}

/** Notes which project keys the account's list no longer has, or that the list can't be read. */
function watched(account: ApiAccount, states: AccountStates): ApiAccount {
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

async function isWanted({ projectIds }: ApiAccount, projectId: string | undefined): Promise<boolean> {
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
  return error instanceof Error ? error.message : 'the API key can not be read';
}

/** An account has one key, or one for each project. */
function slotOf(account: ApiAccount, projectId: string | undefined): string {
  return account.projectIds === undefined ? account.name : `${account.name}/${projectId ?? ''}`;
}

/** A 401 means no; an answer, even a refusal, means yes; failures and throttling mean neither. */
function showsAccepted(exchange: Exchange): boolean | undefined {
  if (exchange.kind === 'failure') return undefined;
  if (exchange.status === 401) return false;
  return exchange.status < 500 && exchange.status !== 429 ? true : undefined;
}

/** A slot has one key: an account, or a project of an account that has one key for each. */
interface AccountStates {
  accepted(account: string, slot: string): void;
  refused(account: string, slot: string, key: string): void;
  /** There is no key to send; `message` says why, without a key. */
  missing(account: string, slot: string, message: string): void;
  /** A key was found; it may still be refused. */
  found(account: string, slot: string): void;
  /** Forgets slots that are no longer there: their keys can't be in trouble any more. */
  keepOnly(account: string, slots: ReadonlySet<string>): void;
  status(): AccountStatus[];
}

type State = AccountStatus['key'];

/** Keeps the state of each account's keys, exports it as a metric, and logs each change once. */
function createAccountStates(options: {
  accounts: readonly string[];
  gate: KeyGate;
  clock: Pick<Clock, 'monotonicMs'>;
  metrics: Metrics;
  log: Log | undefined;
}): AccountStates {
  const { gate, clock, metrics, log } = options;
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
      gate.refused(slot, key, clock.monotonicMs());
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

/**
 * An answer that lists an object twice, or an object of another project, is rejected: there is no way to tell which state is right. Each
 * check returns the problem, undefined if there is none.
 */

export function problemWithComputes(
  projectId: string,
  computes: readonly Pick<WireCompute, 'project_id'>[],
  ids: readonly string[],
): string | undefined {
  if (computes.some((compute) => compute.project_id !== projectId))
    return 'the answer holds a compute of another project';
  return twice(ids);
}

export function problemWithOperations(
  projectId: string,
  operations: readonly Pick<Operation, 'operationId' | 'projectId'>[],
): string | undefined {
  const isOther = operations.some((operation) => operation.projectId !== projectId);
  return isOther
    ? 'the answer holds an operation of another project'
    : twice(operations.map(({ operationId }) => operationId));
}

/** `seen`: the branches of the pages before, of which some may come again, as they were. */
export function problemWithBranches(
  seen: ReadonlyMap<string, Branch>,
  branches: readonly Branch[],
): string | undefined {
  const changed = branches.find((branch) => !isDeepStrictEqual(seen.get(branch.branchId) ?? branch, branch));
  return (
    twice(branches.map(({ branchId }) => branchId)) ??
    (changed && `the list shows ${changed.branchId} twice, and not the same`)
  );
}

/** The first id that comes twice, as a problem. */
function twice(ids: readonly string[]): string | undefined {
  const seen = new Set<string>();
  const id = ids.find((one) => seen.has(one) || !seen.add(one));
  return id === undefined ? undefined : `the answer lists ${id} twice`;
}

/**
 * Of the projects of a list those that count, by id. One that moved to another page while the list was read comes twice: the newer one counts.
 * `contradictory`: ids of which two are equally new and not the same.
 */
export function distinctProjects(listed: readonly Project[]): {
  projects: ReadonlyMap<string, Project>;
  contradictory: string[];
} {
  const projects = new Map<string, Project>();
  const contradictory = new Set<string>();
  for (const project of listed) {
    const { projectId, updatedAtMs } = project;
    const before = projects.get(projectId);
    if (before && before.updatedAtMs === updatedAtMs && !isDeepStrictEqual(before, project))
      contradictory.add(projectId);
    if (!before || before.updatedAtMs < updatedAtMs) projects.set(projectId, project);
  }
  for (const projectId of contradictory) projects.delete(projectId);
  return { projects, contradictory: [...contradictory] };
}
