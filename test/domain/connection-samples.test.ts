import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactSamples } from '../../src/domain/connection-samples.ts';
import { type ConnectionSample, viewConnections } from '../../src/domain/connections.ts';
import { aCompute } from '../support/builders.ts';

const MINUTE_MS = 60_000;

/** Counts as they come in, and how long after the one before. */
const arrivals = (longestGapMs: number) =>
  fc.array(fc.record({ afterMs: fc.integer({ min: 1_000, max: longestGapMs }), connections: fc.nat(500) }), {
    minLength: 1,
    maxLength: 300,
  });

/** Keeps as a daemon does: compacts after each count. */
function keepAll(
  counts: readonly { afterMs: number; connections: number }[],
  options: { windowMs: number; most: number },
) {
  let kept: ConnectionSample[] = [];
  const all: ConnectionSample[] = [];
  let atMs = 0;
  for (const { afterMs, connections } of counts) {
    atMs += afterMs;
    all.push({ atMs, connections });
    kept = compactSamples([...kept, { atMs, connections }], { nowMs: atMs, ...options });
  }
  return { kept, all, nowMs: atMs };
}

const view = (samples: ConnectionSample[], instantMs: number, windowMs: number) =>
  viewConnections(samples, aCompute(), { instantMs, windowMs });

describe('samples of connections that are kept', () => {
  it.each([MINUTE_MS, 30 * MINUTE_MS, 7 * 24 * 60 * MINUTE_MS])(
    'never show a lower peak of a window of %i ms',
    (windowMs) => {
      const counts = arrivals(2 * MINUTE_MS);
      fc.assert(
        fc.property(counts, fc.constantFrom(4, 8, 32), (given, most) => {
          const { kept, all, nowMs } = keepAll(given, { windowMs, most });
          expect(kept.length).toBeLessThanOrEqual(most);
          const [full, compact] = [view(all, nowMs, windowMs), view(kept, nowMs, windowMs)];
          expect(compact?.now).toBe(full?.now);
          if (compact?.wholeWindowKnown) expect(compact.peak).toBeGreaterThanOrEqual(full?.peak ?? 0);
        }),
      );
    },
  );

  it('never hide a gap', () => {
    fc.assert(
      fc.property(arrivals(12 * MINUTE_MS), (given) => {
        const windowMs = 60 * MINUTE_MS;
        const { kept, all, nowMs } = keepAll(given, { windowMs, most: 32 });
        if (view(kept, nowMs, windowMs)?.wholeWindowKnown) {
          expect(view(all, nowMs, windowMs)?.wholeWindowKnown).toBe(true);
        }
      }),
    );
  });

  it('cover a window of a week that was counted every minute with 32 of them', () => {
    const windowMs = 7 * 24 * 60 * MINUTE_MS;
    const counts = Array.from({ length: 11_000 }, (_, n) => ({
      afterMs: MINUTE_MS,
      connections: n === 1_000 ? 99 : 1,
    }));
    const { kept, nowMs } = keepAll(counts, { windowMs, most: 32 });
    expect(view(kept, nowMs, windowMs)).toMatchObject({ now: 1, peak: 99, wholeWindowKnown: true });
  });
});
