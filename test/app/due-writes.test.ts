import { expect, test, vi } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createDueWrites } from '../../src/app/apply/due-writes.ts';

const LONG_MS = 60_000;

/** Begins so many, and tells which have got their turn, in order. */
function begin(dueWrites: ReturnType<typeof createDueWrites>, count: number) {
  const turns: number[] = [];
  const writes = Array.from({ length: count }, async (_, index) => {
    const write = await dueWrites.begin();
    turns.push(index);
    return write;
  });
  return { turns, writes };
}

test('a turn is given to those who came first: 16 are decided at once, 64 sent and not answered', async () => {
  const { turns, writes } = begin(createDueWrites(systemClock()), 90);
  const inOrder = (count: number) => Array.from({ length: count }, (_, index) => index);
  await expect.poll(() => turns).toEqual(inOrder(16));
  for (let index = 0; index < 60; index += 1) (await writes[index])?.sent();
  await expect.poll(() => turns).toEqual(inOrder(64));
  const first = await writes[0];
  first?.end();
  first?.end();
  await expect.poll(() => turns).toEqual(inOrder(65));
});

test('a write that ends without a request gives up its place among those that are decided', async () => {
  const { turns, writes } = begin(createDueWrites(systemClock()), 20);
  await expect.poll(() => turns.length).toBe(16);
  for (const write of writes.slice(0, 4)) (await write).end();
  await expect.poll(() => turns.length).toBe(20);
});

test('what follows a write goes on when the last that is due has ended, also one that sent nothing', async () => {
  const { writes } = begin(createDueWrites(systemClock()), 3);
  const [answered, sentNothing, last] = await Promise.all(writes);
  const goesOn = vi.fn();
  const givingWay = answered?.endAndYield(LONG_MS).then(goesOn);
  sentNothing?.end();
  await Promise.resolve();
  expect(goesOn).not.toHaveBeenCalled();
  await last?.endAndYield(LONG_MS);
  await givingWay;
  expect(goesOn).toHaveBeenCalledOnce();
});

test('what follows a write does not give way for longer than it may', async () => {
  const { writes } = begin(createDueWrites(systemClock()), 2);
  const [answered] = await Promise.all(writes);
  await answered?.endAndYield(0);
});
