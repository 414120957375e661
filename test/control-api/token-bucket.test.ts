import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Bucket,
  bucketFor,
  DEFAULT_RATE_LIMITS,
  FULL_BUCKET,
  LONGEST_PAUSE_MS,
  slowDown,
  takeTokens,
} from '../../src/adapters/control-api/token-bucket.ts';

/** The instants at which requests leave that were asked for at `askedMs`. */
function departures(bucket: Bucket, askedMs: number[]): number[] {
  let state = FULL_BUCKET;
  return askedMs.map((nowMs) => {
    const locked = takeTokens(bucket, state, nowMs, 1);
    state = locked.state;
    return nowMs + locked.waitMs;
  });
}

/** The most instants that fall into any window of this length. */
function mostWithin(instants: number[], windowMs: number): number {
  const sorted = [...instants].sort((a, b) => a - b);
  let first = 0;
  let most = 0;
  sorted.forEach((instant, index) => {
    while (instant - (sorted[first] ?? 0) >= windowMs) first += 1;
    most = Math.max(most, index - first + 1);
  });
  return most;
}

test('without jitter, 700 a minute and 40 a second are 28 at once and 11.2 a second', () => {
  const bucket = bucketFor({ perMinute: 700, perRouteSecond: 40, jitterMs: 0 });
  expect(bucket.capacity).toBe(28);
  expect(1000 / bucket.intervalMs).toBeCloseTo(11.2);
});

test('several tokens taken at once are those that one at a time would be, as far as they are there', () => {
  const bucket = { capacity: 20, intervalMs: 100 };
  const before = fc.record({
    fullAtMs: fc.integer({ min: 0, max: 20_000 }),
    slowdowns: fc.integer({ min: 0, max: 3 }),
    slowedAtMs: fc.constant<number>(9_000),
  });
  fc.assert(
    fc.property(before, fc.integer({ min: 1, max: 60 }), (start, wanted) => {
      const several = takeTokens(bucket, start, 10_000, wanted);
      const waits: number[] = [];
      let state = start;
      for (let locked = 0; locked < several.tokens; locked += 1) {
        const one = takeTokens(bucket, state, 10_000, 1);
        waits.push(one.waitMs);
        state = one.state;
      }
      expect(several.tokens).toBeLessThanOrEqual(wanted);
      expect(several.waitMs).toBe(Math.max(...waits));
      expect(several.state.fullAtMs).toBe(state.fullAtMs);
      if (several.tokens > 1) expect(several.waitMs).toBe(0);
      // None that was there is left lying while somebody wants it.
      if (several.tokens < wanted) expect(takeTokens(bucket, several.state, 10_000, 1).waitMs).toBeGreaterThan(0);
    }),
  );
});

test('whenever requests are asked for and however they are delayed on their way, no window of the service holds too many', () => {
  const limits = DEFAULT_RATE_LIMITS;
  const gaps = fc.array(
    fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 9_000 })),
    {
      minLength: 1_200,
      maxLength: 1_600,
    },
  );
  fc.assert(
    fc.property(gaps, fc.infiniteStream(fc.integer({ min: 0, max: limits.jitterMs })), (between, delays) => {
      let nowMs = 1_000;
      const asked = between.map((gap) => {
        nowMs += gap;
        return nowMs;
      });
      const arrived = departures(bucketFor(limits), asked).map((instant) => instant + delays.next().value);
      expect(mostWithin(arrived, 60_000)).toBeLessThanOrEqual(limits.perMinute);
      expect(mostWithin(arrived, 1_000)).toBeLessThanOrEqual(limits.perRouteSecond);
    }),
    { numRuns: 30 },
  );
});

test('while there is work, at least 95 % of the limit is used', () => {
  const sent = departures(bucketFor(DEFAULT_RATE_LIMITS), new Array<number>(3_000).fill(1_000));
  const lastMinute = sent.filter((instant) => instant >= 121_000 && instant < 181_000);
  expect(lastMinute.length).toBeGreaterThanOrEqual(0.95 * 700);
});

test('after a 429 nothing leaves for its pause, then slowly, and after quiet minutes as before', () => {
  const bucket = bucketFor(DEFAULT_RATE_LIMITS);
  const slowed = slowDown(bucket, FULL_BUCKET, 100_000, 5_000);
  const [first = 0, second = 0] = [takeTokens(bucket, slowed, 100_000, 1)].flatMap((locked) => [
    locked.waitMs,
    takeTokens(bucket, locked.state, 100_000, 1).waitMs,
  ]);
  expect(first).toBeCloseTo(5_000);
  expect(second - first).toBeCloseTo(2 * bucket.intervalMs);
  const oneEvent = slowDown(bucket, slowed, 100_200, 0);
  expect(oneEvent.slowdowns).toBe(1);
  const later = takeTokens(bucket, oneEvent, 400_000, 1);
  expect(takeTokens(bucket, later.state, 400_000, 1).state.fullAtMs - later.state.fullAtMs).toBeCloseTo(
    bucket.intervalMs,
  );
});

test('an instant that no pause explains is not waited for', () => {
  const bucket = bucketFor(DEFAULT_RATE_LIMITS);
  const farAhead = { ...FULL_BUCKET, fullAtMs: 30 * 86_400_000 };
  const locked = takeTokens(bucket, farAhead, 0, 1);
  expect(locked.waitMs).toBeLessThanOrEqual(LONGEST_PAUSE_MS + bucket.intervalMs);
  const slowed = slowDown(bucket, farAhead, 0, 0);
  expect(takeTokens(bucket, slowed, 0, 1).waitMs).toBeLessThanOrEqual(LONGEST_PAUSE_MS + 2 * bucket.intervalMs);
});
