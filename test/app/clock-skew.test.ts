import { describe, expect, it } from 'vitest';
import { createStoreClock } from '../../src/app/group/clock-skew.ts';
import { memoryLog } from '../support/memory-log.ts';

/** A machine whose clock is so far ahead, a store that takes so long to answer, and what was said about it. */
function aMachine({ aheadMs = 0, answersAfterMs = 0 }: { aheadMs?: number; answersAfterMs?: number } = {}) {
  const machine = { aheadMs, monotonicMs: 50_000, asked: 0 };
  const trueMs = () => 1_790_000_000_000 + machine.monotonicMs;
  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const time = createStoreClock({
    store: {
      async timeMs() {
        machine.asked += 1;
        machine.monotonicMs += answersAfterMs / 2;
        const groupMs = trueMs();
        machine.monotonicMs += answersAfterMs / 2;
        return groupMs;
      },
    },
    clock: { monotonicMs: () => machine.monotonicMs },
    machineMs: () => trueMs() + machine.aheadMs,
    telemetry: { log, metrics },
  });
  return { machine, time, log };
}

describe('the store clock', () => {
  it.each([
    [0, undefined],
    [1_900, undefined],
    [-1_900, undefined],
    [2_500, 2_500],
    [-86_400_000, -86_400_000],
  ])('against a clock that is %i ms ahead is too far off by %s', async (aheadMs, expected) => {
    expect(await aMachine({ aheadMs }).time.excessiveOffsetMs()).toBe(expected);
  });

  it('does not count against the machine what the store took to answer', async () => {
    expect(await aMachine({ answersAfterMs: 6_000 }).time.excessiveOffsetMs()).toBeUndefined();
    expect(await aMachine({ aheadMs: 2_500, answersAfterMs: 1_500 }).time.excessiveOffsetMs()).toBeUndefined();
    expect(await aMachine({ aheadMs: 9_000, answersAfterMs: 1_500 }).time.excessiveOffsetMs()).toBe(9_000);
  });

  it('is asked for again at once when the clock is set, and only then', async () => {
    const { machine, time } = aMachine();
    await time.excessiveOffsetMs();
    machine.monotonicMs += 20_000;
    await time.excessiveOffsetMs();
    expect(machine.asked).toBe(1);
    machine.aheadMs = 3_600_000;
    expect(await time.excessiveOffsetMs()).toBe(3_600_000);
    expect(machine.asked).toBe(2);
  });

  it('is said to be wrong once, and once to be right again', async () => {
    const { machine, time, log } = aMachine({ aheadMs: 5_000 });
    await Promise.all([time.compare(), time.compare()]);
    await time.compare();
    machine.aheadMs = 10;
    await time.compare();
    await time.compare();
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', "this machine's clock is 5.0 s ahead of the group's time: nothing is written until it is corrected"],
      ['info', "this machine's clock agrees with the store clock again"],
    ]);
    expect(time.lastExcessiveOffsetMs()).toBeUndefined();
  });
});
