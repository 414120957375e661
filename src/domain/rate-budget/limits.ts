import { MINUTE_MS, SECOND_MS } from '../time/units.ts';

/** The control API's rate limits for an account, or the part of them that ebb uses. */
export interface RateLimits {
  /** The maximum number of requests in any minute, over all routes. */
  perMinute: number;
  /** The maximum number of requests in any second, on one route. */
  perRouteSecond: number;
  /**
   * The largest difference between the transit times of two requests, in milliseconds. The service counts arrivals, so requests sent
   * within a second plus the jitter can arrive within one second.
   */
  jitterMs: number;
}

/** The limits that the vendor documents, with ebb's own jitter. */
export const DEFAULT_RATE_LIMITS: RateLimits = { perMinute: 700, perRouteSecond: 40, jitterMs: 250 };

/** The share of the limit that each background purpose may use for reads. */
const BACKGROUND_SHARE = 0.1;

/** How many requests per account one background purpose may send in `ms` milliseconds; at least 1. */
export function backgroundRequests(ms: number): number {
  return Math.ceil((ms * DEFAULT_RATE_LIMITS.perMinute * BACKGROUND_SHARE) / MINUTE_MS);
}

/**
 * The limits of an account with `perMinute` requests per minute, without the share `reserve` (0 to less than 1). A higher limit per
 * minute is assumed to raise the limit per second in proportion.
 */
export function limitsOf(perMinute: number, reserve: number): RateLimits {
  const { perRouteSecond, perMinute: defaultPerMinute, jitterMs } = DEFAULT_RATE_LIMITS;
  const perSecond = Math.max(perRouteSecond, (perRouteSecond * perMinute) / defaultPerMinute);
  // Corrects floating-point error: 700 × (1 − 0.9) is slightly less than 70.
  const withoutReserve = (limit: number) => Math.max(1, Math.floor(limit * (1 - reserve) + 1e-9));
  return { perMinute: withoutReserve(perMinute), perRouteSecond: withoutReserve(perSecond), jitterMs };
}

/**
 * The latest send times, on one route, at which requests keep their deadlines and the limits, if nothing else is sent. Windows are
 * extended by the jitter. Deadlines and results are in milliseconds, descending.
 */
export function latestSends(deadlinesMs: readonly number[], limits: RateLimits): number[] {
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const sends: number[] = [];
  const roomBefore = (limit: number, windowMs: number) =>
    (sends[sends.length - limit] ?? Number.POSITIVE_INFINITY) - windowMs;
  for (const deadlineMs of deadlinesMs) {
    const inMinute = roomBefore(perMinute, MINUTE_MS + jitterMs);
    const inSecond = roomBefore(perRouteSecond, SECOND_MS + jitterMs);
    sends.push(Math.min(deadlineMs, roomBefore(1, 0), inMinute, inSecond));
  }
  return sends;
}
