import { describe, expect, it } from 'vitest';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import type { RecommendFacts } from '../../../src/domain/recommend/finding.ts';
import { expectedSaving, findingsOf } from '../../../src/domain/recommend/recommend.ts';
import { aCompute } from '../../support/builders.ts';
import { cron, DAY, HOUR, inHours, MINUTE, simulate, visits } from '../../support/demand.ts';
import { historyOf } from './history.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 28 * DAY, toMs: TO };
/** A visit each half hour. */
const VISITS = cron(seededRandom(3), SPAN, 30 * MINUTE);

function factsOf(timeoutSeconds: number, facts: Partial<RecommendFacts> = {}, activities = VISITS): RecommendFacts {
  const simulated = simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds });
  return {
    compute: aCompute({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: timeoutSeconds }),
    history: historyOf(simulated, SPAN),
    ...{ profile: CONNECTION_PROFILES.specification, owner: 'unowned', plan: 'scale' },
    ...facts,
  };
}

/** So many CU-seconds in each hour of so many days, up to the end. */
function measured(cuSeconds: number, days: number) {
  return Array.from({ length: 24 * days }, (_, index) => {
    return { startMs: TO - days * DAY + index * HOUR, seconds: 3600, cuSeconds };
  });
}

describe('what a finding saves', () => {
  it('is no more than was measured, low end and high end', () => {
    const [unmeasured] = findingsOf(factsOf(300));
    expect(unmeasured?.savesCuHours.low).toBeGreaterThan(20);
    const [found] = findingsOf(factsOf(300, { hours: measured(36, 14), price: 0.2 }));
    const most = (730 * 36) / 3600;
    for (const end of ['low', 'mid', 'high'] as const) expect(found?.savesCuHours[end]).toBeCloseTo(most, 9);
    expect(found?.savesUsd?.high).toBeCloseTo(0.2 * most, 6);
  });

  it('is in CU-hours where an hour costs nothing, and by these it is compared', () => {
    const [free] = findingsOf(factsOf(300, { price: 0 }));
    expect(free).toMatchObject({ isFree: true, savesUsd: { high: 0 } });
    expect(free && expectedSaving(free)).toBe(free?.savesCuHours.mid);
    expect(findingsOf(factsOf(300, { price: 0.2 }))[0]).not.toHaveProperty('isFree');
  });

  it('is not limited by a measurement of less than a week, or from before the log', () => {
    const [unmeasured] = findingsOf(factsOf(300));
    for (const hours of [measured(36, 6), measured(36, 14).map((one) => ({ ...one, startMs: one.startMs - 40 * DAY }))])
      expect(findingsOf(factsOf(300, { hours }))[0]?.savesCuHours.mid).toBeCloseTo(
        unmeasured?.savesCuHours.mid ?? 0,
        9,
      );
  });
});

describe('what a start is worth', () => {
  it('is as said for the compute, unless it is said for all', () => {
    const secondsOf = (facts: RecommendFacts, options = {}) =>
      findingsOf(facts, options)[0]?.proposed.suspend_timeout_seconds;
    expect(secondsOf(factsOf(300))).toBe(60);
    expect(secondsOf(factsOf(300, { coldStartWorthMs: 6 * HOUR }))).toBeGreaterThan(300);
    expect(secondsOf(factsOf(300, { coldStartWorthMs: 6 * HOUR }), { coldStartWorthMs: 0 })).toBe(60);
  });
});

describe('a plan that does not allow every timeout', () => {
  const office = inHours(
    visits(
      SPAN,
      () => 5 * MINUTE,
      () => 2 * MINUTE,
    ),
    8,
    17,
  );

  it.each([
    [300, VISITS, 'timeout'],
    [600, VISITS, 'timeout'],
    [3600, office, 'timeout'],
  ] as const)(
    'is Launch, Free or unknown: neither a timeout nor a window is proposed (now %i s)',
    (seconds, seen, onScale) => {
      expect(findingsOf(factsOf(seconds, {}, [...seen]))[0]?.finding).toBe(onScale);
      for (const plan of ['launch', 'free', undefined] as const) {
        for (const activities of [VISITS, office]) {
          const { plan: _scale, ...facts } = factsOf(seconds, {}, activities);
          for (const found of findingsOf({ ...facts, ...(plan && { plan }) }))
            expect(found).toMatchObject({ proposed: {}, finding: 'awake' });
        }
      }
    },
  );

  it('lets what never suspends sleep after five minutes on Launch or where it is unknown, and proposes nothing on Free', () => {
    const never = (plan: 'launch' | 'free') =>
      findingsOf(factsOf(-1, { plan })).map(({ finding, proposed }) => [finding, proposed]);
    const { plan: _scale, ...facts } = factsOf(-1);
    expect(never('launch')).toEqual([['never_suspends', { suspend_timeout_seconds: 300 }]]);
    expect(findingsOf(facts).map(({ proposed }) => proposed)).toEqual([{ suspend_timeout_seconds: 300 }]);
    expect(never('free')).toEqual([]);
  });
});

