import { describe, expect, it } from 'vitest';
import type { AwakeHistory } from '../../../src/domain/awake/intervals.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import { coveringUse, type Evidence, savingBetween, savingOf } from '../../../src/domain/recommend/saving.ts';
import type { UsageBucket } from '../../../src/domain/usage/usage.ts';
import { aCompute } from '../../support/builders.ts';
import { DAY, exponential, HOUR, logNormal, MINUTE, simulate, visits } from '../../support/demand.ts';
import { historyOf } from './history.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 28 * DAY, toMs: TO };
const SIZE = { minCu: 1, maxCu: 1 };
const always = (suspendTimeoutSeconds: number, size = SIZE) => [{ ...SPAN, ...size, suspendTimeoutSeconds }];
const priceAt = () => 0.2;

/** The hours of a fixed size of 1 CU, from when it was awake. */
function hoursOf({ intervals }: AwakeHistory): UsageBucket[] {
  return Array.from({ length: (SPAN.toMs - SPAN.fromMs) / HOUR }, (_, index) => {
    const startMs = SPAN.fromMs + index * HOUR;
    const within = intervals.map((one) => Math.min(one.endMs, startMs + HOUR) - Math.max(one.startMs, startMs));
    const awakeMs = within.reduce((sum, ms) => sum + Math.max(0, ms), 0);
    return { startMs, seconds: 3600, cuSeconds: awakeMs / 1000 };
  });
}

/** Clients of one draw under a timeout. */
function evidenceOf(seed: number, suspendTimeoutSeconds: number): { evidence: Evidence; awakeSeconds: number } {
  const random = seededRandom(seed);
  const activities = visits(
    SPAN,
    () => exponential(random, 40 * MINUTE),
    () => logNormal(random, 2 * MINUTE, 1),
  );
  const timeoutSeconds = suspendTimeoutSeconds;
  const under = simulate({ ...SPAN, random: seededRandom(seed), activities, timeoutSeconds });
  const history = historyOf(under, SPAN);
  const had = { ...SIZE, suspendTimeoutSeconds };
  return {
    evidence: { compute: aCompute(had), had, history, hours: hoursOf(history) },
    awakeSeconds: under.awakeSeconds,
  };
}

