import { describe, expect, it } from 'vitest';
import { policyYaml } from '../../../src/app/recommend/policies.ts';
import { historyFrom } from '../../../src/domain/awake/intervals.ts';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import { recommend } from '../../../src/domain/recommend/recommend.ts';
import { type UsePattern, usePattern } from '../../../src/domain/recommend/windows.ts';
import { instantOfMinute, localDayAt, weekdayOf } from '../../../src/domain/time/windows/local-time.ts';
import { holidaysOf } from '../../../src/policy/calendars/public-holidays.ts';
import { parsePolicyFiles } from '../../../src/policy/parse.ts';
import { aCompute } from '../../support/builders.ts';
import {
  type Activity,
  between,
  DAY,
  HOUR,
  MINUTE,
  type Random,
  SECOND,
  simulate,
  visits,
} from '../../support/demand.ts';
import { isLong } from '../../support/seed.ts';
import { historyOf } from './history.ts';

/** Twelve weeks with the change of the clocks in Europe and America, and with holidays in the three countries. */
const TO = Date.parse('2026-12-29T00:00:00Z');
const SPAN = { fromMs: TO - 84 * DAY, toMs: TO };

interface Office {
  zone: string;
  country: string;
  startHour: number;
  endHour: number;
}

/** People come about the start, work with short breaks, and leave about the end: not at weekends, nor on holidays. */
function officeHours(
  random: Random,
  { zone, country, startHour, endHour }: Office,
  gap = () => between(random, 1, 20) * MINUTE,
  length = () => between(random, 5, 30) * MINUTE,
): Activity[] {
  const off = new Set(holidaysOf(country, SPAN));
  const activities: Activity[] = [];
  for (let day = localDayAt(zone, SPAN.fromMs); day <= localDayAt(zone, SPAN.toMs); day += 1) {
    if (weekdayOf(day) > 5 || off.has(day)) continue;
    const fromMs = instantOfMinute(zone, day, 60 * startHour) + between(random, -8, 8) * MINUTE;
    const toMs = instantOfMinute(zone, day, 60 * endHour) + between(random, -8, 8) * MINUTE;
    activities.push(...visits({ fromMs, toMs }, gap, length, between(random, 0.8, 1.5)));
  }
  return activities.filter(({ fromMs, toMs }) => fromMs >= SPAN.fromMs && toMs <= SPAN.toMs);
}

/** Each night from 02:00 to 03:30 of the zone. */
function nightBatch(random: Random, zone: string): Activity[] {
  return Array.from({ length: 82 }, (_, index) => {
    const day = localDayAt(zone, SPAN.fromMs) + 1 + index;
    const fromMs = instantOfMinute(zone, day, 120) + random() * MINUTE;
    return { fromMs, toMs: fromMs + between(random, 85, 95) * MINUTE, cu: 2 };
  });
}

const OFFICES: readonly (Office & { regionId: string })[] = [
  { zone: 'Europe/Berlin', country: 'DE', startHour: 8, endHour: 18, regionId: 'aws-eu-central-1' },
  { zone: 'America/New_York', country: 'US', startHour: 9, endHour: 17, regionId: 'aws-us-east-1' },
  { zone: 'Asia/Tokyo', country: 'JP', startHour: 9, endHour: 18, regionId: 'aws-ap-northeast-1' },
];

/** By the awake log of a compute that sleeps after five minutes. */
function patternOf(activities: Activity[], regionId: string): UsePattern | undefined {
  const { intervals } = historyOf(sleeping(activities), SPAN);
  const usedIntervals = intervals.map(({ startMs, endMs }) => ({ fromMs: startMs, toMs: endMs - 5 * MINUTE }));
  return usePattern({ ...SPAN, regionId, holidaysOf, usedIntervals });
}

function sleeping(activities: Activity[]) {
  return simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds: 300, noise: true });
}

function findingsFor(activities: Activity[], many = SPAN) {
  const compute = aCompute({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300, regionId: 'aws-eu-central-1' });
  const history = historyFrom(historyOf(sleeping(activities), SPAN), many.fromMs);
  const facts = {
    compute,
    history,
    profile: CONNECTION_PROFILES.specification,
    owner: 'unowned',
    plan: 'scale' as const,
  };
  // A start costs much: by day it pays to stay awake, at night it does not.
  return recommend([facts], { holidaysOf, coldStartWorthMs: 30 * MINUTE });
}

