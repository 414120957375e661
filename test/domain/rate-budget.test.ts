import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  FIRST_PROBE_MS,
  grant,
  HALVED_MS,
  learn,
  levelAt,
  newRateBudget,
  PRIORITIES,
  PROBE_MS,
  type Priority,
  type RateBudgetState,
  steadyIntervalMs,
} from '../../src/domain/rate-budget/grant.ts';
import { DEFAULT_RATE_LIMITS, limitsOf, type RateLimits } from '../../src/domain/rate-budget/limits.ts';

const PATCH = 'PATCH';
const LIMITS = limitsOf(700, 0.05);
const START = 1_000_000;

interface Wish {
  route: string;
  priority?: Priority;
}

/** Sends `count` requests of one route as soon as the budget lets them, from an instant on: when they go, and the state after it. */
function sendAll(limits: RateLimits, start: RateBudgetState, count: number, { route, priority = 'raise' }: Wish) {
  let state = start;
  let nowMs = state.lastMs - state.offsetMs;
  const sentMs: number[] = [];
  while (sentMs.length < count) {
    const granted = grant(limits, state, nowMs, { route, priority, count: count - sentMs.length });
    sentMs.push(...granted.afterMs.map((afterMs) => nowMs + afterMs));
    state = granted.state;
    nowMs += granted.waitMs;
  }
  return { sentMs, state };
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

test('the reserve is taken from both limits, and who is granted more in a minute has more in a second', () => {
  expect(limitsOf(700, 0.05)).toEqual({ perMinute: 665, perRouteSecond: 38, jitterMs: 250 });
  expect(limitsOf(1_400, 0)).toEqual({ perMinute: 1_400, perRouteSecond: 80, jitterMs: 250 });
  expect(limitsOf(60, 0.9)).toEqual({ perMinute: 6, perRouteSecond: 4, jitterMs: 250 });
});

/** The last of so many, in seconds, if nothing but the limits held it up: each second and minute longer by the jitter. */
function boundS(count: number, { perMinute, perRouteSecond, jitterMs }: RateLimits): number {
  const minutes = Math.floor((count - 1) / perMinute);
  const seconds = Math.floor(((count - 1) % perMinute) / perRouteSecond);
  return (minutes * (60_000 + jitterMs) + seconds * (1_000 + jitterMs)) / 1000;
}

test.each([200, 500, 700, 1_000, 3_000])(
  '%i changes after a quiet minute end close to the bound of the limits',
  (count) => {
    const { sentMs } = sendAll(LIMITS, newRateBudget(LIMITS, START, true), count, { route: PATCH });
    const lastS = ((sentMs.at(-1) ?? 0) - START) / 1000;
    expect(lastS).toBeLessThanOrEqual(boundS(count, LIMITS) + 1.25);
  },
);

test('a quarter of a second goes at once, so that a small fleet does not wait', () => {
  const { sentMs } = sendAll(LIMITS, newRateBudget(LIMITS, START, true), 10, { route: PATCH });
  expect(sentMs).toEqual(new Array(10).fill(START));
});

test('whatever is wanted when, and however requests are delayed on their way, no window of the service holds too many', () => {
  const step = fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 9_000 })),
    route: fc.constantFrom('GET', PATCH),
    count: fc.integer({ min: 1, max: 120 }),
    priority: fc.constantFrom(...PRIORITIES),
  });
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 60, maxLength: 200 }),
      fc.infiniteStream(fc.integer({ min: 0, max: 2 * LIMITS.jitterMs })),
      (steps, delays) => {
        let state = newRateBudget(LIMITS, START, true);
        let nowMs = START;
        const arrived: Record<string, number[]> = { GET: [], [PATCH]: [] };
        const unsent: Record<string, number[]> = { GET: [], [PATCH]: [] };
        for (const { gapMs, ...wanted } of steps) {
          nowMs += gapMs;
          const granted = grant(LIMITS, state, nowMs, { ...wanted, unsent: unsent[wanted.route]?.splice(0) ?? [] });
          state = granted.state;
          for (const afterMs of granted.afterMs) {
            const delayMs = delays.next().value;
            // What would be too late is not sent.
            if (delayMs < LIMITS.jitterMs) arrived[wanted.route]?.push(nowMs + afterMs + delayMs);
            else unsent[wanted.route]?.push(granted.timeMs + afterMs);
          }
        }
        expect(mostWithin(Object.values(arrived).flat(), 60_000)).toBeLessThanOrEqual(LIMITS.perMinute);
        for (const ofRoute of Object.values(arrived)) {
          expect(mostWithin(ofRoute, 1_000)).toBeLessThanOrEqual(LIMITS.perRouteSecond);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('what follows operations, and the background, leaves a rest of each minute to raises, lowerings and reads', () => {
  const rest = LIMITS.perMinute - 598;
  const step = fc.record({
    gapMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 5_000 })),
    route: fc.constantFrom('GET', 'LIST'),
    count: fc.integer({ min: 1, max: 120 }),
    priority: fc.constantFrom('operations' as const, 'background' as const),
  });
  const urgent = fc.constantFrom('raise' as const, 'lowering' as const, 'read' as const);
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 200 }), urgent, (steps, priority) => {
      let state = newRateBudget(LIMITS, START, true);
      let nowMs = START;
      for (const { gapMs, ...wanted } of steps) {
        nowMs += gapMs;
        state = grant(LIMITS, state, nowMs, wanted).state;
      }
      const { sentMs } = sendAll(LIMITS, state, rest, { route: PATCH, priority });
      expect(sentMs[0]).toBe(nowMs);
      expect(((sentMs.at(-1) ?? 0) - nowMs) / 1000).toBeLessThanOrEqual(boundS(rest, LIMITS) + 1.25);
    }),
    { numRuns: 50 },
  );
});

