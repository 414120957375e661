import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { isBoundary, lastBoundary, searchBoundary } from '../../src/domain/decide/boundaries.ts';
import { MAX_STEPS, MAX_STEPS_OF_DECISION, stepsToDecide } from '../../src/domain/decide/search-cost.ts';
import { forecast } from '../../src/domain/forecast/forecast.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import { ruleOf } from '../../src/domain/policy/kinds/kinds.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { type Firings, firingAfter, firingAtOrBefore } from '../../src/domain/time/windows/cron-firings.ts';
import { daysOfMonths, firstDayOf, monthOf } from '../../src/domain/time/windows/cron-times.ts';
import { anyOpenAt, kindOf, mayChangeAfter, nextChangeOfAny } from '../../src/domain/time/windows.ts';
import { aCompute, aHold, aSchedule, at, aWindow, compiled } from '../support/builders.ts';

const DAY_MS = 86_400_000;
const NOW = at('2026-03-02T12:00:00Z');
const everyTwoMinutes: TimeSpec = { kind: 'cron', cron: '*/2 * * * *', forMs: 60_000, zone: 'UTC' };
const undone: TimeSpec = { kind: 'cron-switch', startCron: '* * * * *', endCron: '0 * * * *', zone: 'UTC' };
const baseline = { minCu: 1, maxCu: 1, suspendTimeoutSeconds: 300 };
const fixed = (cu: number) => ({ minCu: cu, maxCu: cu });

const dense = (cron: string, name: string = cron) =>
  aSchedule({ name, windows: [{ at: [{ ...everyTwoMinutes, cron } as TimeSpec], size: fixed(2) }] });
/** Windows of which no change is a boundary for a day: somebody holds another size, or limits leave none other. */
const hidden: Policy[] = [dense('*/2 * * * *')];
const held = aHold({ size: fixed(4), createdAtMs: NOW - 1, expiresAtMs: NOW + DAY_MS });
const outranking = (fields: Partial<SchedulePolicy>) =>
  aSchedule({
    name: 'above',
    windows: [{ at: [{ kind: 'interval', startMs: 0, endMs: NOW + 700 * DAY_MS }], size: fixed(4) }],
    ...fields,
  });

