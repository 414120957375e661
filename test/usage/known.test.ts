import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrivedUntil, joinDaysAndHours, knownBuckets } from '../../src/domain/usage/known.ts';
import { usageLowerBound } from '../../src/domain/usage/lower-bound.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';
import type { WorldState } from '../../src/emulator/world/entities.ts';
import { aCompute } from '../support/builders.ts';
import { answerOf, DAY_MS, HOUR_MS, passTo, START_MS, truthOf, usageFleet, usageWorld } from './support.ts';

const hour = (start: number, cuSeconds: number | null): UsageBucket => ({
  ...{ startMs: START_MS + start * HOUR_MS, seconds: 3600, cuSeconds },
});
const day = (start: number, cuSeconds: number | null): UsageBucket => ({
  ...{ startMs: START_MS + start * DAY_MS, seconds: 86_400, cuSeconds },
});

/** By how many CU-seconds any hour that is called known differs from what was used. */
function worstDifference(world: WorldState, level: 'projects' | 'branches'): number {
  const answer = answerOf(world, level);
  const series = knownBuckets(answer, { nowMs: world.nowMs, arrivedUntilMs: arrivedUntil(answer) });
  const differences = series.flatMap(({ buckets, ...unit }) => {
    const used = truthOf(world, unit);
    const known = buckets.filter(({ cuSeconds }) => cuSeconds !== null);
    return known.map(({ startMs, cuSeconds }) => Math.abs((cuSeconds ?? 0) - (used.get(startMs) ?? 0)));
  });
  return Math.max(0, ...differences);
}

describe('usage that is smaller than computes show', () => {
  const startedAtMs = START_MS + HOUR_MS;
  const computes = [
    aCompute({
      projectId: 'p',
      branchId: 'b',
      minCu: 1,
      state: 'active',
      startedAtMs,
      updatedAtMs: startedAtMs + 4_000,
    }),
    aCompute({
      projectId: 'q',
      branchId: 'd',
      minCu: 4,
      state: 'active',
      startedAtMs,
      updatedAtMs: START_MS + 2 * HOUR_MS,
    }),
    aCompute({
      ...{ projectId: 'p', branchId: 'c', computeId: 'ep-c', minCu: 2, state: 'idle' },
      ...{ startedAtMs: START_MS, lastActiveAtMs: START_MS + HOUR_MS / 2 },
    }),
  ];
  const nowMs = START_MS + 6 * HOUR_MS;
  const known = (unit: { projectId: string; branchId: string | null }, used: readonly number[]) => {
    const buckets = new Map(used.map((cuSeconds, index) => [START_MS + index * HOUR_MS, cuSeconds]));
    const answer = { seconds: 3600, fromMs: START_MS, toMs: START_MS + 3 * HOUR_MS, units: [{ ...unit, buckets }] };
    const [series] = knownBuckets(answer, {
      nowMs,
      arrivedUntilMs: nowMs,
      lowerBound: usageLowerBound(computes, nowMs),
    });
    return series?.buckets.map(({ cuSeconds }) => cuSeconds);
  };

  it('has not arrived', () => {
    // One hour before it was started, then whole hours at 1 CU.
    expect(known({ projectId: 'p', branchId: 'b' }, [0, 3600, 0])).toEqual([0, 3600, null]);
    expect(known({ projectId: 'p', branchId: 'b' }, [0, 3239, 3240])).toEqual([0, null, 3240]);
    // Half an hour awake, then asleep.
    expect(known({ projectId: 'p', branchId: 'c' }, [0, 0, 0])).toEqual([null, 0, 0]);
    expect(known({ projectId: 'p', branchId: null }, [3600, 3600, 3600])).toEqual([3600, 3600, 3600]);
  });

  it('has arrived if it is that of the smallest size, where the compute may have been resized since', () => {
    expect(known({ projectId: 'p', branchId: 'c' }, [450, 0, 0])).toEqual([450, 0, 0]);
    expect(known({ projectId: 'q', branchId: 'd' }, [0, 900, 900])).toEqual([0, 900, 900]);
    expect(known({ projectId: 'q', branchId: 'd' }, [0, 0, 900])).toEqual([0, null, 900]);
  });

  it('says nothing of a compute that was awake for less than a minute, and of units that nobody knows', () => {
    const lowerBound = usageLowerBound([aCompute({ state: 'active', startedAtMs: nowMs - 59_000 })], nowMs);
    expect(lowerBound({ projectId: aCompute().projectId, branchId: null }, nowMs - HOUR_MS, 3600)).toBe(0);
    expect(lowerBound({ projectId: 'other', branchId: null }, START_MS, 3600)).toBeUndefined();
  });
});

