import fc from 'fast-check';
import { DateTime, IANAZone } from 'luxon';
import { describe, expect, it } from 'vitest';
import type { TimeSpec, Weekday } from '../../src/domain/time-spec.ts';
import { instantOfLocal } from '../../src/domain/windows/local-time.ts';
import { offsetMsAt } from '../../src/domain/windows/zone-offset.ts';
import { anyOpenAt, nextChangeOfAny, openSince } from '../../src/domain/windows.ts';
import { MINUTE_MS, minutesOf, slowWindows } from './windows-oracle.ts';

const DAY_MS = 86_400_000;
/** Stretches of days around changes of the clocks, and one without any. */
const STRETCHES = [
  ['Europe/Berlin', '2026-03-27'],
  ['Europe/Berlin', '2026-10-23'],
  ['Australia/Lord_Howe', '2026-04-03'],
  ['Australia/Lord_Howe', '2026-10-02'],
  ['Africa/Cairo', '2026-04-22'],
  ['America/Santiago', '2026-04-03'],
  ['Asia/Beirut', '2026-10-23'],
  ['Asia/Kolkata', '2026-06-01'],
] as const;
const DAYS = 4;
/** Sets of windows in each stretch; EBB_PROPERTY_RUNS=500 for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 15);

const weekday = fc.integer({ min: 1, max: 7 }).map((day) => day as Weekday);
const minute = fc.oneof(
  fc.constantFrom(0, 30, 60, 90, 105, 120, 135, 150, 180, 1380, 1410, 1440),
  fc.integer({ min: 0, max: 1440 }),
);

const cron = fc
  .tuple(
    fc.constantFrom('0', '30', '15,45', '10', '*/20', '0', '59'),
    fc.constantFrom('*', '*/2', '*/6', '0', '1', '2', '2,3', '0-4', '8-18', '22-23', '23'),
    fc.constantFrom('*', '*', '*', '1-5', '0,6', '2-4'),
  )
  .map(([minutes, hours, days]) => `${minutes} ${hours} * * ${days}`);

function specs(zone: string, fromMs: number): fc.Arbitrary<TimeSpec[]> {
  const weekly = fc.record({
    kind: fc.constant('weekly' as const),
    days: fc.uniqueArray(weekday, { minLength: 1 }),
    startMinute: minute.map((value) => value % 1440),
    endMinute: minute,
    endDayOffset: fc.oneof(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 7 })),
    zone: fc.constantFrom(zone, 'UTC'),
  });
  const instant = fc.integer({ min: 0, max: DAYS * 1440 }).map((offset) => fromMs + offset * MINUTE_MS);
  const interval = fc
    .tuple(instant, instant)
    .map(([a, b]) => ({ kind: 'interval' as const, startMs: Math.min(a, b), endMs: Math.max(a, b) }));
  const calendar = fc
    .uniqueArray(fc.integer({ min: -1, max: DAYS + 1 }), { maxLength: 4 })
    .map((days) => ({ name: 'days', days: days.sort((a, b) => a - b).map((day) => fromMs / DAY_MS + day) }));
  const dates = fc.record({ only: fc.tuple(calendar), except: fc.tuple(calendar) }, { requiredKeys: [] });
  const filtered = <T extends object>(arbitrary: fc.Arbitrary<T>) =>
    fc.tuple(arbitrary, fc.option(dates)).map(([spec, filter]) => (filter ? { ...spec, dates: filter } : spec));
  const cronWindow = fc.record({
    kind: fc.constant('cron' as const),
    cron,
    forMs: fc.integer({ min: 1, max: 3 * 1440 }).map((minutes) => minutes * MINUTE_MS),
    zone: fc.constant(zone),
  });
  const cronSwitch = fc.record({
    kind: fc.constant('cron-switch' as const),
    startCron: cron,
    endCron: cron,
    zone: fc.constant(zone),
  });
  const spec = fc.oneof(
    { weight: 5, arbitrary: filtered(weekly) },
    { weight: 2, arbitrary: filtered(cronWindow) },
    { weight: 2, arbitrary: filtered(cronSwitch) },
    { weight: 1, arbitrary: interval },
  );
  return fc.array(spec, { minLength: 1, maxLength: 3 });
}

function changesFound(given: readonly TimeSpec[], fromMs: number, toMs: number) {
  const found: { ms: number; open: boolean }[] = [];
  let ms = nextChangeOfAny(given, fromMs);
  while (ms !== undefined && ms < toMs) {
    found.push({ ms, open: anyOpenAt(given, ms) });
    ms = nextChangeOfAny(given, ms);
  }
  return found;
}

describe('windows against a walk minute by minute', () => {
  it.each(STRETCHES)('agree in %s from %s on', (zone, date) => {
    const fromMs = DateTime.fromISO(date, { zone: 'utc' }).toMillis();
    const toMs = fromMs + DAYS * DAY_MS;
    const slow = slowWindows([zone, 'UTC'], fromMs, toMs);
    fc.assert(
      fc.property(specs(zone, fromMs), (given) => {
        const expected = minutesOf(fromMs, toMs).map((ms) => ({ ms, open: slow.isOpenAt(given, ms) }));
        expect(expected.find(({ ms, open }) => anyOpenAt(given, ms) !== open)).toBeUndefined();
        const changes = expected.filter(({ open }, index) => index > 0 && open !== expected[index - 1]?.open);
        expect(changesFound(given, fromMs, toMs)).toEqual(changes);
        for (const { ms, open } of changes) {
          expect(anyOpenAt(given, ms - 1)).toBe(!open);
          expect(openSince(given, ms)).toBe(open ? ms : undefined);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe('offsets of zones', () => {
  it('are those of luxon in every zone at any instant from 1970 to 2100', () => {
    const instant = fc.integer({ min: 0, max: Math.floor(DateTime.utc(2100).toMillis() / 1000) });
    const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
    fc.assert(
      fc.property(zone, instant, (name, seconds) => {
        expect(offsetMsAt(name, seconds * 1000)).toBe(IANAZone.create(name).offset(seconds * 1000) * MINUTE_MS);
      }),
      { numRuns: 400 },
    );
  });

  it('give a local time the first instant at which the clock shows it or a later one, in every zone', () => {
    const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
    const firstMs = DateTime.utc(2020).toMillis();
    fc.assert(
      fc.property(zone, fc.integer({ min: 0, max: 10 * 366 * 1440 }), (name, minutes) => {
        const localMs = firstMs + minutes * MINUTE_MS;
        const instantMs = instantOfLocal(name, localMs);
        const shownAt = (ms: number) => ms + IANAZone.create(name).offset(ms) * MINUTE_MS;
        expect(shownAt(instantMs)).toBeGreaterThanOrEqual(localMs);
        expect(shownAt(instantMs - 1)).toBeLessThan(localMs);
      }),
      { numRuns: 400 },
    );
  });
});
