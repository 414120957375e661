import { describeLevel, LONGEST_PAUSE_MS } from '../../domain/rate-budget/grant.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import type { BudgetRequest, RateBudget } from '../../ports/rate-budget.ts';
import type { Log, Metrics } from '../../ports/telemetry.ts';
import { parseRetryAfter } from './answers.ts';
import { type ApiCall, isWrite, routeOf } from './api-call.ts';
import { DeadlinePassed, expireIfLate, whyAborted } from './deadline.ts';
import type { Exchange, Transport } from './http-transport.ts';

/** Sends a call once, under a key. Never throws. */
export type SendExchange = (call: ApiCall, key: string, signal: AbortSignal) => Promise<Exchange>;

export function exchangeOver(transport: Transport, newId: NewId): SendExchange {
  return ({ method, path, body, requestId = newId() }, key, signal) =>
    transport({ method, path, key, requestId, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }, signal);
}

/** Counts and times requests, and notes when they were sent; one without an answer is counted under the code of its failure. */
export function withMetrics(
  send: SendExchange,
  { metrics, clock }: { metrics: Metrics; clock: Pick<Clock, 'monotonicMs'> },
): SendExchange {
  return async (call, key, signal) => {
    const startedMs = clock.monotonicMs();
    const exchange = await send(call, key, signal);
    const route = routeOf(call);
    const code = exchange.kind === 'answer' ? String(exchange.status) : exchange.code;
    metrics.increment('ebb_api_requests_total', { route, code });
    metrics.observe('ebb_api_request_duration_seconds', { route }, (clock.monotonicMs() - startedMs) / 1000);
    return { ...exchange, sentAtMonotonicMs: startedMs };
  };
}

/** Pauses of at least this length are logged. */
const LONG_PAUSE_MS = 60_000;

/** Sends only when the budget allows it, and reports every answer to the budget. */
export function withBudget(
  send: SendExchange,
  options: { budget: RateBudget; clock: Pick<Clock, 'realDelayMs'>; metrics: Metrics; log?: Log | undefined },
): SendExchange {
  const { budget, clock, metrics, log } = options;
  const pausedAccounts = new Set<string>();
  const levels = new Map<string, number>();

  function reviewLevel(account: string): void {
    const level = budget.level(account);
    const before = levels.get(account);
    if (level === before) return;
    levels.set(account, level);
    metrics.set('ebb_api_limit_level', { account }, level);
    if (level === (before ?? 0)) return;
    const fields = { event: 'ebb.api_limit_learned', account, limit_level: level };
    if (level === 0) log?.info(fields, `the documented rate limit is used for account ${account} again`);
    else if (level < (before ?? 0))
      log?.info(fields, `account ${account}: more of the rate limit is used again: ${describeLevel(level)}`);
    else
      log?.warn(fields, `account ${account} gets less than the documented rate limit (429): ${describeLevel(level)}`);
  }

  async function throttled(account: string, retryAfter: string | undefined): Promise<void> {
    const askedMs = parseRetryAfter(retryAfter, clock);
    await budget.throttled(account, askedMs);
    reviewLevel(account);
    if (askedMs === undefined || askedMs < LONG_PAUSE_MS || pausedAccounts.has(account)) return;
    pausedAccounts.add(account);
    const askedSeconds = Math.round(askedMs / 1000);
    const seconds = Math.round(Math.min(askedMs, LONGEST_PAUSE_MS) / 1000);
    log?.warn(
      { event: 'ebb.api_paused', account, asked_seconds: askedSeconds, seconds },
      `the control API asks account ${account} to wait ${askedSeconds} s (429); nothing is sent for it for ${seconds} s, then it is asked again`,
    );
  }

  function answered(account: string): void {
    budget.answered(account);
    if (!pausedAccounts.delete(account)) return;
    log?.info({ event: 'ebb.api_resumed', account }, `the control API answers account ${account} again`);
  }

  return async (call, key, signal) => {
    const priority = call.priority ?? (isWrite(call) ? 'lowering' : 'read');
    try {
      const request = { account: call.account, route: routeOf(call), priority };
      const waitedMs = await waitForTurn(budget, request, { signal, permit: call.permit });
      reviewLevel(call.account);
      metrics.set('ebb_api_budget_used_ratio', { account: call.account }, budget.usedRatio(call.account));
      if (waitedMs > 0) metrics.increment('ebb_api_throttled_seconds_total', {}, waitedMs / 1000);
      expireIfLate(signal);
      signal.throwIfAborted();
    } catch (error) {
      return notSent(signal, error);
    }
    const exchange = await send(call, key, signal);
    if (exchange.kind === 'answer' && exchange.status === 429) await throttled(call.account, exchange.retryAfter);
    else if (exchange.kind === 'answer') answered(call.account);
    return exchange;
  };
}

/** The last of this many grants is used even if it is late. Otherwise a process that is always late would never send anything. */
const MAX_GRANTS = 4;

/** Waits until the request may be sent, and returns the milliseconds spent waiting. A grant that came too late is replaced. */
async function waitForTurn(
  budget: RateBudget,
  request: BudgetRequest,
  { signal, permit }: { signal: AbortSignal; permit: ApiCall['permit'] },
): Promise<number> {
  let grant = permit?.take() ?? (await budget.acquire(request, signal));
  let { waitedMs } = grant;
  for (let tries = 1; !(await grant.waitUntilDue(signal, { evenIfLate: tries >= MAX_GRANTS })); tries += 1) {
    grant = await budget.acquire({ ...request, isAgain: true }, signal);
    waitedMs += grant.waitedMs;
  }
  return waitedMs;
}

function notSent(signal: AbortSignal, error: unknown): Exchange {
  const failure = { kind: 'failure', mayHaveArrived: false } as const;
  if (!signal.aborted) return { ...failure, code: 'unavailable', message: `not sent: ${String(error)}` };
  const code = signal.reason instanceof DeadlinePassed ? 'throttled' : 'timeout';
  return { ...failure, code, message: `not sent, it waited for the rate budget: ${whyAborted(signal)}` };
}
