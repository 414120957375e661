import { describe, expect, it } from 'vitest';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import type { RecommendFacts } from '../../../src/domain/recommend/finding.ts';
import { findingsOf } from '../../../src/domain/recommend/recommend.ts';
import { aCompute } from '../../support/builders.ts';
import { cron, DAY, HOUR, simulate } from '../../support/demand.ts';
import { type DatabaseClass, drawUse, REAL_USE, type Shape, shapeOf } from '../../support/real-use.ts';
import { drawRealFleet, SETTINGS, scoreOf } from '../../support/real-use-trial.ts';
import { isLong } from '../../support/seed.ts';
import { historyOf } from './history.ts';

const CLASSES: readonly DatabaseClass[] = ['serverless', 'provisioned'];

describe('generated databases', () => {
  /** How far quantiles may be from the real ones: as a difference, or as a factor. */
  const TOLERANCE: Record<keyof Shape, { difference: number; factor: number }> = {
    share: { difference: 0.1, factor: 1.3 },
    nextDay: { difference: 0.2, factor: 1 },
    nextWeek: { difference: 0.2, factor: 1 },
    run: { difference: 1, factor: 1.6 },
    gap: { difference: 2, factor: 1.6 },
    queries: { difference: 2, factor: 1.8 },
  };

  it.each(CLASSES)('have the shape of real ones (%s)', (kind) => {
    const random = seededRandom(911);
    const shape = shapeOf(Array.from({ length: 240 }, () => drawUse(random, kind)));
    for (const [name, { difference, factor }] of Object.entries(TOLERANCE) as [
      keyof Shape,
      { difference: number; factor: number },
    ][]) {
      for (const [place, real] of REAL_USE[kind][name].entries()) {
        const drawn = shape[name][place] ?? Number.NaN;
        const isNear = Math.abs(drawn - real) <= difference || (drawn <= real * factor && drawn >= real / factor);
        expect(isNear, `${name} ${place}: ${drawn} instead of ${real}`).toBe(true);
      }
    }
  });
});

/** Nothing was tuned on fleets from 7001 on. EBB_LONG=1 draws more of them. */
const SEEDS = Array.from({ length: isLong ? 4 : 1 }, (_, index) => 7001 + index);

describe.each(CLASSES)('findings for databases with the shape of real ones (%s)', (kind) => {
  const fleet = SEEDS.flatMap((seed) => drawRealFleet(seed, kind));

  it.each(SETTINGS)('cost next to what the best timeout of each costs, whatever they have now (%i s)', (now) => {
    const { proposed, best, plain, today, calledUnused } = scoreOf(fleet, now, findingsOf);
    process.stdout.write(`${kind}, ${now} s: ${(proposed / best).toFixed(3)} of the best single timeouts\n`);
    expect(proposed / best).toBeLessThanOrEqual(1.06);
    expect((proposed - Math.min(...plain)) / best).toBeLessThanOrEqual(0.01);
    expect(proposed).toBeLessThanOrEqual(today);
    expect(calledUnused).toBe(0);
  });
});

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 28 * DAY, toMs: TO };

function factsOf(timeoutSeconds: number, facts: Partial<RecommendFacts> = {}): RecommendFacts {
  const activities = cron(seededRandom(3), SPAN, 4 * HOUR);
  const simulated = simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds });
  return {
    compute: aCompute({ minCu: 1, maxCu: 4, suspendTimeoutSeconds: timeoutSeconds, state: 'idle' }),
    history: historyOf(simulated, SPAN),
    ...{ hours: simulated.hours, profile: CONNECTION_PROFILES.specification, owner: 'unowned', plan: 'scale' },
    ...facts,
  };
}

describe('unused', () => {
  const kinds = (facts: RecommendFacts) => findingsOf(facts).map(({ finding }) => finding);
  const old = { createdAtMs: TO - 572 * DAY, state: 'idle' } as const;
  const asleep = { history: historyOf({ operations: [] }, SPAN), hours: [] };

  it('is no compute that was started, though nothing says when it was last active', () => {
    // The last start has no suspend yet.
    const { history, ...rest } = factsOf(3600);
    const last = history.intervals.at(-1);
    const open = {
      ...history,
      intervals: [...history.intervals.slice(0, -1), ...(last ? [{ ...last, end: 'open' as const }] : [])],
    };
    const facts = { ...rest, history: open };
    const compute = aCompute({ ...facts.compute, ...old });
    expect(kinds({ ...facts, compute })).not.toContain('unused');
  });

  const work = factsOf(-1).hours?.map((hour, index) => ({ ...hour, cuSeconds: index % 2 ? 3600 : 7200 })) ?? [];
  const cases: [string, Partial<RecommendFacts>, { lastActiveAtMs?: number }, string[]][] = [
    ['all agree', {}, { lastActiveAtMs: TO - 100 * DAY }, ['unused']],
    ['it was active lately', {}, { lastActiveAtMs: TO - 20 * DAY }, []],
    ['nothing says when it was active', {}, {}, []],
    ['a client started it', { history: factsOf(300).history }, { lastActiveAtMs: TO - 100 * DAY }, []],
    ['its usage shows work', { hours: work }, { lastActiveAtMs: TO - 100 * DAY }, []],
  ];

  it.each(cases)('needs last activity, operations and usage to agree: %s', (_what, facts, own, expected) => {
    const compute = aCompute({ ...old, ...own });
    expect(kinds({ ...factsOf(300), ...asleep, ...facts, compute }).filter((kind) => kind === 'unused')).toEqual(
      expected,
    );
  });
});

describe('a compute that never suspends, or only after an hour', () => {
  it('is let sleep after about what a start is worth', () => {
    const secondsFor = (now: number, minutes: number) =>
      findingsOf(factsOf(now, { coldStartWorthMs: minutes * 60_000 }))[0]?.proposed.suspend_timeout_seconds;
    expect([1, 5, 14].map((minutes) => secondsFor(-1, minutes))).toEqual([60, 300, 900]);
    expect([1, 5, 14].map((minutes) => secondsFor(3600, minutes))).toEqual([60, 300, 900]);
    expect(secondsFor(3600, 120)).toBeUndefined();
  });

  it('has a range by its used hours, or says that usage does not show them', () => {
    const facts = factsOf(-1);
    const used = facts.hours?.map((hour, index) => ({ ...hour, cuSeconds: index % 4 === 0 ? 5000 : 3600 })) ?? [];
    const [seen] = findingsOf({ ...facts, hours: used });
    // A quarter of the hours is used: it sleeps in the other three quarters, and in a part of these.
    expect(seen?.savesCuHours.mid).toBeCloseTo(730 * (1 - 0.85 / 4), -1);
    expect(seen?.savesCuHours.low).toBeGreaterThan(0.6 * 730);
    expect(seen?.savesCuHours.high).toBeLessThan(730);
    const [flat] = findingsOf(facts);
    expect(flat?.evidence).toContain('usage does not show when it works: the saving is that of other databases');
  });

  it('is left alone where it works all the time', () => {
    const facts = factsOf(-1);
    const busy = facts.hours?.map((hour, index) => ({ ...hour, cuSeconds: 5000 + 1000 * (index % 7) })) ?? [];
    expect(findingsOf({ ...facts, hours: busy }).filter(({ proposed }) => proposed.suspend_timeout_seconds)).toEqual(
      [],
    );
  });
});
