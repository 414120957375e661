import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assertAscending, realAt, simulatedAt, type TimePoint } from '../../src/adapters/clock/simulated-clock.ts';

const START_MS = Date.UTC(2026, 10, 23, 6, 0, 0);

/** Tables of 1 to 12 points, from standing almost still to a day in a millisecond. */
const table: fc.Arbitrary<TimePoint[]> = fc
  .array(
    fc.record({ realMs: fc.integer({ min: 1, max: 60_000 }), simulatedMs: fc.integer({ min: 1, max: 86_400_000 }) }),
    {
      minLength: 0,
      maxLength: 11,
    },
  )
  .map((steps) => {
    const points: TimePoint[] = [{ realMs: 0, simulatedMs: START_MS }];
    for (const step of steps) {
      const last = points[points.length - 1] ?? { realMs: 0, simulatedMs: START_MS };
      points.push({ realMs: last.realMs + step.realMs, simulatedMs: last.simulatedMs + step.simulatedMs });
    }
    return points;
  });

const realMs = fc.integer({ min: -10_000, max: 800_000 });

describe('a time table', () => {
  it('never runs backwards', () => {
    fc.assert(
      fc.property(table, realMs, realMs, (points, a, b) => {
        const [early, late] = a <= b ? [a, b] : [b, a];
        expect(simulatedAt(points, early)).toBeLessThanOrEqual(simulatedAt(points, late));
      }),
    );
  });

  it('gives back the real time of every simulated instant', () => {
    fc.assert(
      fc.property(table, realMs, (points, at) => {
        const slowestRate = Math.min(1, ...points.slice(1).map((point, index) => rate(points[index], point)));
        const roundingMs = 0.001 / slowestRate;
        expect(Math.abs(realAt(points, simulatedAt(points, at)) - at)).toBeLessThan(roundingMs);
      }),
    );
  });

  it('passes through its points and runs in real time outside them', () => {
    const points = [
      { realMs: 0, simulatedMs: 1_000 },
      { realMs: 10, simulatedMs: 101_000 },
      { realMs: 30, simulatedMs: 103_000 },
    ];
    expect([-5, 0, 5, 10, 20, 30, 37].map((at) => simulatedAt(points, at))).toEqual([
      995, 1_000, 51_000, 101_000, 102_000, 103_000, 103_007,
    ]);
  });

  it('is refused when it is empty or stands still or runs backwards', () => {
    expect(() => assertAscending([])).toThrow(RangeError);
    expect(() => assertAscending([point(0, 0), point(1, 0)])).toThrow('point 1');
    expect(() => assertAscending([point(0, 0), point(1, 1), point(1, 2)])).toThrow('point 2');
  });
});

function point(real: number, simulated: number): TimePoint {
  return { realMs: real, simulatedMs: simulated };
}

function rate(from: TimePoint | undefined, to: TimePoint): number {
  if (from === undefined) return 1;
  return (to.simulatedMs - from.simulatedMs) / (to.realMs - from.realMs);
}
