import { expect, test } from 'vitest';
import { DeadlinePassed, expireIfLate, underDeadline } from '../../src/adapters/control-api/http-transport.ts';

test('a deadline that passed while the process slept is noticed before its timer runs', async () => {
  await underDeadline({ deadlineMs: 20, parents: [] }, async (signal) => {
    expireIfLate(signal);
    expect(signal.aborted).toBe(false);
    const wakesAtMs = performance.now() + 40;
    while (performance.now() < wakesAtMs);
    expect(signal.aborted).toBe(false);
    expireIfLate(signal);
    expect(signal.reason).toBeInstanceOf(DeadlinePassed);
  });
});
