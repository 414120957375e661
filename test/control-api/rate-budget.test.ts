import { expect, test } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createMemoryBudgets } from '../../src/adapters/control-api/group-budget.ts';
import { createRateBudget } from '../../src/adapters/control-api/rate-budget.ts';
import type { PermitGrant, PermitRequest, Priority } from '../../src/domain/rate-budget/grant.ts';

const NEVER = new AbortController().signal;

/** Durations by hand; the waits are real. */
const clockOf = (time: { nowMs: number }) => ({ ...systemClock(), monotonicMs: () => time.nowMs });

/** Leave that a test gives by hand. */
function manualBudgets() {
  const asked: { wanted: PermitRequest; answer(afterMs: number[], waitMs?: number): void }[] = [];
  return {
    asked,
    grant: (_account: string, wanted: PermitRequest) =>
      new Promise<PermitGrant>((resolve) =>
        asked.push({
          wanted,
          answer: (afterMs, waitMs = 1) => resolve({ timeMs: 7_000, afterMs, waitMs, level: 0, beganAtMs: 0 }),
        }),
      ),
    learn: async () => 1,
  };
}

/** Grants whatever is wanted, at once. */
const GENEROUS = {
  grant: async (_account: string, { count }: PermitRequest): Promise<PermitGrant> => ({
    timeMs: 0,
    afterMs: new Array<number>(count).fill(0),
    waitMs: 0,
    level: 0,
    beganAtMs: 0,
  }),
  learn: async () => 1,
};

test('it says what waits for the limit, and until when, while there is no room', async () => {
  const time = { nowMs: 0 };
  const clock = clockOf(time);
  const budgets = createMemoryBudgets({
    limits: { perMinute: 3, perRouteSecond: 3, jitterMs: 0 },
    assumesUnused: true,
    clock,
  });
  const budget = createRateBudget({ budgets, perMinute: 3, clock });
  const stop = new AbortController();
  const acquire = (priority: Priority, route = 'r') => budget.acquire({ account: 'a', route, priority }, stop.signal);
  for (const route of ['r', 's', 't']) {
    const grant = await acquire('read', route);
    expect(await grant.waitUntilDue(stop.signal)).toBe(true);
    time.nowMs += 4_000;
  }
  expect(budget.waiting('a')).toBeUndefined();
  const waiting = [acquire('read'), acquire('lowering'), acquire('raise')].map((one) => one.catch(() => 'stopped'));
  await expect
    .poll(() => budget.waiting('a'))
    .toEqual({
      ...{ writes: 2, reads: 1, perMinute: 3, waitedMs: 0 },
      // Two of the three that were sent must leave the minute.
      inMs: 60_000 + 4_000 - 12_000,
    });
  waiting.push(...Array.from({ length: 5 }, () => acquire('lowering').catch(() => 'stopped')));
  // Three leave the minute, three the next one, and the seventh goes once the first of those after them has left the third.
  expect(budget.waiting('a')).toMatchObject({ writes: 7, inMs: 3 * 60_000 - 12_000 });
  stop.abort();
  expect(await Promise.all(waiting)).toEqual(new Array(8).fill('stopped'));
  expect(budget.waiting('a')).toBeUndefined();
});

test('the most urgent go first, then those who came first, and an abort gives its place away', async () => {
  const budgets = manualBudgets();
  const budget = createRateBudget({ budgets, perMinute: 10, clock: systemClock() });
  const order: string[] = [];
  const enter = (name: string, priority: Priority, signal = NEVER) =>
    budget.acquire({ account: 'a', route: 'r', priority }, signal).then(
      () => order.push(name),
      (reason) => order.push(`${name}: ${reason}`),
    );
  const controller = new AbortController();
  const all = [enter('read 1', 'read'), enter('read 2', 'read', controller.signal), enter('read 3', 'read')];
  await expect.poll(() => budgets.asked.length).toBe(1);
  all.push(enter('raise', 'raise'));
  controller.abort('left');
  const answers = [[], [0], [0, 0]];
  for (const [at, afterMs] of answers.entries()) {
    await expect.poll(() => budgets.asked.length).toBe(at + 1);
    budgets.asked[at]?.answer(afterMs);
  }
  await Promise.all(all);
  expect(order).toEqual(['read 2: left', 'raise', 'read 1', 'read 3']);
  expect(budgets.asked.map(({ wanted: { priority, count } }) => `${count} ${priority}`)).toEqual([
    '3 read',
    '1 raise',
    '2 read',
  ]);
});

