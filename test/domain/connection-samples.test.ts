import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactSamples, lookbackMs, withValidity } from '../../src/domain/connections/connection-samples.ts';
import { type ConnectionSample, viewConnections } from '../../src/domain/connections/connections.ts';
import { aCompute, aHeadroom, aLimits } from '../support/builders.ts';

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
  options: { windowMs: number; maxSamples: number },
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

const minutes = (...all: number[]): ConnectionSample[] =>
  all.map((minute) => ({ atMs: minute * MINUTE_MS, connections: minute }));

/** `12 from 8: 11` for a sample at minute 12 that stands for all since minute 8, the highest of which was 11. */
const compacted = (samples: ConnectionSample[], nowMinute: number, windowMinutes: number, maxSamples: number) =>
  compactSamples(samples, {
    nowMs: nowMinute * MINUTE_MS,
    windowMs: windowMinutes * MINUTE_MS,
    maxSamples: maxSamples,
  }).map(({ atMs, sinceMs = atMs, connections }) => `${atMs / MINUTE_MS} from ${sinceMs / MINUTE_MS}: ${connections}`);

describe('samples of connections', () => {
  it('are looked back at as far as any policy does that asks their source, five minutes at least', () => {
    const back = (minutes: number, connections = 'counts') =>
      aHeadroom({ connections, scaleDownAfterMs: minutes * MINUTE_MS });
    const minutesOf = (...policies: Parameters<typeof lookbackMs>[1][number][]) =>
      lookbackMs('counts', policies) / MINUTE_MS;
    expect([minutesOf(back(7), back(30), back(10)), minutesOf(back(30, 'others')), minutesOf(back(1))]).toEqual([
      ...[30, 5, 5],
    ]);
    expect([minutesOf(), minutesOf(aLimits())]).toEqual([5, 5]);
  });

  it('hold longer than five minutes where their source is asked less than every two', () => {
    const [one] = minutes(1);
    const asked = (everyMs: number) => withValidity(one ?? { atMs: 0, connections: 0 }, everyMs);
    expect(asked(2 * MINUTE_MS)).toEqual(one);
    expect(asked(4 * MINUTE_MS)).toEqual({ ...one, validForMs: 10 * MINUTE_MS });
  });

  it('stay as they are while there is room, but for those that nobody looks back at', () => {
    expect(compacted(minutes(9, 10, 29, 30), 30, 10, 4)).toEqual([
      '10 from 10: 10',
      '29 from 29: 29',
      '30 from 30: 30',
    ]);
    expect(compacted(minutes(20, 21, 29, 30), 30, 10, 4)).toHaveLength(4);
  });

  it('become one for each stretch of the window, the newest half of the room apart', () => {
    const counted = minutes(...Array.from({ length: 13 }, (_, index) => 8 + index));
    const peak = counted.map((one) => (one.atMs === 11 * MINUTE_MS ? { ...one, connections: 99 } : one));
    expect(compacted(peak, 20, 8, 8)).toEqual([
      ...['12 from 8: 99', '16 from 13: 16', '17 from 17: 17', '18 from 18: 18', '19 from 19: 19', '20 from 20: 20'],
    ]);
  });

  it('stay apart where more than five minutes lie between them, or than they hold', () => {
    const newest = minutes(13, 14, 15, 16);
    const split = (next: ConnectionSample) =>
      compacted([...minutes(0, 1), next, ...minutes(11, 12), ...newest], 16, 20, 8);
    expect(split({ atMs: 6 * MINUTE_MS, connections: 6 })[0]).toBe('6 from 0: 6');
    expect(split({ atMs: 7 * MINUTE_MS, connections: 7 }).slice(0, 2)).toEqual(['1 from 0: 1', '12 from 7: 12']);
    expect(split({ atMs: 7 * MINUTE_MS, connections: 7, validForMs: 6 * MINUTE_MS })[0]).toBe('7 from 0: 7');
    expect(split({ atMs: 8 * MINUTE_MS, connections: 8, sinceMs: 6 * MINUTE_MS })[0]).toBe('8 from 0: 8');
  });

  it('are the newest where there are more gaps than room', () => {
    const apart = Array.from({ length: 12 }, (_, index) => 6 * index);
    expect(compacted(minutes(...apart), 66, 100, 8)).toEqual(apart.slice(4).map((at) => `${at} from ${at}: ${at}`));
  });
});

describe('samples of connections that are kept', () => {
  it.each([MINUTE_MS, 30 * MINUTE_MS, 7 * 24 * 60 * MINUTE_MS])(
    'never show a lower peak of a window of %i ms',
    (windowMs) => {
      const counts = arrivals(2 * MINUTE_MS);
      fc.assert(
        fc.property(counts, fc.constantFrom(4, 8, 32), (given, maxSamples) => {
          const { kept, all, nowMs } = keepAll(given, { windowMs, maxSamples });
          expect(kept.length).toBeLessThanOrEqual(maxSamples);
          const [full, compact] = [view(all, nowMs, windowMs), view(kept, nowMs, windowMs)];
          expect(compact?.now).toBe(full?.now);
          if (compact?.isWholeWindowKnown) expect(compact.peak).toBeGreaterThanOrEqual(full?.peak ?? 0);
        }),
      );
    },
  );

  it('never hide a gap', () => {
    fc.assert(
      fc.property(arrivals(12 * MINUTE_MS), (given) => {
        const windowMs = 60 * MINUTE_MS;
        const { kept, all, nowMs } = keepAll(given, { windowMs, maxSamples: 32 });
        if (view(kept, nowMs, windowMs)?.isWholeWindowKnown) {
          expect(view(all, nowMs, windowMs)?.isWholeWindowKnown).toBe(true);
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
    const { kept, nowMs } = keepAll(counts, { windowMs, maxSamples: 32 });
    expect(view(kept, nowMs, windowMs)).toMatchObject({ now: 1, peak: 99, isWholeWindowKnown: true });
  });
});
