import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { VerifiedFacts } from '../../src/domain/compute/account-facts.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { nextBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { limitsForChanges, readyOpenings, readyWaves } from '../../src/domain/evaluate/ready-waves.ts';
import { forecast } from '../../src/domain/forecast/forecast.ts';
import { withReadyWaves } from '../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { type ReadyWaves, waveOf } from '../../src/domain/policy/waves.ts';
import { grant, newRateBudget } from '../../src/domain/rate-budget/grant.ts';
import { latestSends, limitsOf, type RateLimits } from '../../src/domain/rate-budget/limits.ts';
import { aCompute, aLimits, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const OPENS_MS = at('2026-03-02T08:00:00Z');
const LIMITS = limitsOf(700, 0.05);
const DURATION_MS = 3_000;
const WAVE_MS = 15_000;
const MAX_WAVES = 40;
const SMALL = { minCu: 0.25, maxCu: 0.5 };

/** 08:00–18:00 from Monday to Friday. */
const day = (fields: Partial<Parameters<typeof aSchedule>[0]> = {}) =>
  aSchedule({
    name: 'day',
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 }, readyLeadMs: 180_000, readyInWaves: true }],
    otherwise: { size: SMALL },
    ...fields,
  });

const sleeping = (index: number, fields: Partial<Compute> = {}) =>
  aCompute({ computeId: `ep-${index}`, projectId: `p-${index}`, state: 'idle', ...SMALL, ...fields });

const herdOf = (count: number, fields: Partial<Compute> = {}) =>
  Array.from({ length: count }, (_, index) => ({ compute: sleeping(index, fields), baseline: undefined }));

type Herd = ReturnType<typeof herdOf>;

function wavesAt(
  herd: Herd,
  options: { policies?: Policy[]; limits?: RateLimits; openings?: number[]; verified?: VerifiedFacts } = {},
) {
  const policies = compiled(...(options.policies ?? [day()]));
  const { verified } = options;
  return readyWaves(
    { policies, subjects: herd, verified, limitsOf: () => options.limits ?? LIMITS },
    options.openings ?? [OPENS_MS],
  );
}

const leadsOf = (known: readonly ReadyWaves[], herd: Herd) =>
  herd.map(({ compute }) => waveOf(known, { compute, priority: 0, opensAtMs: OPENS_MS })?.leadMs ?? Number.NaN);

/** When the last of so many requests at once is sent after a quiet minute, as the limits say it. */
const boundMs = (count: number, { perMinute, perRouteSecond, jitterMs }: RateLimits) =>
  Math.floor((count - 1) / perMinute) * (60_000 + jitterMs) +
  Math.floor(((count - 1) % perMinute) / perRouteSecond) * (1_000 + jitterMs);

const limitsArbitrary = fc
  .record({ perMinute: fc.integer({ min: 20, max: 200 }), perSecond: fc.integer({ min: 2, max: 40 }) })
  // The seconds of a minute alone never allow less than the minute.
  .filter(({ perMinute, perSecond }) => perMinute <= 40 * perSecond)
  .map(({ perMinute, perSecond }) => ({ perMinute, perRouteSecond: perSecond, jitterMs: 250 }));

