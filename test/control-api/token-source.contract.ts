import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TokenSource } from '../../src/adapters/control-api/rate-budget.ts';
import {
  bucketFor,
  DEFAULT_PAUSE_MS,
  DEFAULT_RATE_LIMITS,
  LONGEST_PAUSE_MS,
} from '../../src/adapters/control-api/token-bucket.ts';

export const BUCKET = bucketFor(DEFAULT_RATE_LIMITS);

export interface TestTokens {
  /** Another source over the same buckets, as another daemon has it. */
  open(): Promise<TokenSource>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** What every source of tokens does, wherever it keeps them. */
export function describeTokenSource(start: () => Promise<TestTokens>): void {
  let tokens: TestTokens;
  beforeAll(async () => {
    tokens = await start();
  });
  beforeEach(() => tokens.reset());
  afterAll(() => tokens.close());

  /** Waits of so many tokens, and the real time that taking them took. */
  async function take(sources: TokenSource[], count: number, account = 'main') {
    const startedAtMs = performance.now();
    const waits: number[] = [];
    for (let index = 0; index < count; index += 1) {
      waits.push((await sources[index % sources.length]?.take(account, 1))?.waitMs ?? Number.NaN);
    }
    return { waits, tookMs: performance.now() - startedAtMs };
  }

  test('a full bucket gives its capacity at once, then one token each interval', async () => {
    const source = await tokens.open();
    const { waits, tookMs } = await take([source], BUCKET.capacity + 10);
    expect(waits.slice(0, BUCKET.capacity)).toEqual(new Array(BUCKET.capacity).fill(0));
    const tenth = waits.at(-1) ?? 0;
    expect(tenth).toBeLessThanOrEqual(10 * BUCKET.intervalMs + 0.01);
    expect(tenth).toBeGreaterThanOrEqual(10 * BUCKET.intervalMs - tookMs - 1);
  });

  test('who wants several gets what is there, then one that is yet to come', async () => {
    const source = await tokens.open();
    expect(await source.take('main', 5)).toEqual({ tokens: 5, waitMs: 0 });
    const rest = await source.take('main', 10 * BUCKET.capacity);
    expect(rest.waitMs).toBe(0);
    // The bucket may have filled a little in the meantime.
    expect(rest.tokens).toBeGreaterThanOrEqual(BUCKET.capacity - 5);
    expect(rest.tokens).toBeLessThanOrEqual(BUCKET.capacity);
    const [next] = (await take([source], 1)).waits;
    expect(next).toBeLessThanOrEqual(BUCKET.intervalMs);
  });

  test('two sources over one bucket give no more than one, and in parallel no token twice', async () => {
    const sources = [await tokens.open(), await tokens.open()];
    const startedAtMs = performance.now();
    const waits = await Promise.all(
      Array.from({ length: 3 * BUCKET.capacity }, async (_, index) => {
        return (await sources[index % 2]?.take('main', 1))?.waitMs ?? 0;
      }),
    );
    const tookMs = performance.now() - startedAtMs;
    const beyond = 2 * BUCKET.capacity * BUCKET.intervalMs;
    expect(Math.max(...waits)).toBeLessThanOrEqual(beyond + 0.01);
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(beyond - tookMs - 1);
    expect(new Set(waits.filter((wait) => wait > 0)).size).toBe(waits.filter((wait) => wait > 0).length);
  });

  test('accounts have buckets of their own', async () => {
    const source = await tokens.open();
    await take([source], 2 * BUCKET.capacity, 'one');
    expect((await take([source], 1, 'two')).waits).toEqual([0]);
  });

  test('a slowdown empties the bucket for its pause and doubles the interval, for every source', async () => {
    const sources = [await tokens.open(), await tokens.open()];
    const startedAtMs = performance.now();
    await sources[0]?.slowDown('main', 5_000);
    await sources[1]?.slowDown('main', 0);
    const { waits } = await take(sources, 3);
    const tookMs = performance.now() - startedAtMs;
    waits.forEach((wait, index) => {
      expect(wait).toBeLessThanOrEqual(5_000 + index * 2 * BUCKET.intervalMs + 0.01);
      expect(wait).toBeGreaterThanOrEqual(5_000 + index * 2 * BUCKET.intervalMs - tookMs - 1);
    });
  });

  test('a slowdown without a time of its own pauses for the default', async () => {
    const source = await tokens.open();
    const startedAtMs = performance.now();
    await source.slowDown('main', undefined);
    const { waits } = await take([source], 1);
    expect(waits[0]).toBeLessThanOrEqual(DEFAULT_PAUSE_MS + 0.01);
    expect(waits[0]).toBeGreaterThanOrEqual(DEFAULT_PAUSE_MS - (performance.now() - startedAtMs) - 1);
  });

  test.each([86_400_000, 2 ** 31, Number.MAX_SAFE_INTEGER])(
    'a pause of %i ms that the service asks for is one of five minutes',
    async (pauseMs) => {
      const source = await tokens.open();
      await source.slowDown('main', pauseMs);
      const { waits } = await take([source], 1);
      expect(waits[0]).toBeLessThanOrEqual(LONGEST_PAUSE_MS + 0.01);
      expect(waits[0]).toBeGreaterThan(LONGEST_PAUSE_MS / 2);
    },
  );
}
