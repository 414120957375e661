import { expect, test } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createInstantQueue } from '../../src/app/boundaries/boundary-reconciles.ts';

const NEVER = new AbortController().signal;

test('those who wait for an instant go on in the order in which they came', async () => {
  const instants = createInstantQueue(systemClock());
  const instantMs = Date.now() + 50;
  const order: number[] = [];
  const all = Array.from({ length: 300 }, async (_, index) => {
    await instants.waitUntil(instantMs, NEVER);
    order.push(index);
  });
  await Promise.all(all);
  expect(order).toEqual(all.map((_, index) => index));
  expect(Date.now()).toBeGreaterThanOrEqual(instantMs);
});

test('those of a smaller order go on first, whenever they came', async () => {
  const instants = createInstantQueue(systemClock());
  const instantMs = Date.now() + 50;
  const order: number[] = [];
  const all = [2, 0, 1].map(async (place) => {
    await instants.waitUntil(instantMs, NEVER, place);
    order.push(place);
  });
  await Promise.all(all);
  expect(order).toEqual([0, 1, 2]);
});

test('a clock that is set back keeps nobody waiting for as long', async () => {
  let setBackMs = 0;
  const real = systemClock();
  const realDelayMs = (instantMs: number) => real.realDelayMs(instantMs + setBackMs);
  const instants = createInstantQueue({
    realDelayMs,
    timeout: real.timeout,
    sleepUntil: (instantMs, signal) => real.sleepUntil(instantMs + setBackMs, signal),
  });
  const instantMs = Date.now() + 20;
  const coming = instants.waitUntil(instantMs, NEVER);
  setBackMs = 3_600_000;
  const late = instants.waitUntil(instantMs, NEVER);
  await Promise.all([coming, late]);
});

test('who is stopped waits no longer', async () => {
  const instants = createInstantQueue(systemClock());
  const controller = new AbortController();
  const coming = instants.waitUntil(Date.now() + 3_600_000, controller.signal);
  controller.abort(new Error('stopped'));
  await expect(coming).rejects.toThrow('stopped');
});
