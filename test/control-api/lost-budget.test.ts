import { expect, test } from 'vitest';
import { createMemoryBudgets, withFallback } from '../../src/adapters/control-api/group-budget.ts';
import type { BudgetStore } from '../../src/adapters/control-api/rate-budget.ts';
import { DEFAULT_RATE_LIMITS, limitsOf } from '../../src/domain/rate-budget/limits.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/domain/time/units.ts';

const LIMITS = limitsOf(700, 0.05);
const STEP_MS = 250;

/** The most instants in any window. */
function mostIn(windowMs: number, instants: readonly number[]): number {
  const sorted = instants.toSorted((a, b) => a - b);
  let first = 0;
  return Math.max(
    ...sorted.map((atMs, index) => {
      while ((sorted[first] ?? atMs) <= atMs - windowMs) first += 1;
      return index - first + 1;
    }),
  );
}

/** Two daemons under one log, which want more than they get. */
async function startDaemons() {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
  const newLog = () => createMemoryBudgets({ limits: LIMITS, assumesUnused: false, clock });
  const shared = { log: newLog(), isAway: false };
  const answer = async <T>(ask: (log: BudgetStore) => Promise<T>) => {
    if (shared.isAway) throw new Error('away');
    return ask(shared.log);
  };
  const view: BudgetStore = {
    grant: (account, wanted) => answer((log) => log.grant(account, wanted)),
    learn: (account, pauseMs) => answer((log) => log.learn(account, pauseMs)),
  };
  const daemons = [withFallback(view, LIMITS, clock), withFallback(view, LIMITS, clock)];
  const sent: number[] = [];
  const wanted = { count: 100, priority: 'raise' } as const;
  async function workFor(ms: number): Promise<number> {
    const before = sent.length;
    for (const untilMs = clock.nowMs + ms; clock.nowMs < untilMs; clock.nowMs += STEP_MS) {
      for (const daemon of daemons) {
        // Several routes are asked for in parallel.
        const granted = await Promise.all(['PATCH', 'GET'].map((route) => daemon.grant('main', { ...wanted, route })));
        sent.push(...granted.flatMap(({ afterMs }) => afterMs.map((afterOneMs) => clock.nowMs + afterOneMs)));
      }
    }
    return sent.length - before;
  }
  const one = await daemons[0]?.grant('main', { route: 'GET', count: 1, priority: 'read' });
  expect(one?.afterMs).toEqual([0]);
  clock.nowMs += 2 * MINUTE_MS;
  return {
    ...{ sent, workFor },
    lose: () => {
      shared.log = newLog();
    },
    away: (isAway: boolean) => {
      shared.isAway = isAway;
    },
  };
}

/** What the service allows, by its own count. */
function expectWithinLimits(sent: readonly number[]): void {
  expect(mostIn(MINUTE_MS, sent)).toBeLessThanOrEqual(DEFAULT_RATE_LIMITS.perMinute);
  // Two routes, which the test doesn't tell apart.
  expect(mostIn(SECOND_MS, sent)).toBeLessThanOrEqual(2 * DEFAULT_RATE_LIMITS.perRouteSecond);
}

test.each([2_000, 6_000, 20_000])(
  'after the shared log was lost, what the daemons have sent counts: %i ms after a burst began',
  async (ms) => {
    const { sent, lose, workFor } = await startDaemons();
    expect(await workFor(ms)).toBeGreaterThan(100);
    lose();
    expect(await workFor(2 * MINUTE_MS)).toBeGreaterThan(600);
    expectWithinLimits(sent);
  },
);

test.each([10_000, 90_000])(
  'what was sent while the engine was away for %i ms counts afterwards, whether the log is lost or not',
  async (ms) => {
    for (const isLost of [false, true]) {
      const { sent, lose, away, workFor } = await startDaemons();
      await workFor(6_000);
      away(true);
      expect(await workFor(ms)).toBeGreaterThan(50);
      away(false);
      if (isLost) lose();
      expect(await workFor(2 * MINUTE_MS)).toBeGreaterThan(600);
      expectWithinLimits(sent);
    }
  },
);
