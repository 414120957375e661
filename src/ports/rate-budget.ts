import type { Priority } from '../domain/rate-budget/grant.ts';

export interface BudgetRequest {
  account: string;
  /** Method and path template, as in errors and metrics. */
  route: string;
  /** More urgent requests go first, in all processes that share the budget. */
  priority: Priority;
  /** True if the last grant of this request came too late: the request goes before others of its priority. */
  isAgain?: boolean;
}

/** Allows one request, at an instant slightly in the future, so that the request can be prepared. */
export interface Grant {
  waitedMs: number;
  /**
   * Waits for the instant of the grant. False if the request may not be sent: it is too late (unless `evenIfLate`), or the service has
   * answered 429 since the grant. Rejects with the signal's reason when aborted.
   */
  waitUntilDue(signal: AbortSignal, options?: { evenIfLate?: boolean }): Promise<boolean>;
  /** Passes the unused grant to the next request of its route, if any waits. */
  giveBack(): void;
}

/** This process's requests that wait for the limit. */
export interface WaitingRequests {
  writes: number;
  reads: number;
  /** The requests that may be sent in a minute. */
  perMinute: number;
  /** How long the first has waited, in milliseconds. */
  waitedMs: number;
  /** About how many milliseconds it takes until the last waiting write is sent; if no write waits, until the last request is sent. */
  inMs: number;
}

/**
 * The rate budget of accounts. All programs that use an account share the control API's limit; the budget covers only those that use this
 * budget. All times are real milliseconds.
 */
export interface RateBudget {
  /** Waits for a grant. Rejects with the signal's reason when aborted. */
  acquire(request: BudgetRequest, signal: AbortSignal): Promise<Grant>;
  /** Reports a 429: nothing is sent for `retryAfterMs` (5 minutes at most), and less from then on. */
  throttled(account: string, retryAfterMs: number | undefined): Promise<void>;
  /** Reports an answer other than 429. */
  answered(account: string): void;
  /** The time that requests have waited without any answer but 429; 0 while they are answered, or none waits. */
  stalledMs(account: string): number;
  /** The waiting requests, while nothing may be sent for a second or longer; undefined otherwise. */
  waiting(account: string): WaitingRequests | undefined;
  /** This process's requests of the last minute, as a share of the limit. */
  usedRatio(account: string): number;
  /** The level learnt from 429, as last seen by this process; 0: the documented limits. See `levelAt`. */
  level(account: string): number;
  /** Milliseconds since the last 429, and until level 0 unless another comes. Undefined at level 0, and if unknown. */
  learnt(account: string): { agoMs: number; normalInMs: number } | undefined;
}