test('what follows operations goes on where the minute has room beside the rest, also where the limit is a single request', () => {
  const limits = { perMinute: 1, perRouteSecond: 1, jitterMs: 250 };
  const wish = { route: 'GET', priority: 'operations' } as const;
  expect(sendAll(limits, newRateBudget(limits, START, true), 2, wish).sentMs).toEqual([START, START + 60_250]);
  const { sentMs } = sendAll(LIMITS, newRateBudget(LIMITS, START, true), 600, wish);
  expect(sentMs[597]).toBeLessThan(START + 20_000);
  expect(sentMs[598]).toBe((sentMs[0] ?? 0) + 60_250);
});

test('what was granted and not sent makes room again', () => {
  const full = sendAll(LIMITS, newRateBudget(LIMITS, START, true), LIMITS.perMinute, { route: PATCH });
  const wanted = { route: PATCH, count: 9, priority: 'raise' } as const;
  const nowMs = full.state.lastMs + 2_000;
  expect(grant(LIMITS, full.state, nowMs, wanted).afterMs).toEqual([]);
  const unsent = [...full.sentMs.slice(-5), START - 1];
  expect(grant(LIMITS, full.state, nowMs, { ...wanted, unsent }).afterMs).toHaveLength(5);
  expect(grant(LIMITS, full.state, nowMs, { ...wanted, route: 'GET', unsent }).afterMs).toHaveLength(5);
});

test('a log of which nothing is known starts a minute at the steady rate, and so does one that misses what was sent', () => {
  const { sentMs, state } = sendAll(LIMITS, newRateBudget(LIMITS, START), 200, { route: 'GET' });
  const stepMs = steadyIntervalMs(LIMITS, 0);
  expect(sentMs.filter((instant) => instant === START)).toHaveLength(10);
  expect((sentMs.at(-1) ?? 0) - START).toBeGreaterThanOrEqual((199 - 20) * stepMs - 1);
  const later = { ...newRateBudget(LIMITS, START, true), lastMs: START + 600_000 };
  const unlogged = grant(LIMITS, later, START + 600_000, { route: 'GET', count: 1, priority: 'read', unlogged: true });
  expect(sendAll(LIMITS, unlogged.state, 100, { route: 'GET' }).sentMs.at(-1)).toBeGreaterThan(START + 606_000);
  expect(sendAll(LIMITS, later, 100, { route: 'GET' }).sentMs.at(-1)).toBeLessThan(START + 604_000);
  expect(state.unknownUntilMs).toBe(START + 60_250);
});

test('a clock that steps back gives nothing, and one that has stepped goes on from there', () => {
  const full = sendAll(LIMITS, newRateBudget(LIMITS, START, true), LIMITS.perMinute, { route: 'GET' }).state;
  const backMs = full.lastMs - 3_600_000;
  const wanted = { route: 'GET', count: 1, priority: 'raise' } as const;
  const stepped = grant(LIMITS, full, backMs, wanted);
  expect(stepped.afterMs).toEqual([]);
  expect(grant(LIMITS, stepped.state, backMs + 1_000, wanted).afterMs).toEqual([]);
  expect(grant(LIMITS, stepped.state, backMs + 60_250, wanted).afterMs).toHaveLength(1);
});

test('nobody is granted anything while somebody more urgent waits, and everybody is once that is over', () => {
  let state = sendAll(LIMITS, newRateBudget(LIMITS, START, true), 38, { route: PATCH }).state;
  const nowMs = state.lastMs;
  const waiting = grant(LIMITS, state, nowMs, { route: PATCH, count: 30, priority: 'raise' });
  state = waiting.state;
  expect(waiting.waitMs).toBeGreaterThan(0);
  const reads = (atMs: number, before: RateBudgetState) =>
    grant(LIMITS, before, atMs, { route: 'GET', count: 5, priority: 'read' });
  expect(reads(nowMs, state).afterMs).toEqual([]);
  expect(reads(nowMs + waiting.waitMs + 260, state).afterMs).toHaveLength(5);
});