describe('the waves of a herd', () => {
  it('are as few as the limits allow, each compute in the last one from which its raise is in time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), limitsArbitrary, (count, limits) => {
        const [known, ...others] = wavesAt(herdOf(count), { limits });
        expect(others).toEqual([]);
        const waves = known?.waves ?? [];
        expect(waves.reduce((sum, { computes }) => sum + computes, 0)).toBe(count);
        expect(waves.length).toBeLessThanOrEqual(MAX_WAVES);
        let later = 0;
        for (const { leadMs, computes } of waves.toReversed()) {
          expect(leadMs % WAVE_MS).toBe(0);
          const neededMs = boundMs(later + computes, limits) + DURATION_MS;
          if (leadMs < MAX_WAVES * WAVE_MS) expect(leadMs).toBeGreaterThanOrEqual(neededMs);
          // The first of the wave could not have begun a whole wave later.
          expect(leadMs - WAVE_MS).toBeLessThan(boundMs(later + 1, limits) + DURATION_MS);
          later += computes;
        }
      }),
    );
  });

  it('never ask for more than the limits in a minute or a second', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 300 }),
        limitsArbitrary,
        (deadlines, limits) => {
          const descending = deadlines.toSorted((a, b) => b - a);
          const sends = latestSends(descending, limits);
          for (const [index, send] of sends.entries()) {
            expect(send).toBeLessThanOrEqual(descending[index] ?? 0);
            const { perMinute, perRouteSecond, jitterMs } = limits;
            expect((sends[index - perMinute] ?? Infinity) - send).toBeGreaterThanOrEqual(60_000 + jitterMs);
            expect((sends[index - perRouteSecond] ?? Infinity) - send).toBeGreaterThanOrEqual(1_000 + jitterMs);
          }
        },
      ),
    );
  });

  it.each([1, 380, 665, 1_000, 3_000])(
    'of %i idle computes are all sent by the rate budget before the instant',
    (count) => {
      const waves = wavesAt(herdOf(count))[0]?.waves ?? [];
      let state = newRateBudget(LIMITS, OPENS_MS - 600_000, true);
      let nowMs = OPENS_MS - 600_000;
      for (const { leadMs, computes } of waves) {
        nowMs = Math.max(nowMs, OPENS_MS - leadMs);
        let left = computes;
        while (left > 0) {
          const granted = grant(LIMITS, state, nowMs, { route: 'PATCH', priority: 'raise', count: left });
          state = granted.state;
          left -= granted.afterMs.length;
          nowMs += left > 0 ? granted.waitMs : (granted.afterMs.at(-1) ?? 0);
        }
      }
      expect(nowMs).toBeLessThan(OPENS_MS);
      expect(waves[0]?.leadMs).toBeLessThanOrEqual(boundMs(count, LIMITS) + DURATION_MS + WAVE_MS);
    },
  );

  it('of computes that a new size wakes begin as early as those of awake ones', () => {
    const [asleep, awake] = [herdOf(900), herdOf(900, { state: 'active' })];
    const verified = (idle_resize: 'stays' | 'wakes') => new Map([[asleep[0]?.compute.account ?? '', { idle_resize }]]);
    expect(wavesAt(asleep, { verified: verified('wakes') })).toEqual(wavesAt(awake));
    expect(wavesAt(asleep, { verified: verified('stays') })).toEqual(wavesAt(asleep));
    expect(wavesAt(awake)).not.toEqual(wavesAt(asleep));
  });

  it('don’t depend on the order in which computes are known, nor on those that are not raised', () => {
    const herd = herdOf(900);
    const others = Array.from({ length: 500 }, (_, index) => ({
      compute: sleeping(10_000 + index, { projectName: 'large', minCu: 1, maxCu: 4 }),
      baseline: undefined,
    }));
    const large = aSchedule({ name: 'large', select: aSelector({ projects: ['large'] }), priority: 9, windows: [] });
    const always = { ...large, otherwise: { size: { minCu: 1, maxCu: 4 } } };
    const known = wavesAt(herd);
    expect(wavesAt(herd.toReversed())).toEqual(known);
    const policies = [day({ select: aSelector({ projects: ['web-shop'] }) }), always];
    expect(wavesAt([...others, ...herd], { policies })).toEqual(known);
  });

  it('begin with the policies of the highest priority', () => {
    const herd = herdOf(900).map(({ compute }, index) => ({
      compute: { ...compute, projectName: index < 100 ? 'vital' : 'web-shop' },
      baseline: undefined,
    }));
    const select = aSelector({ projects: ['vital'] });
    const known = wavesAt(herd, { policies: [day(), day({ name: 'vital', priority: 5, select })] });
    const opensAtMs = OPENS_MS;
    const leads = herd.slice(0, 100).map(({ compute }) => waveOf(known, { compute, priority: 5, opensAtMs })?.leadMs);
    expect(new Set(leads)).toEqual(new Set([known[0]?.waves[0]?.leadMs]));
  });

  it('are of each account alone, and of two instants together', () => {
    const ofAnother = herdOf(900, { account: 'another' });
    const both = wavesAt([...herdOf(900), ...ofAnother]);
    expect(both.map(({ account }) => account)).toEqual(['default', 'another']);
    expect(both[1]?.waves).toEqual(both[0]?.waves);
    const [window] = day().windows;
    if (!window) throw new Error('no window');
    const windows = [{ ...window, at: [aWindow({ startMinute: 481 })] }];
    const later = day({ name: 'later', select: aSelector({ projects: ['later'] }), windows });
    const herd = Array.from({ length: 1_800 }, (_, index) => ({
      compute: sleeping(index, { projectName: index < 600 ? 'web-shop' : 'later' }),
      baseline: undefined,
    }));
    const policies = [day({ select: aSelector({ projects: ['web-shop'] }) }), later];
    const openings = readyOpenings(compiled(...policies), OPENS_MS - 60_000, OPENS_MS + 120_000);
    expect(openings).toEqual([OPENS_MS, OPENS_MS + 60_000]);
    const firstAlone = wavesAt(herd, { policies })[0]?.waves[0]?.leadMs ?? 0;
    const together = wavesAt(herd, { policies, openings });
    // The later herd needs the last minute of the earlier one.
    expect(together.find(({ opensAtMs }) => opensAtMs === OPENS_MS)?.waves[0]?.leadMs).toBeGreaterThan(firstAlone);
  });

  it('begin earlier where an operation has to end, and are none where nothing is raised', () => {
    expect(wavesAt(herdOf(1))[0]?.waves).toMatchObject([{ leadMs: WAVE_MS, computes: 1 }]);
    expect(wavesAt(herdOf(1, { state: 'active' }))[0]?.waves).toMatchObject([{ leadMs: WAVE_MS, computes: 1 }]);
    expect(wavesAt(herdOf(100, { state: 'active' }))[0]?.waves[0]).toMatchObject({ leadMs: 2 * WAVE_MS });
    expect(wavesAt(herdOf(5, { minCu: 1, maxCu: 4 }), { policies: [day({ otherwise: 'leave' })] })).toEqual([]);
    expect(wavesAt(herdOf(5), { policies: [day({ mode: 'observe' })] })).toEqual([]);
    const ceiling = aLimits({ size: { maxCu: 0.25 }, hard: true });
    expect(wavesAt(herdOf(5, { maxCu: 0.25 }), { policies: [day(), ceiling] })).toEqual([]);
  });
});