test('what was sent counts as used, by account', async () => {
  const budget = createRateBudget({ budgets: GENEROUS, perMinute: 10, clock: systemClock() });
  const grants = await Promise.all(
    Array.from({ length: 3 }, () => budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER)),
  );
  expect(budget.usedRatio('a')).toBe(0);
  for (const grant of grants) expect(await grant.waitUntilDue(NEVER)).toBe(true);
  expect(budget.usedRatio('a')).toBeCloseTo(0.3);
  expect(budget.usedRatio('b')).toBe(0);
});

test('leave that comes too late is not used, the log is told, and who had it goes before the others', async () => {
  const budgets = manualBudgets();
  const time = { nowMs: 1_000 };
  const budget = createRateBudget({ budgets, perMinute: 10, clock: clockOf(time) });
  const order: string[] = [];
  const enter = async (name: string, isAgain = false) => {
    const grant = await budget.acquire({ account: 'a', route: 'r', priority: 'raise', isAgain }, NEVER);
    order.push(name);
    return grant;
  };
  const first = enter('first');
  const others = enter('other');
  await expect.poll(() => budgets.asked.length).toBe(1);
  budgets.asked[0]?.answer([20]);
  time.nowMs += 20;
  const inTime = await first;
  // Its process was busy between the grant and the sending.
  time.nowMs += 126;
  expect(await inTime.waitUntilDue(NEVER)).toBe(false);
  const again = enter('again', true);
  await expect.poll(() => budgets.asked.length).toBe(2);
  budgets.asked[1]?.answer([0, 0]);
  expect(await (await again).waitUntilDue(NEVER)).toBe(true);
  await others;
  expect(order).toEqual(['first', 'again', 'other']);
  expect(budgets.asked.map(({ wanted }) => wanted.unsent)).toEqual([undefined, [7_020]]);
});

test('how long a question was under way counts as lateness too', async () => {
  const budgets = manualBudgets();
  const time = { nowMs: 1_000 };
  const budget = createRateBudget({ budgets, perMinute: 10, clock: clockOf(time) });
  const waiting = budget.acquire({ account: 'a', route: 'r', priority: 'raise' }, NEVER);
  await expect.poll(() => budgets.asked.length).toBe(1);
  time.nowMs += 126;
  budgets.asked[0]?.answer([0]);
  const grant = await waiting;
  expect(await grant.waitUntilDue(NEVER)).toBe(false);
  expect(await grant.waitUntilDue(NEVER, { evenIfLate: true })).toBe(true);
});

test('somebody more urgent does not wait for the next question of the others', async () => {
  const budgets = manualBudgets();
  const budget = createRateBudget({ budgets, perMinute: 10, clock: systemClock() });
  const stop = new AbortController();
  const read = budget.acquire({ account: 'a', route: 'r', priority: 'read' }, stop.signal).catch(() => {});
  await expect.poll(() => budgets.asked.length).toBe(1);
  budgets.asked[0]?.answer([], 3_600_000);
  const raise = budget.acquire({ account: 'a', route: 'r', priority: 'raise' }, NEVER);
  await expect.poll(() => budgets.asked.length).toBe(2);
  budgets.asked[1]?.answer([0]);
  await raise;
  stop.abort();
  await read;
});

test('routes of the same urgency are asked for side by side', async () => {
  const budgets = manualBudgets();
  const budget = createRateBudget({ budgets, perMinute: 10, clock: systemClock() });
  const enter = (route: string) => budget.acquire({ account: 'a', route, priority: 'read' }, NEVER);
  const [first, second] = [enter('full'), enter('free')];
  await expect.poll(() => budgets.asked.map(({ wanted }) => wanted.route)).toEqual(['full', 'free']);
  budgets.asked[0]?.answer([], 50);
  budgets.asked[1]?.answer([0]);
  await second;
  await expect.poll(() => budgets.asked.map(({ wanted }) => wanted.route)).toEqual(['full', 'free', 'full']);
  budgets.asked[2]?.answer([0]);
  await first;
});