/** EBB_LONG=1 draws more. */
const SEEDS = Array.from({ length: isLong ? 20 : 2 }, (_, index) => 201 + index);

describe('hours of use', () => {
  it.each(SEEDS.flatMap((seed) => OFFICES.map((office) => ({ seed, ...office }))))(
    'are the office hours of $zone within half an hour, without its holidays (seed $seed)',
    ({ seed, regionId, ...office }) => {
      const found = patternOf(officeHours(seededRandom(seed), office), regionId);
      expect(found).toMatchObject({
        zone: office.zone,
        holidayCountry: office.country,
        windows: [{ days: [1, 2, 3, 4, 5] }],
      });
      const [window] = found?.windows ?? [];
      expect(Math.abs((window?.startMinute ?? 0) - 60 * office.startHour)).toBeLessThanOrEqual(30);
      expect(Math.abs((window?.endMinute ?? 0) - 60 * office.endHour)).toBeLessThanOrEqual(30);
    },
  );

  it.each(SEEDS)(
    'tell zones apart by the day on which their clocks change, wherever the compute is (seed %i)',
    (seed) => {
      const [berlin, newYork] = OFFICES;
      if (!berlin || !newYork) throw new Error('two offices');
      expect(patternOf(officeHours(seededRandom(seed), newYork), 'aws-eu-central-1')?.zone).toBe(newYork.zone);
      expect(patternOf(officeHours(seededRandom(seed), berlin), 'aws-us-east-1')?.zone).toBe(berlin.zone);
    },
  );

  it.each(SEEDS)('keep a night batch (seed %i)', (seed) => {
    const random = seededRandom(seed);
    const office = OFFICES[0] as Office;
    const found = patternOf([...officeHours(random, office), ...nightBatch(random, office.zone)], 'aws-eu-central-1');
    expect(found?.zone).toBe('Europe/Berlin');
    const batch = found?.windows.find(({ days }) => days.length === 7);
    expect(Math.abs((batch?.startMinute ?? 0) - 120)).toBeLessThanOrEqual(30);
    expect(Math.abs((batch?.endMinute ?? 0) - 210)).toBeLessThanOrEqual(30);
  });
});

describe('windows', () => {
  const office = OFFICES[0] as Office;
  /** People with pauses of 6 to 30 minutes, and a robot every few hours. */
  const calls = (seed: number) => {
    const random = seededRandom(seed);
    const robot = visits(
      SPAN,
      () => between(random, 2, 5) * HOUR,
      () => 10 * SECOND,
    );
    const people = officeHours(
      random,
      office,
      () => between(random, 6, 30) * MINUTE,
      () => between(random, 10, 60) * SECOND,
    );
    return [...people, ...robot].toSorted((a, b) => a.fromMs - b.fromMs);
  };

  it.each(SEEDS)('are proposed where they were cheaper than any timeout in later weeks (seed %i)', (seed) => {
    const [found] = findingsFor(calls(seed));
    expect(found).toMatchObject({ finding: 'window', figure: 'estimate', now: { suspend_timeout_seconds: 300 } });
    const text = found?.policy ? policyYaml(found, found.policy) : '';
    expect(text).toMatch(/at: \S+ 0[78]:[03]0-(1[789]|20):[03]0\n/);
    expect(text.match(/ at: /g)?.length).toBeLessThanOrEqual(3);
    expect(text).toMatch(/otherwise:\n {6}suspend_after: 5m/);
    expect(parsePolicyFiles([{ path: 'a.yaml', text }])).toMatchObject({ ok: true });
  });

  it('are not proposed from less than four weeks', () => {
    for (const { finding } of findingsFor(calls(201), { ...SPAN, fromMs: TO - 27 * DAY }))
      expect(finding).not.toBe('window');
  });

  it('are not proposed where the hours moved three weeks ago, nor without a pattern', () => {
    const movedMs = TO - 21 * DAY;
    const shiftMs = 11 * HOUR;
    const moved = calls(202).map((one) =>
      one.fromMs < movedMs ? one : { ...one, fromMs: one.fromMs + shiftMs, toMs: one.toMs + shiftMs },
    );
    const random = seededRandom(203);
    const anytime = visits(
      SPAN,
      () => between(random, 0.1, 6) * HOUR,
      () => between(random, 5, 90) * MINUTE,
      1,
    );
    for (const activities of [moved.filter(({ toMs }) => toMs < TO), anytime]) {
      for (const { finding } of findingsFor(activities)) expect(finding).not.toBe('window');
    }
  });
});
