/** The verdict on a request; `retryAfterSeconds` is when the oldest counted request leaves the window. */
type Verdict = { ok: true } | { ok: false; retryAfterSeconds: number; message: string };

export interface RateLimits {
  /** Counts a request of an account on a route at a real instant, if it is let through. */
  admit(account: string, route: string, realMs: number): Verdict;
}

const MINUTE_MS = 60_000;

interface Window {
  limit: number;
  lengthMs: number;
  message: string;
}

/** A sliding log: the instants of the last `limit` requests in a ring, so that a check costs the same at any limit. */
function createLog(limit: number): { oldestMs(): number | undefined; add(realMs: number): void } {
  const instants: number[] = [];
  let next = 0;
  return {
    oldestMs: () => (instants.length < limit ? undefined : instants[next]),
    add(realMs) {
      instants[next] = realMs;
      next = (next + 1) % limit;
    },
  };
}

interface RateLimitOptions {
  /** Requests of an account in any minute, over all routes. */
  perMinute?: number;
  /** Requests of an account in any second on one route. */
  perSecond?: number;
  /** `bucket`: stricter than documented, a bucket of `perSecond` requests over all routes that fills at the rate of the minute. */
  kind?: LimitKind;
}

export const LIMIT_KINDS = ['windows', 'bucket'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

/** Refused requests don't count. */
export function createRateLimits(options: RateLimitOptions): RateLimits {
  const { kind = 'windows', perMinute, perSecond = 1 } = options;
  return kind === 'bucket' && perMinute !== undefined ? buckets(perMinute, perSecond) : windows(options);
}

function buckets(perMinute: number, capacity: number): RateLimits {
  const intervalMs = MINUTE_MS / perMinute;
  const states = new Map<string, { tokens: number; atMs: number }>();
  return {
    admit(account, _route, realMs) {
      const { tokens: before, atMs } = states.get(account) ?? { tokens: capacity, atMs: realMs };
      const tokens = Math.min(capacity, before + (realMs - atMs) / intervalMs);
      states.set(account, { tokens: tokens < 1 ? tokens : tokens - 1, atMs: realMs });
      if (tokens >= 1) return { ok: true };
      const message = `rate limit exceeded: ${perMinute} requests per minute, ${capacity} at once`;
      return { ok: false, retryAfterSeconds: Math.ceil(((1 - tokens) * intervalMs) / 1000), message };
    },
  };
}

/** Counts exactly, over sliding windows of real time. */
function windows(options: RateLimitOptions): RateLimits {
  const minute = window(options.perMinute, MINUTE_MS, 'minute');
  const second = window(options.perSecond, 1_000, 'second');
  const logs = new Map<string, ReturnType<typeof createLog>>();
  const logOf = (key: string, limit: number): ReturnType<typeof createLog> => {
    const log = logs.get(key) ?? createLog(limit);
    logs.set(key, log);
    return log;
  };
  return {
    admit(account, route, realMs) {
      const windows = [
        ...(minute === undefined ? [] : [{ window: minute, log: logOf(account, minute.limit) }]),
        ...(second === undefined ? [] : [{ window: second, log: logOf(`${account} ${route}`, second.limit) }]),
      ];
      for (const { window, log } of windows) {
        const oldestMs = log.oldestMs();
        const waitMs = oldestMs === undefined ? 0 : oldestMs + window.lengthMs - realMs;
        if (waitMs > 0) return { ok: false, retryAfterSeconds: Math.ceil(waitMs / 1000), message: window.message };
      }
      for (const { log } of windows) log.add(realMs);
      return { ok: true };
    },
  };
}

function window(limit: number | undefined, lengthMs: number, name: string): Window | undefined {
  if (limit === undefined) return undefined;
  return { limit, lengthMs, message: `rate limit exceeded: ${limit} requests per ${name}` };
}
