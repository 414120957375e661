/** What waits for room in the hour is not late; what is stuck is. */
import { expect, it } from 'vitest';
import { createPace } from '../../src/app/notifications/pace.ts';

it('shows a message that waits for longer than the hour, also while others wait for room', () => {
  let nowMs = 10_000_000;
  const pace = createPace({ monotonicMs: () => nowMs, now: () => nowMs });
  pace.setSent([nowMs]);
  expect(pace.room(1)).toBe(0);
  expect(pace.oldestDueMs(nowMs - 60_000)).toBeUndefined();
  const stuckMs = nowMs - 3_000_000;
  nowMs += 1_800_000;
  expect(pace.oldestDueMs(stuckMs)).toBe(stuckMs);
});
