import { describe, expect, it } from 'vitest';
import type { ForecastSubject } from '../../src/domain/forecast/compute-groups.ts';
import { forecastFleet } from '../../src/domain/forecast/forecast.ts';
import { holdBack, limitsRestarts } from '../../src/domain/forecast/hold-back.ts';
import type { PartialDisruption } from '../../src/domain/policy/disruption.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aCompute, aFreeze, aHold, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MINUTE = 60_000;
const SMALL = { minCu: 0.25, maxCu: 0.25 };
/** Monday, with a window from 8 to 18. */
const span = { fromMs: at('2026-03-02T00:00:00Z'), toMs: at('2026-03-03T00:00:00Z') };
const EIGHT = at('2026-03-02T08:00:00Z');
const AT_MOST = { share: 0.3, windowMs: 10 * MINUTE };

const fleetOf = (many: number, fields: object = {}): ForecastSubject[] =>
  Array.from({ length: many }, (_, index) => ({
    compute: aCompute({ computeId: `ep-${index}`, ...SMALL, ...fields }),
  }));
const morning = (disruption: PartialDisruption, fields: Partial<SchedulePolicy> = {}) =>
  aSchedule({
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 } }],
    ...{ otherwise: { size: SMALL }, disruption, ...fields },
  });

function foreseen(subjects: readonly ForecastSubject[], disruption: PartialDisruption, ...policies: Policy[]) {
  const all = compiled(...policies);
  expect(limitsRestarts(all, disruption)).toBe(true);
  const forecasts = forecastFleet({ ...span, policies: all, subjects });
  return holdBack(forecasts, { policies: all, subjects, disruption, toMs: span.toMs });
}

/** How many computes begin to have 4 CU in which minute after eight. */
const raisesOf = (forecasts: ReturnType<typeof foreseen>) => {
  const many = new Map<number | undefined, number>();
  for (const { segments } of forecasts) {
    const ms = segments.find(({ maxCu }) => maxCu === 4)?.fromMs;
    const minute = ms === undefined ? undefined : (ms - EIGHT) / MINUTE;
    many.set(minute, (many.get(minute) ?? 0) + 1);
  }
  return [...many].map(([minute, count]) => `${count} after ${minute}`).sort();
};

