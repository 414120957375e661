import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Forecast, forecast } from '../../src/domain/forecast/forecast.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { Span } from '../../src/domain/time/span.ts';
import { aCompute, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { baselines, computes, holdLists, policySets, timeSpecs } from './arbitraries.ts';

const MONDAY = at('2026-03-02T00:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const DAYS = 6;

const freezeBase = {
  ...{ kind: 'freeze' as const, name: 'still', file: 'f.yaml', mode: 'enforce' as const, priority: 0 },
  select: aSelector({ projects: ['*'] }),
};

/** The part of a forecast that lies in this time. */
function partOf({ segments }: Forecast, { fromMs, toMs }: Span) {
  return segments
    .filter((segment) => segment.toMs > fromMs && segment.fromMs < toMs)
    .map((one) => ({ ...one, fromMs: Math.max(one.fromMs, fromMs), toMs: Math.min(one.toMs, toMs) }));
}

describe('a forecast that is printed from a later day on', () => {
  it('says of a frozen day what was left when the freeze began', () => {
    const schedule = aSchedule({ windows: [{ at: [aWindow()], size: { minCu: 4, maxCu: 4 } }] });
    const interval = { kind: 'interval' as const, startMs: MONDAY + 12 * HOUR, endMs: MONDAY + 3 * DAY };
    const policies = compiled(schedule, { ...freezeBase, at: [interval], allowRaise: false });
    const [tuesday] = forecast({
      ...{ policies, compute: aCompute(), knownAtMs: MONDAY },
      ...{ fromMs: MONDAY + DAY, toMs: MONDAY + 2 * DAY },
    }).segments;
    expect(tuesday).toMatchObject({ minCu: 4, maxCu: 4, fromMs: MONDAY + DAY, toMs: MONDAY + 2 * DAY });
  });

  it('says where a schedule leaves a value what its last window left', () => {
    const once = aSchedule({
      windows: [{ at: [aWindow({ days: [1] })], size: { minCu: 4, maxCu: 4 } }],
      otherwise: 'leave',
    });
    const span = { fromMs: MONDAY + 4 * DAY, toMs: MONDAY + 5 * DAY };
    const { segments, cuHours } = forecast({
      policies: compiled(once),
      compute: aCompute(),
      knownAtMs: MONDAY,
      ...span,
    });
    expect(segments).toMatchObject([{ ...span, minCu: 4, maxCu: 4 }]);
    expect(cuHours.high).toBe(96);
  });

  it('begins with what the compute has where it is printed from before that was known', () => {
    const span = { fromMs: MONDAY, toMs: MONDAY + DAY };
    const input = { policies: compiled(aSchedule()), compute: aCompute(), ...span };
    expect(forecast({ ...input, knownAtMs: MONDAY + HOUR })).toEqual(forecast(input));
  });

  it('is the same as that part of one printed from any earlier day, under policies of all kinds', () => {
    const around = { zone: 'Europe/Berlin', fromMs: at('2026-03-23T00:00:00Z'), days: DAYS, once: true };
    const frozen = fc
      .tuple(timeSpecs(around), fc.boolean())
      .map(([when, allowRaise]): FreezePolicy => ({ ...freezeBase, at: when, allowRaise }));
    const sets = fc.tuple(policySets(around), fc.option(frozen)).map(([set, one]) => (one ? [...set, one] : set));
    const instant = fc.integer({ min: 0, max: DAYS * 1440 }).map((minutes) => around.fromMs + minutes * 60_000);
    const instants = fc.uniqueArray(instant, { minLength: 4, maxLength: 4 }).map((all) => all.sort((a, b) => a - b));
    const subject = fc.record({ compute: computes, baseline: baselines, holds: holdLists(around.fromMs + DAY) });
    fc.assert(
      fc.property(sets, subject, instants, (set, one, [knownAtMs = 0, earlierMs = 0, fromMs = 0, toMs = 0]) => {
        const input = { policies: compiled(...set), ...one, knownAtMs, toMs };
        const late = forecast({ ...input, fromMs });
        expect(late.segments).toEqual(partOf(forecast({ ...input, fromMs: earlierMs }), { fromMs, toMs }));
        expect(late.segments).toEqual(partOf(forecast({ ...input, fromMs: knownAtMs }), { fromMs, toMs }));
      }),
      { numRuns: 60 },
    );
  });
});
