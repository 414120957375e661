/** A bucket of tokens: `capacity` at once, then one every `intervalMs`. */
export interface Bucket {
  capacity: number;
  intervalMs: number;
}

/** What the control API allows an account. */
export interface RateLimits {
  /** Requests in any minute, over all routes. */
  perMinute: number;
  /** Requests in any second, on one route. */
  perRouteSecond: number;
  /**
   * How much longer one request may be on its way than another, milliseconds. The service counts when a request arrives, so
   * those sent within `60 s + jitter` can arrive within 60 s.
   */
  jitterMs: number;
}

export const DEFAULT_RATE_LIMITS: RateLimits = { perMinute: 700, perRouteSecond: 40, jitterMs: 500 };

/** Who is granted more in a minute is taken to be granted as much more in a second. */
export function limitsOf(perMinute: number): Pick<RateLimits, 'perMinute' | 'perRouteSecond'> {
  const { perRouteSecond, perMinute: usual } = DEFAULT_RATE_LIMITS;
  return { perMinute, perRouteSecond: Math.max(perRouteSecond, (perRouteSecond * perMinute) / usual) };
}

/** The share of the limit that the steady rate uses; the rest of the minute's limit is the burst. */
const STEADY_SHARE = 0.96;

/**
 * The bucket that never exceeds the limits, whatever the mix of routes: `capacity + rate × (60 s + jitter) ≤ perMinute` and
 * `capacity + rate × (1 s + jitter) ≤ perRouteSecond`. With 700 and 40: 11.2 a second, and 28 at once without jitter, 22 with
 * half a second of it.
 */
export function bucketFor(limits: RateLimits): Bucket {
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const perSecond = Math.min((perMinute * STEADY_SHARE) / 60, perRouteSecond / 2);
  const jitterS = jitterMs / 1000;
  const burst = Math.min(perMinute - perSecond * (60 + jitterS), perRouteSecond - perSecond * (1 + jitterS));
  // The margin keeps a burst of exactly 28 from becoming 27 by a rounding error.
  return { capacity: Math.max(1, Math.floor(burst + 1e-9)), intervalMs: 1000 / perSecond };
}

/**
 * A bucket's state: `fullAtMs` is when it is full again (GCRA's theoretical arrival time). After a 429 the bucket fills more slowly:
 * each of the `slowdowns` doubles the interval, and one is forgiven for every quiet minute.
 */
export interface BucketState {
  fullAtMs: number;
  slowdowns: number;
  slowedAtMs: number;
}

export const FULL_BUCKET: BucketState = { fullAtMs: 0, slowdowns: 0, slowedAtMs: 0 };

export const FORGIVEN_AFTER_MS = 60_000;
export const MAX_SLOWDOWNS = 3;
/** Answers 429 closer together than this are one event: they were sent before the first was known. */
export const SAME_EVENT_MS = 1_000;
/** How long nothing is sent after a 429 that doesn't say it. */
export const DEFAULT_PAUSE_MS = 1_000;
/**
 * The longest that nothing is sent because of one answer, whatever it asks for: a changed compute must not wait for a day. The next
 * request asks again.
 */
export const LONGEST_PAUSE_MS = 300_000;

function slowdownsAt(state: BucketState, nowMs: number): number {
  return Math.max(0, state.slowdowns - Math.floor((nowMs - state.slowedAtMs) / FORGIVEN_AFTER_MS));
}

/** So many requests may be sent after `waitMs` milliseconds. */
export interface Granted {
  tokens: number;
  waitMs: number;
}

/** Takes as many tokens as there are, `wanted` at most; where there is none, one that is yet to come. */
export function takeTokens(
  bucket: Bucket,
  state: BucketState,
  nowMs: number,
  wanted: number,
): Granted & { state: BucketState } {
  const intervalMs = bucket.intervalMs * 2 ** slowdownsAt(state, nowMs);
  const fromMs = Math.max(believable(state.fullAtMs, bucket.capacity * intervalMs, nowMs), nowMs);
  const there = Math.floor((nowMs - fromMs) / intervalMs + bucket.capacity);
  const tokens = Math.max(1, Math.min(wanted, there));
  const fullAtMs = fromMs + tokens * intervalMs;
  const waitMs = Math.max(0, fullAtMs - bucket.capacity * intervalMs - nowMs);
  return { tokens, waitMs, state: { ...state, fullAtMs } };
}

/** An older version, or a clock that was set, may have left an instant behind that no pause explains. */
function believable(fullAtMs: number, fillingMs: number, nowMs: number): number {
  return Math.min(fullAtMs, nowMs + LONGEST_PAUSE_MS + fillingMs);
}

/** Empties the bucket for `pauseMs`, {@link LONGEST_PAUSE_MS} at most, and slows it down. */
export function slowDown(bucket: Bucket, state: BucketState, nowMs: number, pauseMs = DEFAULT_PAUSE_MS): BucketState {
  const before = slowdownsAt(state, nowMs);
  const sameEvent = state.slowdowns > 0 && nowMs - state.slowedAtMs < SAME_EVENT_MS;
  const slowdowns = sameEvent ? before : Math.min(MAX_SLOWDOWNS, before + 1);
  const intervalMs = bucket.intervalMs * 2 ** slowdowns;
  const emptyUntilMs = nowMs + Math.min(pauseMs, LONGEST_PAUSE_MS) + (bucket.capacity - 1) * intervalMs;
  return {
    fullAtMs: Math.max(believable(state.fullAtMs, bucket.capacity * intervalMs, nowMs), emptyUntilMs),
    slowdowns,
    slowedAtMs: sameEvent ? state.slowedAtMs : nowMs,
  };
}
