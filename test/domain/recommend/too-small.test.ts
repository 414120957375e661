/** A lowering that a guard found to hurt is a finding, with the policy that would have held. */
import { expect, it } from 'vitest';
import { type RecommendContext, recommendFacts } from '../../../src/app/recommend/facts.ts';
import { policyYaml } from '../../../src/app/recommend/policies.ts';
import { termsDigest } from '../../../src/domain/policy/policy-set.ts';
import { costOfFloors } from '../../../src/domain/recommend/floor-cost.ts';
import { recommend } from '../../../src/domain/recommend/recommend.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import { parsePolicyFiles } from '../../../src/policy/parse.ts';
import { aCompute, aGuard, aRecord, aSchedule, at, aWindow, compiled } from '../../support/builders.ts';

const HOUR_MS = 3_600_000;
const TO_MS = at('2026-03-16T00:00:00Z');
const FROM_MS = TO_MS - 14 * 24 * HOUR_MS;
const LARGE = { minCu: 1, maxCu: 4 };
const SMALL = { minCu: 0.25, maxCu: 1 };
const BAD_SINCE = at('2026-03-10T10:20:00Z');
/** Small on weekdays from ten to noon, large otherwise. */
const schedule = aSchedule({
  name: 'lunch',
  priority: 7,
  windows: [{ at: [aWindow({ startMinute: 600, endMinute: 720 })], size: SMALL }],
  otherwise: { size: LARGE },
});
const compute = aCompute({ ...LARGE, suspendTimeoutSeconds: -1 });
const floor = { guard: 'latency', sinceMs: BAD_SINCE, fields: LARGE, lowered: SMALL, policy: 'lunch' };
const harmed = (more: Partial<ComputeRecord> = {}, remedy: 'undo' | 'notify' = 'undo') =>
  aRecord({
    setBy: { size: 'lunch' },
    ...(remedy === 'undo' && { floors: { size: { ...floor, terms: termsDigest(schedule) } } }),
    guardFinding: {
      ...{ guard: 'latency', from: LARGE, to: SMALL, remedy },
      ...{ loweredAtMs: BAD_SINCE - HOUR_MS / 3, badSinceMs: BAD_SINCE, foundAtMs: BAD_SINCE + 180_000 },
    },
    ...more,
  });
const hours = Array.from({ length: 14 * 24 }, (_, index) => ({
  ...{ startMs: FROM_MS + index * HOUR_MS, seconds: 3600, cuSeconds: 3600 },
}));
const history = {
  ...{ fromMs: FROM_MS, toMs: TO_MS, intervals: [], unknown: [], startDurationsMs: [] },
};

function guardFindings(record: ComputeRecord, policies = compiled(schedule, aGuard({ remedy: 'undo' }))) {
  const past = [{ compute, readHistory: () => history, hours, price: 0.16 }];
  const context = {
    ...{ owners: [], coldStartWorthMs: [], policies, holds: [], recordOf: () => record },
    profileOf: () => () => 100,
  } as unknown as RecommendContext;
  return recommend(recommendFacts(past, context)).filter(({ finding }) => finding === 'guard');
}

it('says which size was too small, when, and by which guard, with the window that would have held', () => {
  const [found, ...more] = guardFindings(harmed());
  expect(more).toEqual([]);
  expect(found?.evidence).toEqual([
    '1 CU was too small on weekdays 10:00–12:00, by guard latency'.replace('1 CU', '0.25-1 CU'),
    'bad since 2026-03-10T10:20:00Z, after lunch had lowered it',
  ]);
  expect(found).toMatchObject({ now: { max_cu: 1 }, proposed: { min_cu: 1, max_cu: 4 } });
  const text = found?.policy ? policyYaml(found, found.policy) : '';
  expect(text).toContain('at: Mon-Fri 10:00-12:00');
  const parsed = parsePolicyFiles([{ path: 'recommended.yaml', text }]);
  expect(parsed.ok ? parsed.set.policies : parsed.problems).toMatchObject([
    { kind: 'schedule', priority: 8, windows: [{ size: LARGE }], otherwise: 'leave' },
  ]);
});

it('is no finding once the policy has changed, or a person has released it', () => {
  const edited = compiled(aSchedule({ ...schedule, priority: 9 }), aGuard({ remedy: 'undo' }));
  expect(guardFindings(harmed(), edited)).toEqual([]);
  expect(guardFindings({ ...harmed(), floors: {} })).toEqual([]);
});

it('is no finding while its guard only notifies, or after retry', () => {
  expect(guardFindings(harmed(), compiled(schedule, aGuard()))).toEqual([]);
  const retried = aGuard({ remedy: 'undo', retryMs: 24 * HOUR_MS });
  expect(guardFindings(harmed(), compiled(schedule, retried))).toEqual([]);
});

it('costs what the larger size uses where nothing was taken back', () => {
  const [found] = guardFindings(harmed({}, 'notify'));
  expect(found?.savesCuHours.mid).toBeLessThanOrEqual(0);
});

it('a floor costs the saving that it prevents, and nothing where it changes nothing', () => {
  const span = { fromMs: FROM_MS, toMs: TO_MS };
  const past = {
    evidence: { compute, had: { ...LARGE, suspendTimeoutSeconds: -1 }, hours, history },
    priceAt: () => 0.16,
  };
  const small = [{ ...SMALL, suspendTimeoutSeconds: -1, ...span }];
  const cost = costOfFloors({ ...past, rules: small }, { size: { ...floor, terms: '' } });
  expect(cost?.cuSeconds.mid).toBeGreaterThan(0);
  expect(cost?.usd?.mid).toBeCloseTo(((cost?.cuSeconds.mid ?? 0) / 3600) * 0.16);
  const large = [{ ...LARGE, suspendTimeoutSeconds: -1, ...span }];
  expect(costOfFloors({ ...past, rules: large }, { size: { ...floor, terms: '' } })?.cuSeconds.high).toBe(0);
});
