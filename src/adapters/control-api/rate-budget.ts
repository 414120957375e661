import { setTimeout as sleep } from 'node:timers/promises';
import type { BudgetRequest, RateBudget } from '../../ports/rate-budget.ts';
import type { Granted } from './token-bucket.ts';

/** Where the tokens are kept: in this process, or shared. */
export interface TokenSource {
  /** Takes as many tokens of the account as there are, `wanted` at most; where there is none, one that is yet to come. */
  take(account: string, wanted: number): Promise<Granted>;
  /** After a 429: nothing for `pauseMs`, and fewer tokens for a while. */
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
  /** When the requests of the last minute were let through. */
  letThroughMs: number[];
}

const MINUTE_MS = 60_000;

/**
 * A budget over a source of tokens. Requests of one account wait in one line, writes first. Tokens are taken for the line, not by
 * each waiter, and no more than can be used at once, so that a write that comes late doesn't queue behind tokens of reads.
 */
export function createRateBudget(options: { tokens: TokenSource; perMinute: number }): RateBudget {
  const { tokens, perMinute } = options;
  const lines = new Map<string, Line>();

  function lineOf(account: string): Line {
    const line = lines.get(account) ?? { waiters: [], serving: false, pausedUntilMs: 0, letThroughMs: [] };
    lines.set(account, line);
    return line;
  }

  async function serve(account: string, line: Line): Promise<void> {
    line.serving = true;
    try {
      while (line.waiters.length > 0) {
        const granted = await tokens.take(account, line.waiters.length);
        await pause(granted.waitMs);
        const pausedMs = line.pausedUntilMs - performance.now();
        await pause(pausedMs);
        // After a 429 the rest of what was granted before it is let go: the service has just refused as many.
        const usable = pausedMs > 0 ? 1 : granted.tokens;
        for (let token = 0; token < usable; token += 1) nextOf(line)?.();
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
          sinceMs: performance.now(),
          resolve: settle(resolve),
          reject: settle(reject),
        };
        line.waiters.push(waiter);
        signal.addEventListener('abort', leave, { once: true });
        if (!line.serving) void serve(account, line);
      });
    },
    async throttled(account, retryAfterMs) {
      const line = lineOf(account);
      line.pausedUntilMs = Math.max(line.pausedUntilMs, performance.now() + (retryAfterMs ?? 0));
      await tokens.slowDown(account, retryAfterMs);
    },
    usedRatio: (account) => recent(lineOf(account)).length / perMinute,
  };
}

/** The one whose turn it is leaves the line: the first write, else the first read. */
function nextOf(line: Line): (() => void) | undefined {
  const write = line.waiters.findIndex((waiter) => waiter.priority === 'write');
  const [waiter] = line.waiters.splice(Math.max(0, write), 1);
  if (waiter === undefined) return undefined;
  return () => {
    const nowMs = performance.now();
    recent(line).push(nowMs);
    waiter.resolve({ waitedMs: nowMs - waiter.sinceMs });
  };
}

/** When the requests of the last minute were let through; forgets those before. */
function recent({ letThroughMs }: Line): number[] {
  const sinceMs = performance.now() - MINUTE_MS;
  while ((letThroughMs[0] ?? sinceMs) < sinceMs) letThroughMs.shift();
  return letThroughMs;
}

/** Doesn't keep the process alive: each waiting call has a deadline that does. */
async function pause(ms: number): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { ref: false });
}