describe('what a policy decides', () => {
  it("is not known where policies can't be read", () => {
    const unreadDecider = "a policy of dev that can't be read";
    const [found] = findingsOf(factsOf(300, { decided: { suspend_timeout: unreadDecider }, unreadDecider }));
    expect(found).toMatchObject({
      mayBeSetBy: unreadDecider,
      evidence: expect.arrayContaining([`${unreadDecider} may set this`]),
    });
    expect(found).not.toHaveProperty('setBy');
    expect(found).not.toHaveProperty('policy');
  });

  const decided = { suspend_timeout: 'policy nights' };
  const settings = (seconds: number) => ({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: seconds });

  it('is done by it where it always gives what is proposed', () => {
    const [found] = findingsOf(factsOf(300, { decided, wanted: () => [settings(60), settings(60)] }));
    expect(found).toMatchObject({ doneBy: 'policy nights' });
    expect(found).not.toHaveProperty('policy');
  });

  it('is proposed as before where policies only limit what a person sets', () => {
    const limit = { suspend_timeout: 'policy ceiling' };
    const [found] = findingsOf(factsOf(300, { decided: limit, wanted: (set) => [set] }));
    expect(found).toMatchObject({ proposed: { suspend_timeout_seconds: 60 }, policy: { name: 'sleep-after-1m' } });
    expect(found).not.toHaveProperty('setBy');
  });

  it.each([[[settings(60), settings(300)]], [[]]])('must be changed there where it does not', (coming) => {
    const [found] = findingsOf(factsOf(300, { decided, wanted: () => coming }));
    expect(found?.evidence).toContain('policy nights decides this: change it there');
    expect(found).toMatchObject({ setBy: 'policy nights', proposed: { suspend_timeout_seconds: 60 } });
    expect(found).not.toHaveProperty('doneBy');
  });
});

describe('a minimum without hourly usage', () => {
  const sized = aCompute({ minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 });
  const sizes = (period: RecommendFacts['period']) =>
    findingsOf(factsOf(300, { compute: sized, plan: 'free', ...(period && { period }) })).filter(
      ({ finding }) => finding === 'minimum',
    );

  it('is halved, or more, where the billing period was spent at it', () => {
    expect(sizes({ cuHours: 60, awakeHours: 60 })).toMatchObject([
      { proposed: { min_cu: 0.5 }, policy: {}, evidence: ['on average at the minimum of 1 CU while awake'] },
    ]);
  });

  it('is left where the compute was larger for a time, or was hardly awake', () => {
    expect(sizes({ cuHours: 63, awakeHours: 60 })).toEqual([]);
    expect(sizes({ cuHours: 49, awakeHours: 49 })).toEqual([]);
    expect(sizes(undefined)).toEqual([]);
  });

  it('is left where another compute or another size was part of the period: the average is below the minimum', () => {
    expect(sizes({ cuHours: 50, awakeHours: 60 })).toEqual([]);
  });
});

describe('a timeout that was changed', () => {
  it('is judged by the time since then: what kept the compute awake before was the old one', () => {
    const neverSlept = factsOf(-1).history;
    const now = { compute: aCompute({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 }), history: neverSlept };
    expect(findingsOf(factsOf(300, now)).map(({ finding }) => finding)).toEqual(['awake']);
    expect(findingsOf(factsOf(300, { ...now, timeoutSinceMs: TO - HOUR }))).toEqual([]);
  });

  it('does not make a few hours since then the rate of a month: every night another timeout, and a smaller minimum', () => {
    const compute = aCompute({ minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 });
    // Awake by day only, at its minimum.
    const intervals = Array.from({ length: 28 }, (_, day) => {
      const startMs = SPAN.fromMs + day * DAY + 8 * HOUR;
      return { startMs, endMs: startMs + 10 * HOUR, start: 'client', end: 'timeout' } as const;
    });
    const history = { ...SPAN, intervals, unknown: [], startDurationsMs: [] };
    const hours = measured(0, 28).map((one) => {
      const hour = new Date(one.startMs).getUTCHours();
      return { ...one, cuSeconds: hour >= 8 && hour < 18 ? 3600 : 0 };
    });
    const savedBy = (more: Partial<RecommendFacts>) =>
      findingsOf(factsOf(300, { compute, history, hours, plan: 'free', ...more })).find(
        ({ finding }) => finding === 'minimum',
      )?.savesCuHours;
    const saved = savedBy({});
    expect(saved?.high).toBeCloseTo((730 * 10 * 0.5) / 24, 0);
    for (const agoMs of [3 * HOUR, 8 * HOUR]) expect(savedBy({ timeoutSinceMs: TO - agoMs })).toEqual(saved);
  });
});
