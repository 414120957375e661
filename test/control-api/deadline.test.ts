import { expect, test } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { DeadlinePassed, expireIfLate, underDeadline } from '../../src/adapters/control-api/deadline.ts';

test('a deadline that passed while the process slept is noticed before its timer runs', async () => {
  await underDeadline({ deadlineMs: 20, parents: [], clock: systemClock() }, async (signal) => {
    expireIfLate(signal);
    expect(signal.aborted).toBe(false);
    const wakesAtMs = performance.now() + 40;
    while (performance.now() < wakesAtMs);
    expect(signal.aborted).toBe(false);
    expireIfLate(signal);
    expect(signal.reason).toBeInstanceOf(DeadlinePassed);
  });
});
