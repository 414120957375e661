import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLoopbackHost } from '../../common/loopback.ts';
import { DEFAULT_RATE_LIMITS } from '../../domain/rate-budget/limits.ts';
import type { AccountStatus, ControlApi } from '../../ports/control-api.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import { type ApiAccount, withAccountKeys } from './accounts.ts';
import type { Caller } from './api-call.ts';
import {
  createDispatcher,
  DEFAULT_MAX_BODY_BYTES,
  DEFAULT_TIMEOUTS,
  type Timeouts,
  type ViaProxy,
} from './dispatcher.ts';
import { exchangeOver, withBudget, withMetrics } from './exchanges.ts';
import { createHttpTransport, type Transport } from './http-transport.ts';
import { createKeyGate, DEFAULT_KEY_PROBES, type KeyProbes } from './key-gate.ts';
import { createReadingBudget } from './memory-budget.ts';
import { permitsOf } from './permits.ts';
import { type Backoff, DEFAULT_BACKOFF, withRetries } from './retries.ts';

export interface ControlApiOptions {
  /** Ends in the version, e.g. `https://console.neon.tech/api/v2`; plain http only to loopback. */
  baseUrl: string;
  accounts: readonly ApiAccount[];
  metrics: Metrics;
  log?: Log;
  /** Shared with other users of the accounts; by default one of this client alone, at the platform's limits. */
  budget?: RateBudget;
  /** Allows plain http to other machines: the key is readable on the way. */
  allowPlainHttp?: boolean;
  /** Any that is not given has its default. */
  timeouts?: Partial<Timeouts>;
  maxBodyBytes?: number;
  backoff?: Backoff;
  keyProbes?: KeyProbes;
  /** Without it the API is reached directly. */
  proxy?: ViaProxy | undefined;
  userAgent?: string;
  /** 0..1, for the jitter of waits. */
  random?: () => number;
}

export interface CallerHandle {
  call: Caller;
  /** Those of the options, watched: what they say of their keys counts for `accountStatus`. */
  accounts: readonly ApiAccount[];
  permit: ControlApi['permit'];
  /** Whether each account's key is accepted, as far as it was tried. */
  accountStatus(): AccountStatus[];
  /** Ends what is under way, and refuses what comes after. */
  close(): Promise<void>;
}

/**
 * Everything between a call and the wire, each in a layer of its own; from the outside in: repeats under a deadline, the
 * account's key, the rate budget, metrics, `guard`, HTTP. Throws if the base URL can't be used.
 */
export function createCaller(options: ControlApiOptions, guard: (send: Transport) => Transport): CallerHandle {
  const { accounts, metrics } = options;
  const baseUrl = parseBaseUrl(options.baseUrl, { allowPlainHttp: options.allowPlainHttp ?? false });
  const dispatcher = createDispatcher({
    baseUrl,
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    proxy: options.proxy,
  });
  const transport = guard(createHttpTransport({ baseUrl, dispatcher, userAgent: options.userAgent ?? 'ebb' }));
  const budget = options.budget ?? ownBudget();
  const exchange = withBudget(withMetrics(exchangeOver(transport), metrics), { budget, metrics, log: options.log });
  const closing = new AbortController();
  // Every call under way listens to it, and takes its listener away when it ends.
  setMaxListeners(0, closing.signal);
  const gate = createKeyGate(options.keyProbes ?? DEFAULT_KEY_PROBES);
  const keys = withAccountKeys(exchange, { accounts, gate, metrics, log: options.log });
  const call = withRetries(keys.send, {
    backoff: options.backoff ?? DEFAULT_BACKOFF,
    random: options.random ?? Math.random,
    closing: closing.signal,
    onThrottledWait: (waitMs) => metrics.increment('ebb_api_throttled_seconds_total', {}, waitMs / 1000),
  });
  return {
    call,
    accounts: keys.accounts,
    permit: permitsOf(budget, closing.signal),
    accountStatus: () =>
      keys.status().map((status) => {
        const stalledMs = budget.stalledMs(status.account);
        return stalledMs === 0 ? status : { ...status, stalledMs };
      }),
    async close() {
      closing.abort(new Error('the client is closed'));
      // It waits for connections that are being made, which nobody needs any more.
      await Promise.race([dispatcher.destroy(), sleep(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

const CLOSE_MS = 1_000;

function ownBudget(): RateBudget {
  return createReadingBudget({ alone: true, limits: DEFAULT_RATE_LIMITS });
}

/**
 * The base URL of a control API, without a slash at its end. Throws an Error whose message says what to do: not a URL, a
 * password, query or fragment in it, or plain http to another machine without `allowPlainHttp` (the key would be readable
 * on the way).
 */
function parseBaseUrl(text: string, options: { allowPlainHttp?: boolean } = {}): URL {
  if (!URL.canParse(text)) throw new Error('The API URL is not a URL; it looks like https://console.neon.tech/api/v2.');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new Error(`The API URL must begin with https://, not ${url.protocol}//.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('The API URL must not hold a user or password; the key comes from EBB_API_KEY or a file.');
  }
  if (url.search !== '' || url.hash !== '') throw new Error('The API URL must end with its path, e.g. /api/v2.');
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && options.allowPlainHttp !== true) {
    throw new Error(`The API URL uses plain http to ${url.hostname}, which would show the key; use https://.`);
  }
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}
