import { expect, it } from 'vitest';
import { patient } from '../../src/compose/command-budget.ts';
import type { BudgetRequest, Grant, RateBudget } from '../../src/ports/rate-budget.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';

const REQUEST = { account: 'main', route: 'GET /projects', priority: 'read' } as const;
const GRANT = { waitedMs: 0 } as Grant;

/** A budget that has nothing for background reads, on time that goes on only by the test. */
function withoutBackground() {
  const clock = createSteppedClock(Date.UTC(2026, 2, 1), () => false);
  const asked: { atMs: number; priority: string }[] = [];
  const acquire = ({ priority }: BudgetRequest, signal: AbortSignal) => {
    asked.push({ atMs: clock.monotonicMs(), priority });
    if (priority !== 'background') return Promise.resolve(GRANT);
    return new Promise<Grant>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  };
  return { clock, asked, budget: patient({ acquire } as RateBudget, clock) };
}

it('a read of the whole fleet yields to daemons, but not for ever', async () => {
  const { clock, asked, budget } = withoutBackground();
  const granted = budget.acquire(REQUEST, new AbortController().signal);
  await clock.runTo(clock.now() + 120_000);
  expect(await granted).toBe(GRANT);
  expect(asked).toEqual([
    { atMs: 0, priority: 'background' },
    { atMs: 75_000, priority: 'read' },
  ]);
});

it('ends when its caller gives up', async () => {
  const { asked, budget } = withoutBackground();
  const caller = new AbortController();
  const granted = budget.acquire(REQUEST, caller.signal);
  caller.abort(new Error('given up'));
  await expect(granted).rejects.toThrow('given up');
  expect(asked).toHaveLength(1);
});
