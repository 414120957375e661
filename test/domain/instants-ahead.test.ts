import { describe, expect, it } from 'vitest';
import { createdByNow, MAX_AHEAD_MS, withoutInstantsAhead } from '../../src/domain/overrides/instants-ahead.ts';
import { withRestore } from '../../src/domain/overrides/restore.ts';
import { aRecord, at } from '../support/builders.ts';

const NOW_MS = at('2026-11-21T10:00:00Z');
const HOUR_MS = 3_600_000;
const FAR = [HOUR_MS, 24 * HOUR_MS, 365 * 24 * HOUR_MS];

/** A record that has every instant that there is, so far ahead of now. */
function storedAhead(aheadMs: number) {
  const atMs = NOW_MS + aheadMs;
  const fields = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 604_800 };
  const one = { count: 2, lastAtMs: atMs, desired: fields, message: 'no' };
  const record = aRecord({
    ...{ firstSeenAtMs: atMs, enforcedSinceMs: atMs, lastDecidedAtMs: atMs, lastSentAtMs: atMs },
    intent: { fields, atMs, policy: 'p' },
    openOperations: [{ operationId: 'op-1', action: 'apply_config', startedAtMs: atMs, fields }],
    failures: { size: one, restart: one },
    wanted: { size: { fields, sinceMs: atMs } },
    manual: { size: { fields, seenAtMs: atMs, raises: true } },
    reversals: { size: [NOW_MS - HOUR_MS, atMs] },
    lastDisruption: { atMs, lowered: true },
  });
  return withRestore(record, { owner: 'ann', nowMs: atMs, now: false });
}

describe('what is stored of a compute', () => {
  it.each(FAR)('by a clock that was %i ms ahead counts as of now, every instant of it and nothing else', (aheadMs) => {
    const corrected = withoutInstantsAhead(storedAhead(aheadMs), NOW_MS);
    expect(corrected).toEqual({ record: storedAhead(0), aheadMs });
  });

  it('a few minutes ahead, or in the past, stays as it is', () => {
    for (const aheadMs of [-HOUR_MS, 0, MAX_AHEAD_MS]) {
      const record = storedAhead(aheadMs);
      expect(withoutInstantsAhead(record, NOW_MS).record).toBe(record);
    }
  });
});

describe('what a person said', () => {
  const hold = (aheadMs: number) => ({ createdAtMs: NOW_MS + aheadMs, expiresAtMs: NOW_MS + aheadMs + 2 * HOUR_MS });

  it.each(FAR)('by a clock that was %i ms ahead was said now, and lasts as long as it was meant to', (aheadMs) => {
    expect(createdByNow(hold(aheadMs), NOW_MS)).toEqual(hold(0));
  });

  it('stays as it is if it was said by a clock that was right', () => {
    const said = hold(-HOUR_MS);
    expect(createdByNow(said, NOW_MS)).toBe(said);
  });
});
