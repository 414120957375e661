import { expect, it } from 'vitest';
import { withBudget } from '../../src/adapters/control-api/exchanges.ts';
import type { RateBudget } from '../../src/ports/rate-budget.ts';
import { REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

it('a level of the rate limit that is reached again is news, and only a lower one a warning', async () => {
  const log = memoryLog();
  let level = 0;
  const grant = { waitedMs: 0, waitUntilDue: async () => true };
  const budget = { acquire: async () => grant, level: () => level, usedRatio: () => 0, answered() {} };
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const exchange = async () => ({ kind: 'answer' as const, status: 200, body: '', requestId: 'r' });
  const options = { budget: budget as unknown as RateBudget, clock: REAL.clock, metrics, log };
  const send = withBudget(exchange as never, options);
  for (level of [0, 1, 3, 2, 1, 0])
    await send({ method: 'GET', path: '/projects', account: 'main' } as never, 'key', new AbortController().signal);
  const warned = 'account main gets less than the documented rate limit (429): ';
  const again = 'account main: more of the rate limit is used again: ';
  const quarter = 'a quarter less is sent in a second';
  expect(log.lines.map((line) => [line.level, line.message])).toEqual([
    ['warn', `${warned}${quarter}`],
    ['warn', `${warned}requests are spread evenly, at 1/2 of the rate`],
    ['info', `${again}requests are spread evenly over the minute`],
    ['info', `${again}${quarter}`],
    ['info', 'the documented rate limit is used for account main again'],
  ]);
});
