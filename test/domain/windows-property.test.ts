import fc from 'fast-check';
import { DateTime, IANAZone } from 'luxon';
import { describe, expect, it } from 'vitest';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { instantOfLocal, offsetMsAt } from '../../src/domain/time/windows/local-time.ts';
import {
  anyOpenAt,
  mayChangeAfter,
  mayHaveChangedUntil,
  nextChangeOfAny,
  openSince,
} from '../../src/domain/time/windows.ts';
import { timeSpecs } from './arbitraries.ts';
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
  ['America/Havana', '2026-10-30'],
  ['America/St_Johns', '2010-11-05'],
  ['Antarctica/Troll', '2026-10-23'],
  ['Asia/Kolkata', '2026-06-01'],
] as const;
const DAYS = 4;
/** Sets of windows in each stretch; EBB_PROPERTY_RUNS=500 for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 15);

function changesFound(given: readonly TimeSpec[], fromMs: number, toMs: number) {
  const found: { ms: number; open: boolean }[] = [];
  let before = anyOpenAt(given, fromMs);
  let ms = mayChangeAfter(given, fromMs);
  while (ms !== undefined && ms < toMs) {
    const open = anyOpenAt(given, ms);
    // A search that ended before a change says how far it came.
    if (open !== before) found.push({ ms, open });
    before = open;
    ms = mayChangeAfter(given, ms);
  }
  return found;
}

function lastChangeFound(given: readonly TimeSpec[], untilMs: number): number {
  let ms = mayHaveChangedUntil(given, untilMs);
  while (Number.isFinite(ms) && anyOpenAt(given, ms - 1) === anyOpenAt(given, ms))
    ms = mayHaveChangedUntil(given, ms - 1);
  return ms;
}

describe('windows against a walk minute by minute', () => {
  it.each(STRETCHES)('agree in %s from %s on', (zone, date) => {
    const fromMs = DateTime.fromISO(date, { zone: 'utc' }).toMillis();
    const toMs = fromMs + DAYS * DAY_MS;
    const slow = slowWindows([zone, 'UTC'], fromMs, toMs);
    fc.assert(
      fc.property(timeSpecs({ zone, fromMs, days: DAYS }), (given) => {
        const expected = minutesOf(fromMs, toMs).map((ms) => ({ ms, open: slow.isOpenAt(given, ms) }));
        expect(expected.find(({ ms, open }) => anyOpenAt(given, ms) !== open)).toBeUndefined();
        const changes = expected.filter(({ open }, index) => index > 0 && open !== expected[index - 1]?.open);
        expect(changesFound(given, fromMs, toMs)).toEqual(changes);
        for (const { ms, open } of changes) {
          expect(anyOpenAt(given, ms - 1)).toBe(!open);
          expect(openSince(given, ms)).toBe(open ? ms : undefined);
        }
        for (const [index, { ms }] of changes.entries()) {
          expect(mayHaveChangedUntil(given, ms)).toBe(ms);
          // The search backwards is bounded too: it goes on from where it came to.
          if (index > 0) expect(lastChangeFound(given, ms - 1)).toBe(changes[index - 1]?.ms);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe('an answer about windows', () => {
  const [fromMs, days] = [DateTime.fromISO('2026-10-23', { zone: 'utc' }).toMillis(), DAYS];
  const minutes = fc.array(fc.integer({ min: 0, max: 720 }), { minLength: 2, maxLength: 8 });
  /** Hours that touch: a bounded search follows some of them. */
  const chain = fc.integer({ min: 8, max: 14 }).map((count) =>
    Array.from({ length: count }, (_, index) => {
      const startMs = fromMs + index * 60 * MINUTE_MS;
      return { kind: 'interval' as const, startMs, endMs: startMs + 60 * MINUTE_MS };
    }),
  );
  const dense = timeSpecs({ zone: 'Europe/Berlin', fromMs, days }).map((given): TimeSpec[] => [
    ...given,
    { kind: 'cron-switch', startCron: '* * * * *', endCron: '0 * * * *', zone: 'UTC' },
  ]);

  it('is the same whatever was asked before', () => {
    fc.assert(
      fc.property(
        fc.oneof(chain, dense, timeSpecs({ zone: 'Europe/Berlin', fromMs, days })),
        minutes,
        (given, asked) => {
          const answers = (specs: readonly TimeSpec[], minute: number) => {
            const ms = fromMs + minute * MINUTE_MS;
            return [
              nextChangeOfAny(specs, ms),
              mayChangeAfter(specs, ms),
              openSince(specs, ms),
              mayHaveChangedUntil(specs, ms),
            ];
          };
          for (const minute of asked) expect(answers(given, minute)).toEqual(answers([...given], minute));
        },
      ),
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