describe('changes that at_most holds back', () => {
  it('come as many at a time as the policy may restart, once those before no longer count', () => {
    const forecasts = foreseen(fleetOf(10), {}, morning({ atMost: AT_MOST }));
    expect(raisesOf(forecasts)).toEqual(['1 after 30', '3 after 0', '3 after 10', '3 after 20']);
    const last = forecasts.find(({ late }) => late?.[0]?.madeAtMs === EIGHT + 30 * MINUTE);
    expect(last?.late).toEqual([
      { policy: 'office-hours', limit: AT_MOST, wantedAtMs: EIGHT, madeAtMs: EIGHT + 30 * MINUTE },
    ]);
    // 14.5 hours of 0.25 CU, and 9.5 of 4: half an hour less than the others.
    expect(last?.cuHours.high).toBeCloseTo(14.5 * 0.25 + 9.5 * 4, 9);
    expect(last?.segments.map(({ fromMs, maxCu }) => [(fromMs - EIGHT) / MINUTE, maxCu])).toEqual([
      [-480, 0.25],
      [30, 4],
      [600, 0.25],
    ]);
    // The evening's lowering waits for sleep, and so restarts nobody.
    expect(forecasts.flatMap(({ late }) => late ?? [])).toHaveLength(7);
  });

  it('are at least one at a time, as the settings say where a policy says nothing', () => {
    expect(raisesOf(foreseen(fleetOf(3), { atMost: AT_MOST }, morning({})))).toEqual([
      '1 after 0',
      '1 after 10',
      '1 after 20',
    ]);
  });

  it('are lowerings too, where these don’t wait for sleep', () => {
    const lower = { when: 'any', atDeadline: 'apply' } as const;
    const forecasts = foreseen(fleetOf(4), {}, morning({ lower, atMost: { ...AT_MOST, share: 0.5 } }));
    const evenings = forecasts.map(({ segments }) => segments.at(-1)?.fromMs);
    expect(evenings.filter((ms) => ms === EIGHT + 600 * MINUTE)).toHaveLength(2);
    expect(evenings.filter((ms) => ms === EIGHT + 610 * MINUTE)).toHaveLength(2);
  });

  it('are none of a disabled compute, of a hold, or of a policy without the limit', () => {
    expect(raisesOf(foreseen(fleetOf(4, { disabled: true }), {}, morning({ atMost: AT_MOST })))).toEqual(['4 after 0']);
    const held = fleetOf(4).map((subject): ForecastSubject => {
      const { computeId } = subject.compute;
      return { ...subject, holds: [aHold({ computeId, size: { minCu: 1, maxCu: 4 }, createdAtMs: EIGHT })] };
    });
    expect(raisesOf(foreseen(held, {}, morning({ atMost: AT_MOST }, { otherwise: 'leave' })))).toEqual(['4 after 0']);
    const unlimited = aSchedule({ ...morning({}), name: 'other', priority: 10 });
    expect(raisesOf(foreseen(fleetOf(4), {}, morning({ atMost: AT_MOST }), unlimited))).toEqual(['4 after 0']);
  });

  it('wait for restarts that were made before', () => {
    const restarted = { atMs: EIGHT - 4 * MINUTE, lowered: false, policy: 'office-hours' };
    const subjects = fleetOf(10).map((subject, index) =>
      index < 3 ? { ...subject, lastDisruption: restarted } : subject,
    );
    // Those three may be restarted again, since they count once.
    expect(raisesOf(foreseen(subjects, {}, morning({ atMost: AT_MOST })))).toContain('3 after 0');
    const others = fleetOf(10).map((subject, index) =>
      index < 3
        ? { compute: aCompute({ ...subject.compute, minCu: 1, maxCu: 4 }), lastDisruption: restarted }
        : subject,
    );
    const already = morning({ atMost: AT_MOST }, { otherwise: 'leave' });
    expect(raisesOf(foreseen(others, {}, already)).sort()).toEqual(
      ['1 after 26', '3 after -480', '3 after 16', '3 after 6'].sort(),
    );
  });

  it('count a restart of which no policy is stored for each policy that selects the compute', () => {
    const fleet = fleetOf(10).map(
      (subject, index): ForecastSubject =>
        index < 3
          ? {
              compute: aCompute({ ...subject.compute, minCu: 1, maxCu: 4 }),
              lastDisruption: { atMs: EIGHT - 4 * MINUTE, lowered: false },
            }
          : subject,
    );
    const already = morning({ atMost: AT_MOST }, { otherwise: 'leave' });
    expect(raisesOf(foreseen(fleet, {}, already))).toEqual(['1 after 26', '3 after -480', '3 after 16', '3 after 6']);
  });

  it('are a share of those that the policy selects at that time, not of those that are too young', () => {
    const fleet = fleetOf(10).map((subject, index): ForecastSubject => {
      const createdAtMs = index < 5 ? 0 : EIGHT - 45 * MINUTE;
      return { compute: { ...subject.compute, createdAtMs } };
    });
    const old = morning({ atMost: AT_MOST }, { select: aSelector({ projects: ['*'], minAgeMs: 60 * MINUTE }) });
    // One of five within ten minutes, and from a quarter past eight on three of ten.
    expect(raisesOf(foreseen(fleet, {}, old))).toEqual(
      ['1 after 0', '1 after 10', '2 after 15', '1 after 20', '2 after 25', '1 after 30', '2 after 35'].sort(),
    );
  });

  describe('while sizes are frozen', () => {
    const tenth = morning({ atMost: { ...AT_MOST, share: 0.2 } });
    const untilNoon = { at: [aWindow({ startMinute: 485, endMinute: 720 })] };
    const twoAfter = (...minutes: number[]) => minutes.map((minute) => `2 after ${minute}`).sort();

    it('wait until the freeze ends', () => {
      const forecasts = foreseen(fleetOf(10), {}, tenth, aFreeze(untilNoon));
      expect(raisesOf(forecasts)).toEqual(twoAfter(0, 240, 250, 260, 270));
    });

    it('are made if they raise and the freeze allows that', () => {
      const forecasts = foreseen(fleetOf(10), {}, tenth, aFreeze({ ...untilNoon, allowRaise: true }));
      expect(raisesOf(forecasts)).toEqual(twoAfter(0, 10, 20, 30, 40));
    });

    it('wait for a hold that freezes, and others come before them', () => {
      const held = fleetOf(10).map((subject, index): ForecastSubject => {
        const { computeId } = subject.compute;
        const until = { createdAtMs: EIGHT + 5 * MINUTE, expiresAtMs: EIGHT + 60 * MINUTE };
        return index < 4 ? subject : { ...subject, holds: [aHold({ computeId, freeze: true, ...until })] };
      });
      expect(raisesOf(foreseen(held, {}, tenth))).toEqual(twoAfter(0, 10, 60, 70, 80));
    });
  });

  it('are never made if something else is wanted before', () => {
    const short = morning(
      { atMost: AT_MOST },
      { windows: [{ at: [aWindow({ startMinute: 480, endMinute: 495 })], size: { minCu: 1, maxCu: 4 } }] },
    );
    const forecasts = foreseen(fleetOf(10), {}, short);
    expect(raisesOf(forecasts)).toEqual(['3 after 0', '3 after 10', '4 after undefined']);
    const never = forecasts.filter(({ late }) => late?.some(({ madeAtMs }) => madeAtMs === undefined));
    expect(never.map(({ segments }) => segments.length)).toEqual([1, 1, 1, 1]);
  });
});
