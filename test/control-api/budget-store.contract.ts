import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { BudgetStore } from '../../src/adapters/control-api/rate-budget.ts';
import { grant, learn, newRateBudget, PRIORITIES } from '../../src/domain/rate-budget/grant.ts';
import { limitsOf, type RateLimits } from '../../src/domain/rate-budget/limits.ts';

export const LIMITS = limitsOf(700, 0.05);

/** So small that a few requests use all of them. */
const SMALL: RateLimits = { perMinute: 60, perRouteSecond: 9, jitterMs: 250 };

export interface TestBudgets {
  /** Another view of the same logs, as another daemon has it; by its own clock unless another is given. */
  open(limits: RateLimits, clock?: () => number): Promise<BudgetStore>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** What every store of budgets does, wherever it keeps them: exactly what the pure functions say. */
export function describeBudgetStore(start: () => Promise<TestBudgets>, { runs }: { runs: number }): void {
  let budgets: TestBudgets;
  beforeAll(async () => {
    budgets = await start();
  });
  beforeEach(() => budgets.reset());
  afterAll(() => budgets.close());

  const wanted = fc.record({
    route: fc.constantFrom('GET', 'PATCH'),
    count: fc.integer({ min: 1, max: 40 }),
    priority: fc.constantFrom(...PRIORITIES),
    unlogged: fc.boolean(),
    sentAgoMs: fc.oneof(
      { weight: 5, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 30 }) },
    ),
    unsent: fc.array(fc.nat(), { maxLength: 3 }),
  });
  const step = fc.record({
    // A clock may also be set back.
    gapMs: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 8_000_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: -5_000, max: -1 }) },
    ),
    asked: fc.oneof(
      { weight: 10, arbitrary: wanted.map((one) => ({ ...one, unlogged: one.unlogged && one.count > 35 })) },
      { weight: 1, arbitrary: fc.constantFrom(undefined, 0, 700, 400_000) },
    ),
  });

  test('grants and learns what the pure functions do, step by step', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        run += 1;
        const account = `account-${run}`;
        let nowMs = 1_790_000_000_000;
        const sources = [await budgets.open(SMALL, () => nowMs), await budgets.open(SMALL, () => nowMs)];
        let state = newRateBudget(SMALL, nowMs);
        const granted: number[] = [];
        for (const [at, { gapMs, asked }] of steps.entries()) {
          nowMs += at === 0 ? 0 : gapMs;
          const source = sources[at % 2];
          if (typeof asked === 'object') {
            // Some of what was granted before, of this route or another, and what never was.
            const unsent = asked.unsent.map((nth) => granted[nth % granted.length] ?? nth);
            const { state: after, ...expected } = grant(SMALL, state, nowMs, { ...asked, unsent });
            expect(await source?.grant(account, { ...asked, unsent })).toEqual(expected);
            granted.push(...expected.afterMs.map((afterMs) => expected.timeMs + afterMs));
            state = after;
          } else {
            state = learn(SMALL, state, nowMs, asked);
            expect(await source?.learn(account, asked)).toBe(state.level);
          }
        }
      }),
      { numRuns: runs },
    );
  });

  test('leaves the part of a minute to urgent requests that the pure function does', async () => {
    let nowMs = 1_790_000_000_000;
    const source = await budgets.open(SMALL, () => nowMs);
    let state = newRateBudget(SMALL, nowMs);
    const granted = { operations: 0, background: 0, read: 0, raise: 0 };
    // The first minute of a log goes at the steady rate.
    const first = { route: 'raise', count: 1, priority: 'raise' } as const;
    state = grant(SMALL, state, nowMs, first).state;
    await source.grant('main', first);
    nowMs += 120_000;
    for (const priority of ['operations', 'background', 'read', 'raise'] as const) {
      for (let asked = 0; asked < 48; asked += 1) {
        const wanted = { route: priority, count: 40, priority };
        const { state: after, ...expected } = grant(SMALL, state, nowMs, wanted);
        expect(await source.grant('main', wanted)).toEqual(expected);
        granted[priority] += expected.afterMs.length;
        state = after;
        nowMs += 250;
      }
    }
    expect(granted).toEqual({ operations: 54, background: 0, read: 6, raise: 0 });
  });

  test('a pause of a day ends after five minutes', async () => {
    let nowMs = 1_790_000_000_000;
    const source = await budgets.open(SMALL, () => nowMs);
    const ask = async () => (await source.grant('main', { route: 'GET', count: 1, priority: 'raise' })).afterMs.length;
    await source.learn('main', 86_400_000);
    nowMs += 299_000;
    expect(await ask()).toBe(0);
    nowMs += 1_000;
    expect(await ask()).toBe(1);
  });

  test('two views of one log, asked in parallel, grant no more than one', async () => {
    const sources = [await budgets.open(LIMITS), await budgets.open(LIMITS)];
    const granted = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        sources[index % 2]?.grant('main', { route: 'GET', count: 1, priority: 'read' }),
      ),
    );
    // A second's limit, and what a slow machine makes of it.
    expect(granted.flatMap((one) => one?.afterMs ?? []).length).toBeLessThanOrEqual(LIMITS.perRouteSecond);
  });

  test('accounts have logs of their own', async () => {
    const source = await budgets.open(LIMITS);
    const ask = async (account: string) =>
      (await source.grant(account, { route: 'GET', count: 200, priority: 'read' })).afterMs.length;
    const first = await ask('one');
    expect(first).toBeLessThan(200);
    expect(await ask('two')).toBe(first);
  });
}