test('of the same urgency the route that the fewest wait for is asked for first', async () => {
  const budgets = manualBudgets();
  const budget = createRateBudget({ budgets, perMinute: 10, clock: systemClock() });
  const enter = (route: string) => budget.acquire({ account: 'a', route, priority: 'raise' }, NEVER);
  const all = ['change', 'change', 'list'].map(enter);
  await expect.poll(() => budgets.asked.map(({ wanted }) => wanted.route)).toEqual(['list', 'change']);
  for (const { wanted, answer } of budgets.asked) answer(new Array<number>(wanted.count).fill(0));
  await Promise.all(all);
});

test('what is given back goes to the next who waits for the same', async () => {
  const budgets = manualBudgets();
  const budget = createRateBudget({ budgets, perMinute: 10, clock: systemClock() });
  const enter = () => budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
  const [first, second] = [enter(), enter()];
  await expect.poll(() => budgets.asked.length).toBe(1);
  budgets.asked[0]?.answer([0], 3_600_000);
  (await first).giveBack();
  await second;
  expect(budgets.asked).toHaveLength(1);
});

test('after a 429 what was granted before it is let go, and asked for again', async () => {
  const budgets = manualBudgets();
  const time = { nowMs: 1_000 };
  const budget = createRateBudget({ budgets, perMinute: 10, clock: clockOf(time) });
  let isIn = false;
  const waiting = budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER).then(() => {
    isIn = true;
  });
  await expect.poll(() => budgets.asked.length).toBe(1);
  await budget.throttled('a', 5_000);
  budgets.asked[0]?.answer([0]);
  await expect.poll(() => budgets.asked.length).toBe(2);
  expect(isIn).toBe(false);
  expect(budget.level('a')).toBe(1);
  time.nowMs += 5_000;
  budgets.asked[1]?.answer([0]);
  await waiting;
});

test('what was learnt of an account ends with its time, also while nothing is asked for', async () => {
  const time = { nowMs: 100_000 };
  const learnt = { agoMs: 20_000, normalInMs: 40_000 };
  const budgets = {
    ...GENEROUS,
    grant: async (...asked: Parameters<typeof GENEROUS.grant>) => ({
      ...(await GENEROUS.grant(...asked)),
      level: 1,
      learnt,
    }),
  };
  const budget = createRateBudget({ budgets, perMinute: 10, clock: clockOf(time) });
  expect(budget.learnt('a')).toBeUndefined();
  await budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
  time.nowMs += 5_000;
  expect([budget.learnt('a'), budget.learnt('b')]).toEqual([{ agoMs: 25_000, normalInMs: 35_000 }, undefined]);
  time.nowMs += 35_000;
  expect(budget.learnt('a')).toBeUndefined();
});

test('accounts do not wait for each other', async () => {
  const manual = manualBudgets();
  const budgets = {
    ...manual,
    grant: (account: string, wanted: PermitRequest) => (account === 'a' ? manual : GENEROUS).grant(account, wanted),
  };
  const budget = createRateBudget({ perMinute: 10, budgets, clock: systemClock() });
  const blocked = budget.acquire({ account: 'a', route: 'r', priority: 'read' }, NEVER);
  await budget.acquire({ account: 'b', route: 'r', priority: 'read' }, NEVER);
  await expect.poll(() => manual.asked.length).toBe(1);
  manual.asked[0]?.answer([0]);
  await blocked;
});

test('a log that cannot be had rejects who waits, and the next may try again', async () => {
  let broken = true;
  const budgets = {
    ...GENEROUS,
    grant: async (account: string, wanted: PermitRequest) => {
      if (broken) throw new Error('no log');
      return GENEROUS.grant(account, wanted);
    },
  };
  const budget = createRateBudget({ perMinute: 10, budgets, clock: systemClock() });
  const request = { account: 'a', route: 'r', priority: 'read' } as const;
  await expect(budget.acquire(request, NEVER)).rejects.toThrow('no log');
  broken = false;
  await budget.acquire(request, NEVER);
});

test('requests that nobody answers but with 429 are counted from the first, until one is answered or nobody wants to send', async () => {
  const time = { nowMs: 1_000 };
  const budget = createRateBudget({ perMinute: 10, clock: clockOf(time), budgets: GENEROUS });
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
