import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addUsage, decodeUsage, encodeUsage, mergeUsage, noUsage, seriesOf } from '../../src/domain/usage/stored.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';
import { DAY_MS, HOUR_MS, START_MS } from './support.ts';

const UNIT = { projectId: 'p', branchId: 'b' };

function hours(fromHour: number, ...values: (number | null)[]): UsageBucket[] {
  return values.map((cuSeconds, index) => ({
    startMs: START_MS + (fromHour + index) * HOUR_MS,
    seconds: 3600,
    cuSeconds,
  }));
}
function days(fromDay: number, ...values: (number | null)[]): UsageBucket[] {
  return values.map((cuSeconds, index) => ({
    startMs: START_MS + (fromDay + index) * DAY_MS,
    seconds: 86_400,
    cuSeconds,
  }));
}

const kept = (...answers: UsageBucket[][]) =>
  answers.reduce((usage, buckets) => mergeUsage(usage, { buckets }).usage, noUsage(UNIT));

describe('what is kept of usage', () => {
  it('keeps what was known where an answer does not know it, and counts what it corrects', () => {
    const first = kept(hours(0, 10, null, 30));
    const { usage, corrected, isChanged } = mergeUsage(first, { buckets: hours(0, null, 20, 33) });
    expect(seriesOf(usage).buckets).toEqual(hours(0, 10, 20, 33));
    expect([corrected, isChanged]).toEqual([1, true]);
    expect(mergeUsage(usage, { buckets: hours(1, 20, 33) })).toMatchObject({ corrected: 0, isChanged: false });
  });

  it('has an unknown gap between answers that do not meet', () => {
    expect(seriesOf(kept(hours(0, 1), hours(3, 4))).buckets).toEqual(hours(0, 1, null, null, 4));
  });

  it('keeps 14 days of hours and 400 days, in at most 3 KB', () => {
    const many = (count: number) => Array.from({ length: count }, () => 200_000);
    const usage = kept(hours(0, ...many(600)), days(-500, ...many(500)));
    expect(usage.hours.values).toHaveLength(336);
    expect(usage.days.values).toHaveLength(400);
    expect(usage.hours.startMs).toBe(START_MS + (600 - 336) * HOUR_MS);
    expect(encodeUsage(usage).length).toBeLessThanOrEqual(3 * 1024);
  });

  it('is read back as it was', () => {
    const value = fc.option(fc.integer({ min: 0, max: 100_000_000 }), { nil: null });
    fc.assert(
      fc.property(fc.array(value, { maxLength: 400 }), fc.array(value, { maxLength: 450 }), (byHour, byDay) => {
        const usage = kept(hours(-7, ...byHour), days(-3, ...byDay));
        expect(decodeUsage(UNIT, encodeUsage(usage))).toEqual(usage);
      }),
    );
  });

  it('is nothing where the bytes are cut or of another version', () => {
    const bytes = encodeUsage(kept(hours(0, 1, 2)));
    expect(decodeUsage(UNIT, bytes.subarray(0, -1))).toBeUndefined();
    expect(decodeUsage(UNIT, Uint8Array.of(2, ...bytes.subarray(1)))).toBeUndefined();
    expect(decodeUsage(UNIT, new Uint8Array())).toBeUndefined();
  });

  it('adds deleted branches up', () => {
    const sum = addUsage(kept(hours(0, 1, null)), kept(hours(0, 5, 6, null)));
    expect(seriesOf(sum).buckets).toEqual(hours(0, 6, 6, null));
  });
});
