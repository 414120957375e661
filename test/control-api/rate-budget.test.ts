import { expect, test } from 'vitest';
import { createRateBudget } from '../../src/adapters/control-api/rate-budget.ts';
import type { Granted } from '../../src/adapters/control-api/token-bucket.ts';

const NEVER = new AbortController().signal;

/** Tokens that a test gives out by hand. */
function manualTokens() {
  const asked: ((tokens?: number) => void)[] = [];
  const take = () =>
    new Promise<Granted>((resolve) => asked.push((count = 1) => resolve({ tokens: count, waitMs: 0 })));
  return {
    asked,
    take,
    slowDown: async () => {},
  };
}

test('a write goes before the reads that wait, and an abort gives its place away', async () => {
  const tokens = manualTokens();
  const budget = createRateBudget({ tokens, perMinute: 10 });
  const order: string[] = [];
  const enter = (name: string, priority: 'read' | 'write', signal = NEVER) =>
    budget.acquire({ account: 'a', route: name, priority }, signal).then(
      () => order.push(name),
      (reason) => order.push(`${name}: ${reason}`),
    );
  const controller = new AbortController();
  const all = [enter('read 1', 'read'), enter('read 2', 'read', controller.signal), enter('read 3', 'read')];
  all.push(enter('write', 'write'));
  controller.abort('left');
  for (let given = 0; given < 3; given += 1) {
    await expect.poll(() => tokens.asked.length).toBe(given + 1);
    tokens.asked[given]?.();
  }
  await Promise.all(all);
  expect(order).toEqual(['read 2: left', 'write', 'read 1', 'read 3']);
  expect(budget.usedRatio('a')).toBeCloseTo(0.3);
  expect(budget.usedRatio('b')).toBe(0);
});

test('those who wait share what is there, and nobody is let through without a token', async () => {
  const tokens = manualTokens();
  const budget = createRateBudget({ tokens, perMinute: 10 });
  const entered: number[] = [];
  const all = [0, 1, 2, 3].map(async (index) => {
    await budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
    entered.push(index);
  });
  tokens.asked[0]?.(3);
  await expect.poll(() => tokens.asked.length).toBe(2);
  expect(entered).toEqual([0, 1, 2]);
  tokens.asked[1]?.();
  await Promise.all(all);
});

test('accounts do not wait for each other', async () => {
  const tokens = manualTokens();
  const budget = createRateBudget({
    perMinute: 10,
    tokens: { ...tokens, take: async (account) => (account === 'a' ? tokens.take() : { tokens: 1, waitMs: 0 }) },
  });
  const blocked = budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
  await budget.acquire({ account: 'b', route: 'r', priority: 'read' }, NEVER);
  tokens.asked[0]?.();
  await blocked;
});

test('tokens that can not be had reject who waits, and the next may try again', async () => {
  let broken = true;
  const budget = createRateBudget({
    perMinute: 10,
    tokens: {
      take: async () => {
        if (broken) throw new Error('no tokens');
        return { tokens: 1, waitMs: 0 };
      },
      slowDown: async () => {},
    },
  });
  const request = { account: 'a', route: 'r', priority: 'read' } as const;
  await expect(budget.acquire(request, NEVER)).rejects.toThrow('no tokens');
  broken = false;
  await budget.acquire(request, NEVER);
});

test('requests that nobody answers but with 429 are counted from the first, until one is answered or nobody wants to send', async () => {
  const time = { nowMs: 1_000 };
  const budget = createRateBudget({
    perMinute: 10,
    monotonicMs: () => time.nowMs,
    tokens: { take: async () => ({ tokens: 1, waitMs: 0 }), slowDown: async () => {} },
  });
  const ask = () => budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
  await ask();
  await budget.throttled('a', 0);
  time.nowMs += 40_000;
  await ask();
  await budget.throttled('a', 0);
  time.nowMs += 30_000;
  expect([budget.stalledMs('a'), budget.stalledMs('b')]).toEqual([70_000, 0]);
  budget.answered('a');
  expect(budget.stalledMs('a')).toBe(0);
  await ask();
  time.nowMs += 299_000;
  expect(budget.stalledMs('a')).toBe(299_000);
  time.nowMs += 2_000;
  expect(budget.stalledMs('a')).toBe(0);
});