test('a 429 takes a quarter of the second, the next the burst of the minute, then halves; an hour later more is tried again', () => {
  const fast = newRateBudget(DEFAULT_RATE_LIMITS, START, true);
  const last = (state: RateBudgetState, count: number) => {
    const { sentMs } = sendAll(DEFAULT_RATE_LIMITS, state, count, { route: PATCH });
    return (sentMs.at(-1) ?? 0) - (sentMs[0] ?? 0);
  };
  const once = learn(DEFAULT_RATE_LIMITS, fast, START, 0);
  expect(last(once, 301) / last(fast, 301)).toBeCloseTo(4 / 3, 1);
  const sameEvent = learn(DEFAULT_RATE_LIMITS, once, START + 500, 0);
  expect(sameEvent.level).toBe(1);
  const twice = learn(DEFAULT_RATE_LIMITS, once, START + 5_000, 0);
  const stepMs = steadyIntervalMs(DEFAULT_RATE_LIMITS, 2);
  expect(last(twice, 101)).toBeCloseTo(100 * stepMs, -2);
  const thrice = learn(DEFAULT_RATE_LIMITS, twice, START + 10_000, 0);
  expect(last(thrice, 101)).toBeCloseTo(200 * stepMs, -2);
  const at = (afterMs: number) => levelAt(thrice, START + 10_000 + afterMs);
  expect([0, HALVED_MS, HALVED_MS + PROBE_MS, HALVED_MS + 2 * PROBE_MS].map(at)).toEqual([3, 2, 1, 0]);
  expect(at(HALVED_MS - 1)).toBe(3);
});

/** Learns from a 429 at each of these instants, counted from the start. */
function learnAt(start: RateBudgetState, ...afterMs: number[]): RateBudgetState {
  return afterMs.reduce((state, ms) => learn(LIMITS, state, START + ms, 0), start);
}

/** How long after an instant, counted from the start, level 0 comes. */
function normalAfterMs(state: RateBudgetState, fromMs: number): number | undefined {
  return grant(LIMITS, state, START + fromMs, { route: PATCH, count: 1, priority: 'raise' }).learnt?.normalInMs;
}

test('what is tried again and refused is tried after an hour, then half as often each time', () => {
  const first = learnAt(newRateBudget(LIMITS, START, true), 0);
  expect([first.level, first.probeMs]).toEqual([1, FIRST_PROBE_MS]);
  const again = learnAt(first, FIRST_PROBE_MS + 60_000);
  expect([again.level, again.probeMs]).toEqual([1, PROBE_MS]);
  const thirdMs = FIRST_PROBE_MS + PROBE_MS + 120_000;
  const third = learnAt(again, thirdMs);
  expect([third.level, third.probeMs]).toEqual([1, 2 * PROBE_MS]);
  expect(learnAt(third, 40 * PROBE_MS).probeMs).toBe(FIRST_PROBE_MS);
});

test('a 429 that does not come again lowers the rate for minutes, and a second one soon after it for hours', () => {
  const known = newRateBudget(LIMITS, START, true);
  expect(normalAfterMs(learnAt(known, 0), 0)).toBe(FIRST_PROBE_MS);
  expect(normalAfterMs(learnAt(known, 0, 5_000), 5_000)).toBe(2 * PROBE_MS);
});

test('429s within a minute of a lost log lower the rate as others do, but for minutes; one after that minute for hours', () => {
  const lost = newRateBudget(LIMITS, START);
  expect(learnAt(lost, 1_000, 5_000).level).toBe(2);
  expect(normalAfterMs(learnAt(lost, 1_000, 5_000), 5_000)).toBe(2 * FIRST_PROBE_MS);
  expect(learnAt(lost, 1_000, 5_000, 70_000).level).toBe(3);
  expect(normalAfterMs(learnAt(lost, 1_000, 5_000, 70_000), 70_000)).toBe(HALVED_MS + 2 * PROBE_MS);
});

test('a lost log does not shorten what was learnt before it', () => {
  const { state } = grant(LIMITS, learnAt(newRateBudget(LIMITS, START, true), 0, 5_000), START + 10_000, {
    route: PATCH,
    count: 1,
    priority: 'raise',
    unlogged: true,
  });
  expect(normalAfterMs(learnAt(state, 20_000), 20_000)).toBe(HALVED_MS + 2 * PROBE_MS);
});

test('nothing is sent for as long as the service asks, but for five minutes at most', () => {
  const wanted = { route: 'GET', count: 1, priority: 'read' } as const;
  const asked = learn(LIMITS, newRateBudget(LIMITS, START, true), START, 86_400_000);
  expect(grant(LIMITS, asked, START + 299_000, wanted).afterMs).toEqual([]);
  expect(grant(LIMITS, asked, START + 300_000, wanted).afterMs).toEqual([0]);
});
