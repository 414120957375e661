import { setMaxListeners } from 'node:events';
import { isLoopbackHost } from '../../common/loopback.ts';
import { DEFAULT_RATE_LIMITS } from '../../domain/rate-budget/limits.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import {
  type AccountStatus,
  type ApiResult,
  type ControlApi,
  type ControlApiError,
  isUnavailable,
  type PermittedCall,
} from '../../ports/control-api.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import { type ApiAccount, createKeyGate, DEFAULT_KEY_PROBES, type KeyProbes, withAccountKeys } from './accounts.ts';
import type { ApiCall, Caller, SendOnce } from './api-call.ts';
import { underDeadline } from './deadline.ts';
import { exchangeOver, withBudget, withMetrics } from './exchanges.ts';
import { createReadingBudget } from './group-budget.ts';
import {
  createDispatcher,
  DEFAULT_MAX_BODY_BYTES,
  DEFAULT_TIMEOUTS,
  type Timeouts,
  type ViaProxy,
} from './http-client.ts';
import { createHttpTransport, type Transport } from './http-transport.ts';
import { createRepeatLimit, type Patience } from './repeat-limit.ts';
import { COMPUTE, COMPUTES, RESTART } from './routes.ts';
import { slowWhileSilent } from './silence.ts';

export interface ControlApiOptions {
  /** Ends in the version, e.g. `https://console.neon.tech/api/v2`; plain http only to loopback. */
  baseUrl: string;
  accounts: readonly ApiAccount[];
  metrics: Metrics;
  log?: Log;
  /** By default one for this client alone, at the platform's limits. */
  budget?: RateBudget;
  /** Allows plain http to other machines: the key is readable on the way. */
  allowPlainHttp?: boolean;
  timeouts?: Partial<Timeouts>;
  maxBodyBytes?: number;
  backoff?: Backoff;
  /**
   * The patience of a command; the daemon and `ebb verify` have none. Without it, calls are repeated until their deadlines without a report, and
   * reads are slowed while the API does not answer.
   */
  patience?: Patience | undefined;
  keyProbes?: KeyProbes;
  /** Without it the API is reached directly. */
  proxy?: ViaProxy | undefined;
  /** For every duration, wait and deadline, except `timeouts`, which undici measures in real time. */
  clock: Clock;
  /** For the ids of requests. */
  newId: NewId;
  /** 0..1, for the jitter of waits. */
  random: () => number;
  /** Replaces HTTP: base URL, proxy and timeouts are then unused. `lastCheck` still applies. */
  transport?: Transport;
}

/**
 * The layers between a call and the wire, from the outside in: retries under a deadline, slowed reads while the API does not answer, the
 * account's key, the rate budget, metrics, `lastCheck` (which may refuse to send), HTTP. Throws if the base URL can't be used.
 */
export function createCaller(options: ControlApiOptions, lastCheck: (send: Transport) => Transport) {
  const { accounts, metrics, log, clock, newId, random } = options;
  const wire = openWire(options);
  const budget = options.budget ?? createReadingBudget({ alone: true, limits: DEFAULT_RATE_LIMITS, clock });
  const measured = withMetrics(exchangeOver(lastCheck(wire.send), newId), { metrics, clock });
  const budgeted = withBudget(measured, { budget, clock, metrics, log });
  const closing = new AbortController();
  // Every call in flight has a listener on it.
  setMaxListeners(0, closing.signal);
  const gate = createKeyGate(options.keyProbes ?? DEFAULT_KEY_PROBES);
  const keyed = withAccountKeys(budgeted, { accounts, gate, clock, metrics, log });
  // With patience, as in most commands, reads are not slowed: the command ends soon, and a person waits for it.
  const slowed = options.patience === undefined ? slowWhileSilent(keyed.send, clock) : keyed.send;
  const call = withRetries(slowed, {
    backoff: options.backoff ?? DEFAULT_BACKOFF,
    repeatLimit: createRepeatLimit(clock, options.patience),
    random,
    clock,
    closing: closing.signal,
    onThrottledWait: (waitMs) => metrics.increment('ebb_api_throttled_seconds_total', {}, waitMs / 1000),
  });
  return {
    call,
    accounts: keyed.accounts,
    permit: permitsOf(budget, closing.signal, clock),
    accountStatus: (): AccountStatus[] =>
      keyed.status().map((status) => {
        const stalledMs = budget.stalledMs(status.account);
        const learnt = budget.learnt(status.account);
        const waiting = budget.waiting(status.account);
        return {
          ...status,
          ...(stalledMs > 0 && { stalledMs }),
          ...(waiting && { waiting }),
          ...(learnt && { limit: { level: budget.level(status.account), ...learnt } }),
        };
      }),
    /** Aborts open calls, and refuses new ones. */
    async close(): Promise<void> {
      closing.abort(new Error('the client is closed'));
      await wire.close();
    },
  };
}