describe('known usage', () => {
  const stall = fc.record({
    fromMs: fc.integer({ min: START_MS, max: START_MS + 3 * DAY_MS }),
    hours: fc.integer({ min: 1, max: 12 }),
  });

  it('is never less than what was used, whenever it is read and whatever stalls', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1000 }),
        fc.array(stall, { maxLength: 2 }),
        fc.integer({ min: 15, max: 60 }),
        fc.array(fc.integer({ min: 3, max: 80 }), { minLength: 1, maxLength: 3 }),
        fc.constantFrom('projects' as const, 'branches' as const),
        (seed, stalls, delayMinutes, reads, level) => {
          const spans = stalls.map(({ fromMs, hours }) => ({ fromMs, toMs: fromMs + hours * HOUR_MS }));
          const world = usageWorld(usageFleet({ delayMinutes, stalls: spans }), seed);
          for (const afterHours of reads.toSorted((a, b) => a - b)) {
            passTo(world, START_MS + afterHours * HOUR_MS + seed * 3000);
            expect(worstDifference(world, level)).toBeLessThanOrEqual(0.5);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('is all of it, to a rounding, once the data are complete', () => {
    const world = usageWorld(usageFleet(), 5);
    passTo(world, START_MS + 3 * DAY_MS);
    const answer = answerOf(world, 'branches');
    const known = knownBuckets(answer, { nowMs: world.nowMs, arrivedUntilMs: arrivedUntil(answer) });
    for (const { buckets, ...unit } of known) {
      const used = truthOf(world, unit);
      const before = START_MS + 2 * DAY_MS;
      const sum = buckets.filter(({ startMs }) => startMs < before).map(({ cuSeconds }) => cuSeconds ?? Number.NaN);
      const truth = [...used].filter(([startMs]) => startMs < before).reduce((total, [, one]) => total + one, 0);
      expect(Math.abs(sum.reduce((total, one) => total + one, 0) / truth - 1)).toBeLessThan(0.001);
    }
  });

  it('begins two hours after the end of an hour', () => {
    const world = usageWorld(usageFleet({ delayMinutes: 0 }), 5);
    passTo(world, START_MS + 12 * HOUR_MS + 60_000);
    const answer = answerOf(world, 'projects');
    const [series] = knownBuckets(answer, { nowMs: world.nowMs, arrivedUntilMs: Number.POSITIVE_INFINITY });
    expect(series?.buckets.slice(-3).map(({ cuSeconds }) => cuSeconds === null)).toEqual([false, true, true]);
  });

  it('is unknown while nothing at all has arrived, however long ago it was', () => {
    const answer = {
      ...{ seconds: 3600, fromMs: START_MS, toMs: START_MS + DAY_MS },
      units: [{ projectId: 'p', branchId: null, buckets: new Map() }],
    };
    const [series] = knownBuckets(answer, { nowMs: START_MS + 9 * DAY_MS, arrivedUntilMs: arrivedUntil(answer) });
    expect(series?.buckets.every(({ cuSeconds }) => cuSeconds === null)).toBe(true);
  });

  it('is unknown where it shows less than a compute that was awake must have used', () => {
    const unit = { projectId: 'p', branchId: 'b', buckets: new Map([[START_MS, 100]]) };
    const answer = { seconds: 3600, fromMs: START_MS, toMs: START_MS + HOUR_MS, units: [unit] };
    const at = { nowMs: START_MS + DAY_MS, arrivedUntilMs: START_MS + DAY_MS };
    const usage = (lowerBound: number) =>
      knownBuckets(answer, { ...at, lowerBound: () => lowerBound })[0]?.buckets[0]?.cuSeconds;
    expect([usage(112), usage(111)]).toEqual([null, 100]);
  });
});

describe('days and hours of a unit', () => {
  const hoursOfDay = (used: number | null) => Array.from({ length: 24 }, (_, index) => hour(index, used));

  it('keep the hours while they agree with the total of the day', () => {
    expect(joinDaysAndHours([day(0, 240)], hoursOfDay(10))).toEqual(hoursOfDay(10));
  });

  it.each([
    ['a day whose total was corrected', [day(0, 300)], hoursOfDay(10), [day(0, 300)]],
    ['a day with an unknown hour', [day(0, 240)], [...hoursOfDay(10).slice(1), hour(0, null)], [day(0, 240)]],
    ['a day before all hours', [day(-1, 99), day(0, 240)], hoursOfDay(10), [day(-1, 99), ...hoursOfDay(10)]],
    ['a day that is not known yet', [day(0, null)], hoursOfDay(10), hoursOfDay(10)],
    ['a day without hours', [day(0, null)], [], [day(0, null)]],
  ])('take the total of %s', (_, days, hours, joined) => {
    expect(joinDaysAndHours(days, hours)).toEqual(joined);
  });
});
