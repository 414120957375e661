/** One request that wants to be sent. */
export interface BudgetRequest {
  account: string;
  /** Method and path template, as in errors and metrics. */
  route: string;
  /** Writes go before reads that wait for the same budget. */
  priority: 'write' | 'read';
}

/**
 * How many requests an account may send. The limit is the control API's, per account and shared by all who use it; so is the
 * budget, as far as the implementation reaches. All times are real milliseconds.
 */
export interface RateBudget {
  /** Waits until the request may be sent. Rejects with the signal's reason when aborted. */
  acquire(request: BudgetRequest, signal: AbortSignal): Promise<{ waitedMs: number }>;
  /** Tells that a request of the account was answered 429: nothing is sent for `retryAfterMs`, 5 minutes at most, and more slowly after it. */
  throttled(account: string, retryAfterMs: number | undefined): Promise<void>;
  /** Tells that a request of the account was answered, and not with 429. */
  answered(account: string): void;
  /** For how long requests have waited without an answer but 429; 0 while they are answered, or nobody wants to send any. */
  stalledMs(account: string): number;
  /** How much of what is allowed in a minute this process used in the last one, from 0; 1 is all of it. */
  usedRatio(account: string): number;
}