/** The longest wait for connections to close. */
const CLOSE_MS = 1_000;

function openWire(options: ControlApiOptions): { send: Transport; close(): Promise<void> } {
  const { transport, clock } = options;
  if (transport) return { send: transport, close: async () => {} };
  const baseUrl = parseBaseUrl(options.baseUrl, { allowPlainHttp: options.allowPlainHttp ?? false });
  let opening: ReturnType<typeof createDispatcher> | undefined;
  const dispatcher = () => {
    opening ??= createDispatcher({
      baseUrl,
      timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
      maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
      proxy: options.proxy,
    });
    return opening;
  };
  return {
    send: createHttpTransport({ baseUrl, dispatcher }),
    async close() {
      const opened = await opening;
      // `destroy` waits for connections that are still being established.
      if (opened) await Promise.race([opened.destroy(), clock.wait(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

/** The base URL without a trailing slash. Throws an Error whose message says what to do. */
function parseBaseUrl(text: string, options: { allowPlainHttp: boolean }): URL {
  if (!URL.canParse(text)) throw new Error('The API URL is not a URL; it looks like https://console.neon.tech/api/v2.');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new Error(`The API URL must begin with https://, not ${url.protocol}//.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('The API URL must not hold a user or password; the key comes from EBB_API_KEY or a file.');
  }
  if (url.search !== '' || url.hash !== '') throw new Error('The API URL must end with its path, e.g. /api/v2.');
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && !options.allowPlainHttp) {
    throw new Error(`The API URL uses plain http to ${url.hostname}, which would show the key; use https://.`);
  }
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}

const ROUTES: Readonly<Record<PermittedCall, string>> = {
  listComputes: `GET ${COMPUTES}`,
  updateCompute: `PATCH ${COMPUTE}`,
  restartCompute: `POST ${RESTART}`,
};

/** Acquires a permit before the call, so that the caller can wait for it without holding a lease. */
function permitsOf(budget: RateBudget, closing: AbortSignal, clock: Clock): ControlApi['permit'] {
  return async (call, { account, priority, signal }) => {
    const request = { account, route: ROUTES[call], priority };
    const wait = { deadlineMs: Number.POSITIVE_INFINITY, parents: [closing, signal], clock };
    const grant = await underDeadline(wait, (either) => budget.acquire(request, either));
    let isUsed = false;
    return {
      isUsed: () => isUsed,
      take() {
        if (isUsed) return undefined;
        isUsed = true;
        return grant;
      },
      giveBack() {
        if (!isUsed) grant.giveBack();
        isUsed = true;
      },
    };
  };
}

interface Backoff {
  /** Upper bound of the first wait, milliseconds; it doubles with each repeat. */
  firstMs: number;
  /** Upper bound of any wait, milliseconds, unless the service asks for more. */
  longestMs: number;
}

const DEFAULT_BACKOFF: Backoff = { firstMs: 200, longestMs: 5_000 };

/**
 * Repeats a call while that is allowed, until it succeeds or its deadline would pass. Waits have full jitter, so that clients don't
 * retry in step; the service's Retry-After is a lower bound.
 */
function withRetries(
  send: SendOnce,
  options: {
    backoff: Backoff;
    repeatLimit: ReturnType<typeof createRepeatLimit>;
    random: () => number;
    clock: Clock;
    closing: AbortSignal;
    onThrottledWait: (waitMs: number) => void;
  },
): Caller {
  const { backoff, repeatLimit, random, clock, closing, onThrottledWait } = options;

  /** Milliseconds until the next attempt; undefined if this result is the last. */
  function repeatAfterMs(call: ApiCall, result: ApiResult<unknown>, attempt: number): number | undefined {
    if (result.ok || !mayRepeat(call, result.error)) return undefined;
    const jitterMs = random() * Math.min(backoff.longestMs, backoff.firstMs * 2 ** attempt);
    return Math.max(jitterMs, result.error.retryAfterMs ?? 0);
  }

  /** Returns false if the wait was aborted. */
  async function waitAfter(result: ApiResult<unknown>, waitMs: number, signal: AbortSignal): Promise<boolean> {
    try {
      await clock.wait(waitMs, signal);
    } catch {
      return false;
    }
    if (!result.ok && result.error.code === 'throttled') onThrottledWait(waitMs);
    return true;
  }

  async function sendUntilDone(call: ApiCall, signal: AbortSignal, remainingMs: () => number) {
    let before: ApiResult<unknown> | undefined;
    let failingSinceMs: number | undefined;
    for (let attempt = 0; ; attempt += 1) {
      const result = sinceFirst(await send(call, signal), before);
      // If a repeat was not sent, the result of the attempt before says more.
      if (before !== undefined && wasNeverSent(result)) return before;
      failingSinceMs ??= clock.monotonicMs();
      const waitMs = repeatLimit.nextWaitMs(result, {
        waitMs: signal.aborted ? undefined : repeatAfterMs(call, result, attempt),
        remainingMs: remainingMs(),
        failures: attempt + 1,
        failingMs: clock.monotonicMs() - failingSinceMs,
      });
      if (waitMs === undefined || !(await waitAfter(result, waitMs, signal))) return result;
      before = result;
    }
  }

  return async (call) => {
    const beganAtMonotonicMs = clock.monotonicMs();
    const parents = call.signal === undefined ? [closing] : [closing, call.signal];
    const result = await underDeadline({ deadlineMs: call.deadlineMs, parents, clock }, (signal, remainingMs) =>
      sendUntilDone(call, signal, remainingMs),
    );
    return result.ok ? result : { ok: false, error: { beganAtMonotonicMs, ...result.error } };
  };
}

/** Returns the result of an attempt; a failure with the time of the first attempt of those that failed without an answer in between. */
function sinceFirst(result: ApiResult<unknown>, before: ApiResult<unknown> | undefined): ApiResult<unknown> {
  if (result.ok || before === undefined || before.ok || !isUnavailable(before.error)) return result;
  const { beganAtMonotonicMs } = before.error;
  return beganAtMonotonicMs === undefined ? result : { ok: false, error: { ...result.error, beganAtMonotonicMs } };
}

/**
 * True if the call may be sent again:
 * - after a 429 or 503, which mean that nothing was done: any call;
 * - after a 408, another 5xx, or no answer: a GET, or a write that certainly took no effect;
 * - after a 423: a call with `repeatLocked`. Without it, the caller may want another change once the lock has ended.
 */
function mayRepeat(call: ApiCall, error: ControlApiError): boolean {
  if (error.code === 'locked') return call.repeatLocked;
  if (error.code === 'throttled') return error.status === 429;
  return isUnavailable(error) && error.outcomeUnknown !== true;
}

/** True if the call ended while its request waited: for its turn while the API does not answer (`othersFail`), or for the rate budget. */
function wasNeverSent(result: ApiResult<unknown>): boolean {
  if (result.ok) return false;
  return result.error.othersFail === true || (result.error.code === 'throttled' && result.error.status === undefined);
}
