import { setTimeout as sleep } from 'node:timers/promises';
import { timerMs } from '../../ports/clock.ts';
import type { BudgetRequest, RateBudget } from '../../ports/rate-budget.ts';
import { type Granted, LONGEST_PAUSE_MS } from './token-bucket.ts';

/** Where the tokens are kept: in this process, or shared. */
export interface TokenSource {
  /** Takes as many tokens of the account as there are, `wanted` at most; where there is none, one that is yet to come. */
  take(account: string, wanted: number): Promise<Granted>;
  /** After a 429: nothing for `pauseMs`, 5 minutes at most, and fewer tokens for a while. */
  slowDown(account: string, pauseMs: number | undefined): Promise<void>;
}

interface Waiter {
  priority: BudgetRequest['priority'];
  sinceMs: number;
  resolve(answer: { waitedMs: number }): void;
  reject(reason: unknown): void;
}

interface Line {
  waiters: Waiter[];
  serving: boolean;
  pausedUntilMs: number;
  /** Since when requests want to be sent and none is answered but with 429. */
  stalledSinceMs: number | undefined;
  /** When a request last wanted to be sent. */
  wantedAtMs: number;
  /** When the requests of the last minute were let through. */
  letThroughMs: number[];
}

const MINUTE_MS = 60_000;

/**
 * A budget over a source of tokens. Requests of one account wait in one line, writes first. Tokens are taken for the line, not by
 * each waiter, and no more than can be used at once, so that a write that comes late doesn't queue behind tokens of reads.
 */
export function createRateBudget(options: {
  tokens: TokenSource;
  perMinute: number;
  /** Real milliseconds from an arbitrary start, never running backwards. */
  monotonicMs?: () => number;
}): RateBudget {
  const { tokens, perMinute, monotonicMs = () => performance.now() } = options;
  const lines = new Map<string, Line>();

  function lineOf(account: string): Line {
    const line = lines.get(account) ?? newLine();
    lines.set(account, line);
    return line;
  }

  async function serve(account: string, line: Line): Promise<void> {
    line.serving = true;
    try {
      while (line.waiters.length > 0) {
        const granted = await tokens.take(account, line.waiters.length);
        await pause(granted.waitMs);
        const pausedMs = line.pausedUntilMs - monotonicMs();
        await pause(pausedMs);
        // After a 429 the rest of what was granted before it is let go: the service has just refused as many.
        const usable = pausedMs > 0 ? 1 : granted.tokens;
        for (let token = 0; token < usable; token += 1) nextOf(line, monotonicMs())?.();
      }
    } catch (error) {
      for (const waiter of line.waiters.splice(0)) waiter.reject(error);
    } finally {
      line.serving = false;
    }
  }

  return {
    acquire({ account, priority }, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const line = lineOf(account);
        const leave = () => {
          line.waiters = line.waiters.filter((other) => other !== waiter);
          reject(signal.reason);
        };
        const settle =
          <T>(end: (value: T) => void) =>
          (value: T) => {
            signal.removeEventListener('abort', leave);
            end(value);
          };
        const waiter: Waiter = {
          priority,
          sinceMs: monotonicMs(),
          resolve: settle(resolve),
          reject: settle(reject),
        };
        line.waiters.push(waiter);
        line.wantedAtMs = waiter.sinceMs;
        line.stalledSinceMs ??= waiter.sinceMs;
        signal.addEventListener('abort', leave, { once: true });
        if (!line.serving) void serve(account, line);
      });
    },
    async throttled(account, retryAfterMs) {
      const line = lineOf(account);
      const pauseMs = Math.min(retryAfterMs ?? 0, LONGEST_PAUSE_MS);
      line.pausedUntilMs = Math.max(line.pausedUntilMs, monotonicMs() + pauseMs);
      await tokens.slowDown(account, retryAfterMs);
    },
    answered(account) {
      lineOf(account).stalledSinceMs = undefined;
    },
    stalledMs(account) {
      const line = lineOf(account);
      const nowMs = monotonicMs();
      // Who gave up, and has wanted nothing for longer than any pause, waits for nothing.
      if (nowMs - line.wantedAtMs > LONGEST_PAUSE_MS) line.stalledSinceMs = undefined;
      return nowMs - (line.stalledSinceMs ?? nowMs);
    },
    usedRatio: (account) => recent(lineOf(account), monotonicMs()).length / perMinute,
  };
}

function newLine(): Line {
  return {
    waiters: [],
    serving: false,
    pausedUntilMs: 0,
    stalledSinceMs: undefined,
    wantedAtMs: 0,
    letThroughMs: [],
  };
}

/** The one whose turn it is leaves the line: the first write, else the first read. */
function nextOf(line: Line, nowMs: number): (() => void) | undefined {
  const write = line.waiters.findIndex((waiter) => waiter.priority === 'write');
  const [waiter] = line.waiters.splice(Math.max(0, write), 1);
  if (waiter === undefined) return undefined;
  return () => {
    recent(line, nowMs).push(nowMs);
    waiter.resolve({ waitedMs: nowMs - waiter.sinceMs });
  };
}

/** When the requests of the last minute were let through; forgets those before. */
function recent({ letThroughMs }: Line, nowMs: number): number[] {
  const sinceMs = nowMs - MINUTE_MS;
  while ((letThroughMs[0] ?? sinceMs) < sinceMs) letThroughMs.shift();
  return letThroughMs;
}

/** Doesn't keep the process alive: each waiting call has a deadline that does. */
async function pause(ms: number): Promise<void> {
  if (ms > 0) await sleep(timerMs(ms), undefined, { ref: false });
}
