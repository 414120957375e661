/** The control API's limits for an account, or the part of them that ebb uses. */
export interface RateLimits {
  /** Requests in any minute, over all routes. */
  perMinute: number;
  /** Requests in any second, on one route. */
  perRouteSecond: number;
  /**
   * The largest difference between the transit times of two requests, milliseconds. The service counts arrivals, so requests sent within a
   * second and the jitter can arrive within a second.
   */
  jitterMs: number;
}

/** As the vendor documents them; the jitter is ebb's own. */
export const DEFAULT_RATE_LIMITS: RateLimits = { perMinute: 700, perRouteSecond: 40, jitterMs: 250 };

/** The share of the limit for readings in the background, each purpose for itself. */
const BACKGROUND_SHARE = 0.1;

/** The requests of an account that one background purpose may send in this time, in milliseconds; at least 1. */
export function backgroundRequests(ms: number): number {
  return Math.ceil((ms * DEFAULT_RATE_LIMITS.perMinute * BACKGROUND_SHARE) / 60_000);
}

/**
 * The limits of an account that is granted `perMinute` requests, without the share `reserve` (0 to less than 1). Who is granted more
 * in a minute is taken to be granted as much more in a second.
 */
export function limitsOf(perMinute: number, reserve: number): RateLimits {
  const { perRouteSecond, perMinute: usual, jitterMs } = DEFAULT_RATE_LIMITS;
  const perSecond = Math.max(perRouteSecond, (perRouteSecond * perMinute) / usual);
  const left = (limit: number) => Math.max(1, Math.floor(limit * (1 - reserve) + 1e-9));
  return { perMinute: left(perMinute), perRouteSecond: left(perSecond), jitterMs };
}

/**
 * The latest send times of requests of one route, each by its own deadline, if nothing else is sent: a minute and a second, each longer by
 * the jitter, never exceed the limits. Deadlines descend, and so do the results; all in milliseconds.
 */
export function latestSends(deadlinesMs: readonly number[], limits: RateLimits): number[] {
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const sends: number[] = [];
  const roomBefore = (limit: number, windowMs: number) =>
    (sends[sends.length - limit] ?? Number.POSITIVE_INFINITY) - windowMs;
  for (const deadlineMs of deadlinesMs) {
    const inMinute = roomBefore(perMinute, 60_000 + jitterMs);
    const inSecond = roomBefore(perRouteSecond, 1_000 + jitterMs);
    sends.push(Math.min(deadlineMs, roomBefore(1, 0), inMinute, inSecond));
  }
  return sends;
}
