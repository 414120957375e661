import type { Priority } from '../domain/rate-budget/grant.ts';

/** One request that wants to be sent. */
export interface BudgetRequest {
  account: string;
  /** Method and path template, as in errors and metrics. */
  route: string;
  /** More urgent requests go first, in all processes that share the budget. */
  priority: Priority;
  /** Its permit came too late: it goes before others that are as urgent. */
  isAgain?: boolean;
}

/** Leave to send one request, at an instant that may be a little ahead: until then it can be prepared. */
export interface Grant {
  waitedMs: number;
  /**
   * Waits for the instant at which the request is to be sent. False if that is over, or the service has refused requests since: then
   * nothing may be sent by it, unless `orLater`, which only a 429 makes false. Rejects with the signal's reason when aborted.
   */
  comesDue(signal: AbortSignal, options?: { orLater?: boolean }): Promise<boolean>;
  /** Nothing is sent by it: it goes to the next that waits for the same, if any. */
  giveBack(): void;
}

/**
 * The rate budget of an account. The control API's limit is shared by all users of the account; so is the budget, as far as the
 * implementation reaches. All times are real milliseconds.
 */
export interface RateBudget {
  /** Waits until it is known when the request may be sent. Rejects with the signal's reason when aborted. */
  acquire(request: BudgetRequest, signal: AbortSignal): Promise<Grant>;
  /**
   * Tells that a request of the account was answered 429: nothing is sent for `retryAfterMs`, 5 minutes at most, and less from then
   * on.
   */
  throttled(account: string, retryAfterMs: number | undefined): Promise<void>;
  /** Tells that a request of the account was answered, and not with 429. */
  answered(account: string): void;
  /** The time that requests have waited without an answer but 429; 0 while they are answered, or none is waiting. */
  stalledMs(account: string): number;
  /** This process's share of the minute's limit in the last minute, from 0; 1 is all of it. */
  usedRatio(account: string): number;
  /** The level learnt from 429, as far as this process knows: 0 if the limits are used as documented. See `levelAt`. */
  level(account: string): number;
}
