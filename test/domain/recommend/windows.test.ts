import { describe, expect, it } from 'vitest';
import { policyYaml } from '../../../src/app/recommend/policies.ts';
import { awakeHistory } from '../../../src/domain/awake/intervals.ts';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import { recommend } from '../../../src/domain/recommend/recommend.ts';
import { type UsePattern, usedByLog, usedByUsage, usePattern } from '../../../src/domain/recommend/windows.ts';
import { instantOfMinute, localDayAt, weekdayOf } from '../../../src/domain/time/windows/local-time.ts';
import { holidaysOf } from '../../../src/policy/calendars/public-holidays.ts';
import { parsePolicyFiles } from '../../../src/policy/parse.ts';
import { aCompute } from '../../support/builders.ts';
import { type Activity, between, DAY, HOUR, MINUTE, type Random, simulate, visits } from '../../support/demand.ts';
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
function officeHours(random: Random, { zone, country, startHour, endHour }: Office): Activity[] {
  const off = new Set(holidaysOf(country));
  const activities: Activity[] = [];
  for (let day = localDayAt(zone, SPAN.fromMs); day <= localDayAt(zone, SPAN.toMs); day += 1) {
    if (weekdayOf(day) > 5 || off.has(day)) continue;
    const fromMs = instantOfMinute(zone, day, 60 * startHour) + between(random, -8, 8) * MINUTE;
    const toMs = instantOfMinute(zone, day, 60 * endHour) + between(random, -8, 8) * MINUTE;
    const gap = () => between(random, 1, 20) * MINUTE;
    const length = () => between(random, 5, 30) * MINUTE;
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

/** By the awake log of a compute that sleeps, and by the usage of one that never does. */
function patterns(activities: Activity[], regionId: string): (UsePattern | undefined)[] {
  const options = { ...SPAN, regionId, holidaysOf };
  const sleeping = simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds: 300, noise: true });
  const awake = simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds: -1 });
  return [
    usePattern({ ...options, usedIntervals: usedByLog(historyOf(sleeping, SPAN), 300) }),
    usePattern({ ...options, usedIntervals: usedByUsage(awake.hours, 0.25) }),
  ];
}

/** EBB_LONG=1 draws more. */
const SEEDS = Array.from({ length: isLong ? 20 : 2 }, (_, index) => 201 + index);

describe('windows by hour of the week', () => {
  it.each(SEEDS.flatMap((seed) => OFFICES.map((office) => ({ seed, ...office }))))(
    'are the office hours of $zone within half an hour, without its holidays (seed $seed)',
    ({ seed, regionId, ...office }) => {
      for (const found of patterns(officeHours(seededRandom(seed), office), regionId)) {
        expect(found).toMatchObject({
          zone: office.zone,
          holidayCountry: office.country,
          windows: [{ days: [1, 2, 3, 4, 5] }],
        });
        const [window] = found?.windows ?? [];
        expect(Math.abs((window?.startMinute ?? 0) - 60 * office.startHour)).toBeLessThanOrEqual(30);
        expect(Math.abs((window?.endMinute ?? 0) - 60 * office.endHour)).toBeLessThanOrEqual(30);
      }
    },
  );

  it.each(SEEDS)(
    'tell zones apart by the day on which their clocks change, wherever the compute is (seed %i)',
    (seed) => {
      const [berlin, newYork] = OFFICES;
      if (!berlin || !newYork) throw new Error('two offices');
      for (const found of patterns(officeHours(seededRandom(seed), newYork), 'aws-eu-central-1'))
        expect(found?.zone).toBe(newYork.zone);
      for (const found of patterns(officeHours(seededRandom(seed), berlin), 'aws-us-east-1'))
        expect(found?.zone).toBe(berlin.zone);
    },
  );

  it.each(SEEDS)('keep a night batch (seed %i)', (seed) => {
    const random = seededRandom(seed);
    const office = OFFICES[0] as Office;
    for (const found of patterns(
      [...officeHours(random, office), ...nightBatch(random, office.zone)],
      'aws-eu-central-1',
    )) {
      expect(found?.zone).toBe('Europe/Berlin');
      const batch = found?.windows.find(({ days }) => days.length === 7);
      expect(Math.abs((batch?.startMinute ?? 0) - 120)).toBeLessThanOrEqual(30);
      expect(Math.abs((batch?.endMinute ?? 0) - 210)).toBeLessThanOrEqual(30);
    }
  });

  it.each(SEEDS)('are not proposed for one without a pattern, nor for less than two weeks (seed %i)', (seed) => {
    const random = seededRandom(seed);
    const anytime = visits(
      SPAN,
      () => between(random, 0.1, 6) * HOUR,
      () => between(random, 5, 90) * MINUTE,
      1,
    );
    expect(patterns(anytime, 'aws-eu-central-1')).toEqual([undefined, undefined]);
    const office = OFFICES[0] as Office;
    const uses = officeHours(random, office);
    expect(usePattern({ fromMs: TO - 10 * DAY, toMs: TO, usedIntervals: uses, regionId: office.zone })).toBeUndefined();
  });

  it('become a schedule that keeps these hours as they are, for a compute that never suspends', () => {
    const office = OFFICES[0] as Office;
    const activities = [...officeHours(seededRandom(5), office), ...nightBatch(seededRandom(6), office.zone)];
    const awake = simulate({ ...SPAN, random: seededRandom(1), activities, timeoutSeconds: -1 });
    const compute = aCompute({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: -1, regionId: 'aws-eu-central-1' });
    const history = awakeHistory([], { ...SPAN, hint: { state: 'active', createdAtMs: 0 } });
    const facts = {
      compute,
      history,
      hours: awake.hours,
      profile: CONNECTION_PROFILES.specification,
      owner: 'unowned',
      price: 0.222,
    };
    const [found] = recommend([facts], { holidaysOf });
    expect(found).toMatchObject({ finding: 'window', figure: 'estimate', proposed: { suspend_timeout_seconds: 300 } });
    // Of 168 hours 50 are used by people and 10.5 by the batch, give or take half an hour at each end; 0.25 CU.
    const most = (730 * 0.25 * (168 - 60.5)) / 168;
    expect((found?.savesCuHours.high ?? 0) / most).toBeGreaterThan(0.9);
    expect((found?.savesCuHours.high ?? 0) / most).toBeLessThan(1.01);
    const text = found?.policy ? policyYaml(found, found.policy) : '';
    expect(text).toMatch(/timezone: Europe\/Berlin\ncalendars:\n {2}holidays:\n {4}country: DE/);
    expect(text).toMatch(/at: Mon-Fri 0[78]:[03]0-18:[03]0\n {8}except:\n {10}- holidays\n {8}suspend_after: never/);
    expect(text).toMatch(/at: Mon-Sun 02:00-0[34]:[03]0\n {8}suspend_after: never/);
    expect(parsePolicyFiles([{ path: 'a.yaml', text }])).toMatchObject({ ok: true });
  });
});