describe('the saving of rules in a past', () => {
  it('is at the rate since a compute was first used, if it was not for two thirds of the time', () => {
    const rateSince = (usedForDays: number, knownForDays: number) => {
      const span = { fromMs: TO - knownForDays * DAY, toMs: TO };
      const activities = Array.from({ length: Math.round(usedForDays * 24) }, (_, index) => {
        const fromMs = TO - usedForDays * DAY + index * HOUR;
        return { fromMs, toMs: fromMs + 5 * MINUTE, cu: 0 };
      });
      const had = { ...SIZE, suspendTimeoutSeconds: 900 };
      const under = simulate({ ...span, random: seededRandom(1), activities, timeoutSeconds: 900 });
      const history = historyOf(under, span);
      const hours = hoursOf(history).filter(({ startMs }) => startMs >= span.fromMs);
      const rules = [{ ...span, ...SIZE, suspendTimeoutSeconds: 300 }];
      const { month } = savingOf({ evidence: { compute: aCompute(had), had, history, hours }, rules, priceAt }) ?? {};
      return [month?.used.cuSeconds.mid ?? 0, month?.saved.cuSeconds.mid ?? 0] as const;
    };
    const [[used, saved], [usedAlways, savedAlways]] = [rateSince(7, 28), rateSince(7, 7)];
    expect(usedAlways / 3600).toBeCloseTo(730 / 3, -1);
    expect(used / usedAlways).toBeCloseTo(1, 1);
    expect(saved / savedAlways).toBeCloseTo(1, 1);
    // A week of use is well within: an hour more or less is no other figure.
    expect(rateSince(7 + 1 / 24, 28)[0] / usedAlways).toBeCloseTo(1, 1);
    // Used for a day, or for half of the time: that may be its rhythm.
    expect(rateSince(1, 28)[0] / usedAlways).toBeLessThan(0.2);
    expect(rateSince(14, 28)[0] / usedAlways).toBeCloseTo(0.5, 1);
  });

  it('is nothing for the settings that the compute had', () => {
    const { evidence } = evidenceOf(1, 3600);
    const saving = savingOf({ evidence, rules: always(3600), priceAt });
    const nothing = { cuSeconds: { low: 0, mid: 0, high: 0 }, usd: { low: 0, mid: 0, high: 0 } };
    expect(saving?.saved).toEqual(nothing);
    expect(saving && savingBetween(saving.month.saved, saving.month.saved)).toEqual(nothing);
  });

  it('promises no more than comes of a shorter timeout, and has its middle near the truth: 10 draws, shortened and prolonged', () => {
    const errors: number[] = [];
    for (let seed = 101; seed <= 110; seed += 1) {
      for (const [hadSeconds, seconds] of [[900, 300] as const, [300, 900] as const]) {
        const { evidence, awakeSeconds } = evidenceOf(seed, hadSeconds);
        const { saved } = savingOf({ evidence, rules: always(seconds), priceAt }) ?? {};
        const truth = awakeSeconds - evidenceOf(seed, seconds).awakeSeconds;
        const { low = Number.NaN, mid = Number.NaN, high = Number.NaN } = saved?.cuSeconds ?? {};
        if (seconds < hadSeconds) expect(low).toBeLessThanOrEqual(truth);
        expect(low).toBeLessThanOrEqual(mid);
        expect(mid).toBeLessThanOrEqual(high);
        expect(saved?.usd?.mid).toBeCloseTo((0.2 * mid) / 3600, 6);
        errors.push(Math.abs(mid / truth - 1));
      }
    }
    expect(errors.sort((a, b) => a - b)[Math.floor(errors.length / 2)]).toBeLessThan(0.3);
  });

  it('is that of one step after the other, and of all of them at once', () => {
    const { evidence } = evidenceOf(7, 3600);
    const of = (seconds: number) => savingOf({ evidence, rules: always(seconds), priceAt })?.month.saved;
    const [one, two, three] = [of(3600), of(900), of(300)];
    if (!one || !two || !three) throw new Error('nothing is known');
    const steps = savingBetween(one, two).cuSeconds.mid + savingBetween(two, three).cuSeconds.mid;
    expect(steps).toBeCloseTo(savingBetween(one, three).cuSeconds.mid, 6);
  });

  it('is a month at the rate of the time that is known, not of the time that was asked for', () => {
    const { evidence } = evidenceOf(3, 3600);
    const lastWeek = SPAN.toMs - 7 * DAY;
    const hours = evidence.hours?.filter(({ startMs }) => startMs >= lastWeek);
    const small = { minCu: 0.25, maxCu: 0.25 };
    const saving = savingOf({
      evidence: { ...evidence, hours, history: undefined },
      rules: always(3600, small),
      priceAt,
    });
    expect(saving?.month.used.cuSeconds.mid).toBeCloseTo(((saving?.used.cuSeconds.mid ?? 0) * 730) / 168, 3);
    expect(saving?.month.saved.cuSeconds.mid).toBeCloseTo((0.75 * 730 * (saving?.used.cuSeconds.mid ?? 0)) / 168, -3);
  });

  it('is known of when a compute was awake alone, and is not known of nothing', () => {
    const { evidence } = evidenceOf(5, 3600);
    const { hours: _, ...awakeOnly } = evidence;
    const whole = savingOf({ evidence, rules: always(300), priceAt })?.month.saved.cuSeconds.mid;
    const fromLog = savingOf({ evidence: awakeOnly, rules: always(300), priceAt })?.month.saved.cuSeconds.mid;
    expect((fromLog ?? 0) / (whole ?? 1)).toBeCloseTo(1, 1);
    expect(
      savingOf({ evidence: { ...evidence, hours: undefined, history: undefined }, rules: always(300), priceAt }),
    ).toBeUndefined();
    expect(savingOf({ evidence, rules: [], priceAt })).toBeUndefined();
  });

  it('has no dollars where a price is not known', () => {
    const { evidence } = evidenceOf(5, 3600);
    const saving = savingOf({ evidence, rules: always(300), priceAt: () => undefined });
    expect(saving?.saved.usd).toBeUndefined();
    expect(saving?.saved.cuSeconds.mid).toBeGreaterThan(0);
  });

  it('counts time after the rules for nothing, and of a single day promises nothing', () => {
    const { evidence } = evidenceOf(5, 900);
    const rules = always(300).map((rule) => ({ ...rule, toMs: SPAN.toMs - 7 * DAY }));
    const inHours = evidence.hours?.filter(({ startMs }) => startMs < SPAN.toMs - 7 * DAY);
    const cut = savingOf({ evidence: { ...evidence, hours: inHours }, rules, priceAt })?.month.saved.cuSeconds.mid;
    const whole = savingOf({ evidence, rules: always(300), priceAt })?.month.saved.cuSeconds.mid;
    expect((cut ?? 0) / (whole ?? 1)).toBeCloseTo(1, 0);
    const today = always(300).map((rule) => ({ ...rule, fromMs: SPAN.toMs - DAY / 2 }));
    const saved = savingOf({ evidence, rules: today, priceAt })?.saved.cuSeconds;
    expect(saved?.low).toBe(0);
    expect(saved?.mid).toBeGreaterThan(0);
  });

  it('charges hours in which the compute never suspends once', () => {
    const { evidence } = evidenceOf(9, 300);
    const noon = (day: number) => SPAN.fromMs + day * DAY + DAY / 2;
    const days = Array.from({ length: 28 }, (_, day) => [
      { ...SIZE, fromMs: noon(day) - DAY / 2, toMs: noon(day), suspendTimeoutSeconds: -1 },
      { ...SIZE, fromMs: noon(day), toMs: noon(day) + DAY / 2, suspendTimeoutSeconds: 300 },
    ]).flat();
    const { used, saved } = savingOf({ evidence, rules: days, priceAt }) ?? {};
    // At most it is awake all of each first half day.
    const most = 28 * 12 * 3600 - (used?.cuSeconds.mid ?? 0) / 3;
    expect(saved?.cuSeconds.mid).toBeLessThan(0);
    expect(-(saved?.cuSeconds.mid ?? 0)).toBeLessThan(most);
  });

  it('of sizes has its ends in order, though more sleep leaves less to save by them', () => {
    const { evidence } = evidenceOf(1, -1);
    const rules = always(300, { minCu: 0.25, maxCu: 0.25 });
    const { low = 0, mid = 0, high = 0 } = savingOf({ evidence, rules, priceAt })?.bySizes.cuSeconds ?? {};
    expect([low, mid, high]).toEqual([low, mid, high].toSorted((a, b) => a - b));
    expect(low).toBeLessThan(high);
  });

  it('of a smaller maximum is not expected: only peaks that usage does not show would tell', () => {
    const compute = aCompute({ minCu: 1, maxCu: 16, suspendTimeoutSeconds: 3600 });
    const had = { minCu: 1, maxCu: 16, suspendTimeoutSeconds: 3600 };
    const hours = evidenceOf(5, 3600).evidence.hours?.map((hour) => ({
      ...hour,
      cuSeconds: 2 * (hour.cuSeconds ?? 0),
    }));
    const rules = [{ ...SPAN, ...had, maxCu: 10 }];
    const { mid, high } = savingOf({ evidence: { compute, had, hours }, rules, priceAt })?.saved.cuSeconds ?? {};
    expect(mid).toBeCloseTo(0, 6);
    expect(high).toBeGreaterThan(0);
  });

  it('of a compute that never suspends is the same by its usage alone as by its operations', () => {
    const had = { ...SIZE, suspendTimeoutSeconds: -1 };
    const compute = aCompute({ ...had, state: 'active' });
    // Started in the middle of an hour, three days before the end, and busy by day.
    const startMs = TO - 3 * DAY - 30 * MINUTE;
    const history: AwakeHistory = {
      ...SPAN,
      ...{ unknown: [], startDurationsMs: [] },
      intervals: [{ startMs, endMs: TO, start: 'client', end: 'open' }],
    };
    const hours = hoursOf(history).map((hour) => (hour.cuSeconds === 1800 ? { ...hour, cuSeconds: 1900 } : hour));
    const of = (evidence: Partial<Evidence>) =>
      savingOf({ evidence: { compute, had, hours, ...evidence }, rules: always(300), priceAt })?.month;
    expect(of({})?.used.cuSeconds.mid).toBeCloseTo(730 * 3600, 0);
    expect(of({})).toEqual(of({ history }));
  });

  it('of a compute that never suspends is the same by both also if it started at a full hour', () => {
    const had = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1 };
    const compute = aCompute({ ...had, state: 'active' });
    const intervals = [{ startMs: TO - 3 * DAY, endMs: TO, start: 'client', end: 'open' }] as const;
    const history: AwakeHistory = { ...SPAN, unknown: [], startDurationsMs: [], intervals: [...intervals] };
    // It works in one hour of three, also in that of its start.
    const hours = hoursOf(history).map((hour, index) => ({
      ...hour,
      cuSeconds: (hour.cuSeconds ?? 0) * (index % 3 === 0 ? 1.5 : 1),
    }));
    const of = (evidence: Partial<Evidence>) =>
      savingOf({ evidence: { compute, had, hours, ...evidence }, rules: always(300, had), priceAt })?.month;
    expect(of({ history })).toEqual(of({}));
  });

  it('of a compute that never suspends, and sleeps all the same, is nothing: also where only usage shows it', () => {
    const had = { ...SIZE, suspendTimeoutSeconds: -1 };
    const hours = hoursOf({ intervals: [] } as unknown as AwakeHistory);
    const evidence = { compute: aCompute({ ...had, state: 'idle' }), had, hours };
    expect(savingOf({ evidence, rules: always(300), priceAt })?.month.saved.cuSeconds.high).toBe(0);
  });

  it('is no more than the use, which was zero on the days before the known hours', () => {
    const { evidence } = evidenceOf(3, 3600);
    const lastWeekMs = TO - 7 * DAY;
    const unused = Array.from({ length: 21 }, (_, day) => ({
      ...{ startMs: SPAN.fromMs + day * DAY, seconds: 86_400, cuSeconds: 0 },
    }));
    const hours = [...unused, ...(evidence.hours ?? []).filter(({ startMs }) => startMs >= lastWeekMs)];
    const { used, saved } = savingOf({ evidence: { ...evidence, hours }, rules: always(300), priceAt })?.month ?? {};
    const measured = hours.reduce((sum, { cuSeconds }) => sum + (cuSeconds ?? 0), 0);
    expect(used?.cuSeconds.mid).toBeCloseTo((measured * 730) / (28 * 24), 0);
    expect(saved?.cuSeconds.high).toBeLessThanOrEqual(used?.cuSeconds.high ?? 0);
  });

  it('is limited by the time awake if only that is known', () => {
    const { evidence, awakeSeconds } = evidenceOf(3, 3600);
    const { hours: _unknown, ...known } = evidence;
    const month = savingOf({ evidence: known, rules: always(60), priceAt })?.month;
    expect(month?.used.cuSeconds.mid).toBeCloseTo((awakeSeconds * 730) / (28 * 24), -3);
    expect(month?.saved.cuSeconds.high).toBeLessThanOrEqual(month?.used.cuSeconds.mid ?? 0);
  });

  it('from a few hours may exceed the use: then that much use is assumed, the same for all rules', () => {
    const { evidence } = evidenceOf(3, 3600);
    const few = (evidence.hours ?? []).slice(-20).map((hour) => ({ ...hour, cuSeconds: (hour.cuSeconds ?? 0) / 10 }));
    const of = (seconds: number) =>
      savingOf({ evidence: { ...evidence, hours: few }, rules: always(seconds), priceAt });
    const [had, would] = [of(3600)?.month, of(60)?.month];
    if (!had || !would) throw new Error('nothing is known');
    expect(would.saved.cuSeconds.high).toBeGreaterThan(would.used.cuSeconds.mid);
    expect(had.used).toEqual(would.used);
    expect(coveringUse(had, would.saved)).toEqual(coveringUse(would, had.saved));
    expect(coveringUse(had, would.saved).cuSeconds.low).toBe(would.saved.cuSeconds.high);
  });

  it('of a compute that never suspends counts from its last start, also if it is asleep again and hours are unknown', () => {
    const had = { ...SIZE, suspendTimeoutSeconds: -1 };
    const hours = Array.from({ length: 28 * 24 }, (_, index) => {
      const used = [0, 0, null, 1800, 3600, 3600, 0][Math.max(0, index - 28 * 24 + 7)] ?? null;
      return { startMs: SPAN.fromMs + index * HOUR, seconds: 3600, cuSeconds: used };
    });
    const evidence = { compute: aCompute({ ...had, state: 'idle' }), had, hours };
    // Of two whole hours, and one asleep.
    expect(savingOf({ evidence, rules: always(300), priceAt })?.month.used.cuSeconds.mid).toBeCloseTo(
      (2 / 3) * 730 * 3600,
      0,
    );
  });
});
