/** What the control API allows an account, or the part of it that ebb uses. */
export interface RateLimits {
  /** Requests in any minute, over all routes. */
  perMinute: number;
  /** Requests in any second, on one route. */
  perRouteSecond: number;
  /**
   * How much longer one request may be on its way than another, milliseconds. The service counts when a request arrives, so those
   * sent within a second and the jitter can arrive within a second.
   */
  jitterMs: number;
}

/** As the vendor documents them; the jitter is ebb's own. */
export const DEFAULT_RATE_LIMITS: RateLimits = { perMinute: 700, perRouteSecond: 40, jitterMs: 250 };

/** What is read in the background may use this share of the limit, each purpose for itself. */
const BACKGROUND_SHARE = 0.1;

/** How many requests of an account one purpose of the background may use in this time, in milliseconds; at least 1. */
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
 * When requests of one route can be sent at the latest, each by its own deadline, if nothing else is sent: a minute and a second never have
 * more than the limits, each longer by the jitter. Deadlines descend, and so do the instants; all in milliseconds.
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
