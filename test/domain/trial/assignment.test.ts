import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  armAt,
  armInPeriod,
  drawOf,
  flipsOf,
  periodAt,
  periodOfDay,
  periodStartMs,
  type TrialDesign,
  trialSpan,
} from '../../../src/domain/trial/assignment.ts';
import { at } from '../../support/builders.ts';

const DAY = 86_400_000;
/** From Monday, 2026-03-02 to 2026-04-27: Berlin's clocks go forward in between. */
const DESIGN: TrialDesign = {
  seed: 'a',
  oneOf: 4,
  rotateDays: 7,
  fromDay: at('2026-03-02T00:00:00Z') / DAY,
  periods: 8,
  zone: 'Europe/Berlin',
};
const designs = fc.record({
  seed: fc.string(),
  oneOf: fc.constantFrom(2, 3, 4, 5, 10),
  rotateDays: fc.constantFrom(7, 14, 28),
  fromDay: fc.integer({ min: 20_000, max: 21_000 }),
  rotations: fc.integer({ min: 1, max: 3 }),
  zone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'UTC'),
});
const designOf = ({ rotations, ...rest }: Omit<TrialDesign, 'periods'> & { rotations: number }): TrialDesign => ({
  ...rest,
  periods: rotations * rest.oneOf,
});

describe('the draw of a unit', () => {
  it('comes from the first 16 hex digits of SHA-256 of "seed/unit"', () => {
    // printf a/web-1 | sha256sum: 37f40f60b20bdb15…
    expect(drawOf(DESIGN, 'web-1')).toEqual({ slot: 0x37f40f60 % 4, flipDelayMs: (0xb20bdb15 % 21_600) * 1000 });
  });

  it('spreads units evenly over the places, and their flips over six hours', () => {
    const draws = Array.from({ length: 4000 }, (_, index) => drawOf(DESIGN, `project-${index}`));
    for (let slot = 0; slot < 4; slot += 1) {
      const share = draws.filter((draw) => draw.slot === slot).length / draws.length;
      expect(share).toBeGreaterThan(0.22);
      expect(share).toBeLessThan(0.28);
    }
    const delays = draws.map(({ flipDelayMs }) => flipDelayMs);
    expect(Math.max(...delays)).toBeLessThan(6 * 3_600_000);
    expect(Math.min(...delays)).toBeLessThan(60_000);
    expect(Math.max(...delays)).toBeGreaterThan(5.9 * 3_600_000);
  });

  it('is another with another seed', () => {
    const slots = (seed: string) =>
      Array.from({ length: 40 }, (_, index) => drawOf({ ...DESIGN, seed }, `p${index}`).slot);
    expect(slots('a')).not.toEqual(slots('b'));
  });
});

describe('periods', () => {
  it('are whole local days, also where a day has 23 hours', () => {
    expect(trialSpan(DESIGN)).toEqual({ fromMs: at('2026-03-01T23:00:00Z'), untilMs: at('2026-04-26T22:00:00Z') });
    expect(periodStartMs(DESIGN, 4)).toBe(at('2026-03-29T22:00:00Z'));
    expect(periodOfDay(DESIGN, DESIGN.fromDay - 1)).toBeUndefined();
    expect(periodOfDay(DESIGN, DESIGN.fromDay + 7)).toBe(1);
    expect(periodOfDay(DESIGN, DESIGN.fromDay + 56)).toBeUndefined();
  });

  it('begin for a unit after its delay, and end with it', () => {
    const unit = { flipDelayMs: 3_600_000 };
    expect(periodAt(DESIGN, unit, at('2026-03-01T23:59:59Z'))).toBeUndefined();
    expect(periodAt(DESIGN, unit, at('2026-03-02T00:00:00Z'))).toBe(0);
    expect(periodAt(DESIGN, unit, at('2026-04-26T22:59:59Z'))).toBe(7);
    expect(periodAt(DESIGN, unit, at('2026-04-26T23:00:00Z'))).toBeUndefined();
  });
});

describe('the arms', () => {
  it('make every unit control in one period of each rotation', () => {
    fc.assert(
      fc.property(designs.map(designOf), fc.nat(9), (design, place) => {
        const slot = place % design.oneOf;
        const control = Array.from({ length: design.periods }, (_, period) => armInPeriod(design, slot, period));
        for (let from = 0; from < design.periods; from += design.oneOf) {
          expect(control.slice(from, from + design.oneOf).filter((arm) => arm === 'control')).toHaveLength(1);
        }
      }),
    );
  });

  it('change at the flips of the unit and at no other instant', () => {
    fc.assert(
      fc.property(
        designs.map(designOf),
        fc.string(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (design, unit, share) => {
          const draw = drawOf(design, unit);
          const { fromMs, untilMs } = trialSpan(design);
          const flips = flipsOf(design, draw);
          const isControl = (ms: number) => armAt(design, draw, ms) === 'control';
          for (const flip of flips) expect(isControl(flip)).toBe(!isControl(flip - 1));
          const instant = Math.round(fromMs - DAY + share * (untilMs - fromMs + 2 * DAY));
          expect(isControl(instant)).toBe(flips.filter((flip) => flip <= instant).length % 2 === 1);
        },
      ),
    );
  });
});