it('leaves as much of the limits as the lists of the projects of an account need', () => {
  const computes = herdOf(1_000).map(({ compute }) => compute);
  const limitsOfAccount = limitsForChanges(LIMITS, computes);
  expect(limitsOfAccount('default')).toEqual({ ...LIMITS, perMinute: LIMITS.perMinute - 4 * 8 });
  expect(limitsOfAccount('another').perMinute).toBe(LIMITS.perMinute - 8);
});

describe('a compute in a wave', () => {
  const herd = herdOf(1_000);
  const known = wavesAt(herd);
  const policies = withReadyWaves(compiled(day()), known);
  const leads = leadsOf(known, herd);

  it('is raised from the beginning of its wave on, not a millisecond earlier, and that is its boundary', () => {
    expect(new Set(leads)).toEqual(new Set([75_000, 30_000, 15_000]));
    for (const [index, leadMs] of leads.slice(0, 60).entries()) {
      const subject = { policies, compute: sleeping(index), baseline: undefined };
      const instantMs = OPENS_MS - leadMs;
      expect(decide({ ...subject, instantMs: instantMs - 1 }).enforced.size).toEqual(SMALL);
      expect(decide({ ...subject, instantMs }).enforced.size).toEqual({ minCu: 1, maxCu: 4 });
      expect(nextBoundary(subject, OPENS_MS - 1_800_000)).toBe(instantMs);
    }
  });

  it('is forecast from then on', () => {
    for (const [index, leadMs] of leads.slice(0, 20).entries()) {
      const span = { fromMs: OPENS_MS - 3_600_000, toMs: OPENS_MS + 3_600_000 };
      const { segments } = forecast({ policies, compute: sleeping(index), ...span });
      expect(segments.map(({ fromMs, maxCu }) => [fromMs, maxCu])).toEqual([
        [span.fromMs, 0.5],
        [OPENS_MS - leadMs, 4],
      ]);
    }
  });

  it('has three minutes where the waves of the instant are not known', () => {
    const subject = { policies: withReadyWaves(compiled(day()), []), compute: sleeping(1), baseline: undefined };
    expect(nextBoundary(subject, OPENS_MS - 1_800_000)).toBe(OPENS_MS - 180_000);
  });
});
