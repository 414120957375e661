import { MINUTE_MS } from './world/units.ts';

/** `retryAfterSeconds` is the time, rounded up, until this limit would admit a request. */
export type Verdict = { ok: true } | { ok: false; retryAfterSeconds: number; message: string };

export interface RateLimits {
  /** Admits a request of an account on a route, or refuses it. Only admitted requests count. `realMs`: real milliseconds from an arbitrary start. */
  admit(account: string, route: string, realMs: number): Verdict;
}

/** The instants of the last `limit` requests in a ring buffer, so that a check costs the same at any limit. */
function createLog(limit: number) {
  const instants: number[] = [];
  let next = 0;
  return {
    oldestMs: () => (instants.length < limit ? undefined : instants[next]),
    add(realMs: number) {
      instants[next] = realMs;
      next = (next + 1) % limit;
    },
  };
}

interface RateLimitOptions {
  /** Requests of an account in any minute, over all routes. */
  perMinute?: number | undefined;
  /** Requests of an account in any second on one route. */
  perSecond?: number | undefined;
  /** `bucket` is stricter than documented: a token bucket over all routes, of `perSecond` tokens, refilled at `perMinute`. It needs `perMinute`. */
  kind?: LimitKind | undefined;
}

export const LIMIT_KINDS = ['windows', 'bucket'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

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
  const { perMinute, perSecond } = options;
  const logs = new Map<string, ReturnType<typeof createLog>>();
  const logOf = (key: string, limit: number): ReturnType<typeof createLog> => {
    const log = logs.get(key) ?? createLog(limit);
    logs.set(key, log);
    return log;
  };
  return {
    admit(account, route, realMs) {
      const limits = [
        { name: 'minute', lengthMs: MINUTE_MS, limit: perMinute, key: account },
        { name: 'second', lengthMs: 1_000, limit: perSecond, key: `${account} ${route}` },
      ].flatMap(({ limit, ...window }) =>
        limit === undefined ? [] : [{ ...window, limit, log: logOf(window.key, limit) }],
      );
      for (const { name, lengthMs, limit, log } of limits) {
        const oldestMs = log.oldestMs();
        const waitMs = oldestMs === undefined ? 0 : oldestMs + lengthMs - realMs;
        if (waitMs <= 0) continue;
        const message = `rate limit exceeded: ${limit} requests per ${name}`;
        return { ok: false, retryAfterSeconds: Math.ceil(waitMs / 1000), message };
      }
      for (const { log } of limits) log.add(realMs);
      return { ok: true };
    },
  };
}