describe('a window that is costly to follow', () => {
  it('is followed a bounded way, and from there on', () => {
    let ms: number | undefined = NOW;
    const reached: number[] = [];
    for (let searches = 0; searches < 3 && ms !== undefined; searches += 1) {
      ms = mayChangeAfter([undone], ms);
      if (ms !== undefined) reached.push(ms);
    }
    expect(reached).toHaveLength(3);
    expect(reached.toSorted((a, b) => a - b)).toEqual(reached);
    expect(reached.every((one) => anyOpenAt([undone], one))).toBe(true);
    expect(nextChangeOfAny([undone], NOW)).toBeUndefined();
  });

  it('that a hold hides ends the search for a boundary where it came to, and none is missed from there on', () => {
    const input = { policies: compiled(...hidden), compute: aCompute(), baseline, holds: [held] };
    let fromMs = NOW;
    let boundaryMs: number | undefined;
    const searched: number[] = [];
    while (boundaryMs === undefined) {
      const found = searchBoundary(input, fromMs);
      boundaryMs = found.boundaryMs;
      fromMs = found.searchedUntilMs ?? fromMs;
      if (found.searchedUntilMs !== undefined) searched.push(found.searchedUntilMs);
    }
    expect(boundaryMs).toBe(NOW + DAY_MS);
    expect(searched.length).toBeGreaterThan(3);
    expect(isBoundary(input, boundaryMs)).toBe(true);
  });

  it.each([
    ['of one policy', hidden],
    ['of minutes that take turns in several policies', takingTurns(6)],
    ['of minutes that take turns in many policies', takingTurns(100)],
    ['of many policies', Array.from({ length: 900 }, (_, index) => dense(`${index % 60} * * * *`, `p${index}`))],
  ])('costs a search for a boundary so many steps at most, or one decision: %s', (_, policies) => {
    const { spent, decisions, boundaryMs } = stepsSpent(policies);
    expect(boundaryMs).toBeUndefined();
    if (decisions > 1) expect(spent).toBeLessThanOrEqual(MAX_STEPS);
    expect(spent).toBeLessThanOrEqual(MAX_STEPS_OF_DECISION);
  });

  it('is not followed at all while a policy outranks it', () => {
    const twentyOffices = Array.from({ length: 20 }, (_, index) =>
      aSchedule({
        name: `office-${index}`,
        windows: [{ at: [aWindow({ startMinute: 480 + index })], size: fixed(2) }],
      }),
    );
    for (const below of [takingTurns(6), twentyOffices]) {
      for (const above of [outranking({ priority: 1 }), outranking({ priority: 0 })]) {
        const input = { policies: compiled(...below, above), compute: aCompute(), baseline };
        expect(searchBoundary(input, NOW)).toEqual({ boundaryMs: NOW + 700 * DAY_MS });
        expect(lastBoundary(input, NOW, 'size')).toBe(Number.NEGATIVE_INFINITY);
      }
    }
  });

  it('is followed where it may still decide: with a lead, with more than an observing policy, beside a value it lacks', () => {
    const nextOf = (...policies: Policy[]) =>
      searchBoundary({ policies: compiled(...policies), compute: aCompute(), baseline }, NOW).boundaryMs;
    const below = dense('*/2 * * * *');
    expect(nextOf(below, outranking({ priority: 1, mode: 'observe' }))).toBe(NOW + 60_000);
    const timeouts = { ...below.windows[0], at: [everyTwoMinutes], suspendTimeoutSeconds: 600 };
    expect(nextOf({ ...below, windows: [timeouts] }, outranking({ priority: 1 }))).toBe(NOW + 60_000);
    expect(nextOf(outranking({ priority: -1 }), below)).toBe(NOW + 60_000);
    const late = { at: [aWindow({ startMinute: 1020, endMinute: 1080 })], size: fixed(8), readyLeadMs: 600_000 };
    const until = [{ at: [aWindow({ startMinute: 480, endMinute: 1015 })], size: fixed(4) }];
    const leading = aSchedule({ name: 'lead', windows: [late], otherwise: 'leave' });
    expect(nextOf(leading, aSchedule({ name: 'until', windows: until, otherwise: 'leave' }))).toBe(
      at('2026-03-02T16:50:00Z'),
    );
  });

  it('is asked once for all instants between two of its changes', () => {
    const set = compilePolicies({ policies: hidden, sources: new Map(), hash: '' });
    const said = (ms: number) => set.effectiveFor(aCompute(), ms).all.values[0];
    expect(said(NOW + 1)).toBe(said(NOW + 2));
    for (const ms of [NOW, NOW + 30_000, NOW + 60_000, NOW + 119_999, NOW + 120_000]) {
      const directly = hidden.flatMap((policy, index) => ruleOf(policy).directivesAt(policy, index, ms));
      expect(new Set(set.effectiveFor(aCompute(), ms).all.values)).toEqual(new Set(directly));
    }
  });

  it('is in a forecast with every change', () => {
    const policies = compiled(hidden[0] as Policy);
    const { segments } = forecast({ policies, compute: aCompute(), fromMs: NOW, toMs: NOW + DAY_MS, baseline });
    expect(segments.length).toBeGreaterThan(0);
    const alone = {
      policies: compiled(aSchedule({ windows: [{ at: [undone], size: fixed(2) }] })),
      compute: aCompute(),
    };
    expect(forecast({ ...alone, fromMs: NOW, toMs: NOW + 100 * DAY_MS }).segments).toMatchObject([{ maxCu: 2 }]);
  });
});

/** Crons that together leave no minute out, under limits that leave nothing to decide. */
function takingTurns(count: number): Policy[] {
  return Array.from({ length: count }, (_, index) => {
    const crons = ['*/2 * * * *', '1-59/2 * * * *'].map((cron) => ({ ...everyTwoMinutes, cron }) as TimeSpec);
    return aSchedule({ name: `turns-${index}`, windows: [{ at: crons, size: fixed(2) }] });
  });
}

/** What a search under a hold costs after its first decision, in its own unit. */
function stepsSpent(given: readonly Policy[]) {
  const policies = compiled(...given);
  const instants = new Set<number>();
  const counting = {
    ...policies,
    effectiveFor: (...args: Parameters<typeof policies.effectiveFor>) => {
      instants.add(args[1]);
      return policies.effectiveFor(...args);
    },
  };
  const { boundaryMs } = searchBoundary({ policies: counting, compute: aCompute(), baseline, holds: [held] }, NOW);
  const decided = [...instants].sort((a, b) => a - b);
  const spent = decided.slice(1).map((ms, index) =>
    stepsToDecide(policies, policies.selecting(aCompute()), (policyIndex) => {
      const changesMs = policies.nextChangeAfter(policyIndex, decided[index] ?? 0);
      return changesMs !== undefined && changesMs <= ms;
    }),
  );
  return { boundaryMs, decisions: spent.length, spent: spent.reduce((sum, steps) => sum + steps, 0) };
}

describe('a firing of a cron expression', () => {
  it('is found in a few looks, also where clocks change', () => {
    const MAX_LOOKS = 4;
    let looks = 0;
    const firings = (cron: string): Firings => ({
      ...{ cron, zone: 'Europe/Berlin' },
      get dates() {
        looks += 1;
        return {};
      },
    });
    const changes = [at('2026-03-29T01:00:00Z'), at('2026-10-25T01:00:00Z')];
    for (const cron of ['* * * * *', '*/2 * * * *', '30 2-2/1 * * 0', '* 2 * * *', '0 0 29 2 *']) {
      for (const minute of Array.from({ length: 240 }, (_, index) => index - 120)) {
        for (const find of [firingAfter, firingAtOrBefore]) {
          for (const change of changes) {
            looks = 0;
            find(firings(cron), change + minute * 60_000);
            expect(looks).toBeLessThanOrEqual(MAX_LOOKS);
          }
        }
      }
    }
  });

  it('is looked for once to tell until when a window is open, and twice to tell since when', () => {
    let looks = 0;
    const dates = () => {
      looks += 1;
      return {};
    };
    const daily = { kind: 'cron', cron: '59 23 * * *', forMs: 108_000_000, zone: 'Europe/Berlin' } as const;
    const window = Object.defineProperty({ ...daily }, 'dates', { get: dates }) as TimeSpec;
    for (const minute of Array.from({ length: 240 }, (_, index) => index - 120)) {
      const ms = at('2026-03-29T01:00:00Z') + minute * 60_000;
      for (const [ask, most] of [
        [kindOf(window).isOpenAt, 1],
        [kindOf(window).endTouching, 1],
        [kindOf(window).startTouching, 2],
      ] as const) {
        looks = 0;
        ask(window, ms);
        expect(looks).toBe(most);
      }
    }
  });
});

describe('dates of a cron expression', () => {
  it('are those of cron-parser', () => {
    const dates = fc.constantFrom('*', '1', '31', '29,30', '*/7', 'L', '15,L', '1-5');
    const months = fc.constantFrom('*', '2', '2,12', '*/5');
    const weekdays = fc.constantFrom('*', '0', '7', '1-5', '5L', '1#2', '6#5', '0,3', 'SUN', '1,5L');
    fc.assert(
      fc.property(dates, months, weekdays, fc.integer({ min: -3000, max: 30_000 }), (date, month, weekday, day) => {
        const read = () => CronExpressionParser.parse(`0 0 ${date} ${month} ${weekday}`, { tz: 'UTC', currentDate: 0 });
        let expression: ReturnType<typeof read>;
        try {
          expression = read();
        } catch {
          return;
        }
        const daysOf = daysOfMonths(expression.fields);
        const firesOn = (next: number) => ((daysOf(monthOf(next)) >>> (next - firstDayOf(monthOf(next)))) & 1) === 1;
        for (let next = day; next < day + 40; next += 1) {
          const at = DateTime.fromMillis(next * DAY_MS, { zone: 'utc' }).toJSDate();
          expect([next, firesOn(next)]).toEqual([next, expression.includesDate(at)]);
        }
      }),
      { numRuns: 200 },
    );
  });
});
